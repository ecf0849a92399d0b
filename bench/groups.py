"""Individual and joint clusters on the paper's data: error, learning and linkage at the same ε.

Census and Wine Quality, domains [0, 1.5·max], iDP-CBLS and iDP-LS, means over five seeded runs.
"""

import sys
import warnings
from typing import Any

import numpy as np

from bench.paper import load
from microveil import Plan, PrivacyWarning, protect
from microveil.evaluation.learning import class_scores
from microveil.evaluation.risk import record_linkage
from microveil.evaluation.utility import mean_sse
from microveil.paper.datasets import CENSUS, WINE, DataSet
from microveil.paper.datasets import load as load_table

RUNS = 5
EPSILONS = (0.1, 1.0, 10.0)
KS = (5, 25)
SETTINGS: dict[str, dict[str, Any]] = {
    "individual, iDP-CBLS": {"method": "iDP-CBLS"},
    "joint, iDP-CBLS": {"method": "iDP-CBLS", "partition": "joint"},
    "individual, iDP-LS": {"method": "iDP-LS"},
    "joint, iDP-LS": {"method": "iDP-LS", "partition": "joint"},
}


def main() -> None:
    """Print a table for each data set; an argument names one of them."""
    warnings.simplefilter("ignore", PrivacyWarning)
    for dataset in (CENSUS, WINE):
        if len(sys.argv) < 2 or sys.argv[1].lower() in dataset.name.lower():
            _compare(dataset)


def _compare(dataset: DataSet) -> None:
    table, attributes = load(dataset)
    original, target = table.to_numpy(), load_table(dataset).second_class
    print(f"\n{dataset.name}: log10 mean SSE, mean F-measure, records linked")
    for epsilon in EPSILONS:
        for k in KS:
            for label, settings in SETTINGS.items():
                plan = Plan.published(epsilon=epsilon, k=k, attributes=attributes, **settings)
                runs = [protect(table, plan, seed=s).data.to_numpy() for s in range(RUNS)]
                error = np.log10(np.mean([mean_sse(original, masked) for masked in runs]))
                scores = class_scores(original, runs[0], target)
                learned = np.mean([score.protected or 0.0 for score in scores])
                linked = np.mean([record_linkage(original, masked).share for masked in runs])
                print(
                    f"  ε = {epsilon:<5g} k = {k:<4d}{label:<24}{error:8.2f}{learned:8.2f}"
                    f"{linked:9.1%}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
