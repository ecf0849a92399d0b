"""Three linkage attacks on releases of the paper's data, and their time on a large table.

Census and Wine Quality, domains [0, 1.5·max], one seeded run each; the structure attack also by
someone who knows half of the people.
"""

import sys
import time
import warnings

import numpy as np
import polars as pl

from bench.paper import load_with_domains
from microveil import Plan, PrivacyWarning, protect
from microveil.attacks.nearest import nearest_linkage
from microveil.attacks.one_to_one import one_to_one_linkage
from microveil.attacks.structure import structure_linkage
from microveil.lab.paper.datasets import CENSUS, WINE, DataSet

EPSILONS = (0.01, 0.1, 1.0)
ATTACKS = (nearest_linkage, one_to_one_linkage, structure_linkage)


def main() -> None:
    """Print a table for each data set; an argument names one, or ``large``."""
    warnings.simplefilter("ignore", PrivacyWarning)
    wanted = sys.argv[1].lower() if len(sys.argv) > 1 else ""
    for dataset in (CENSUS, WINE):
        if wanted in dataset.name.lower():
            _attack(dataset)
    if wanted in "large":
        _attack_large(100_000, 10)


def _attack(dataset: DataSet) -> None:
    table, attributes = load_with_domains(dataset)
    original = table.to_numpy().astype(np.float64)
    print(f"\n{dataset.name}: nearest, one to one, structure, structure with half of the people")
    for epsilon in EPSILONS:
        plans = {
            "published, k = 10": Plan.published(epsilon=epsilon, k=10, attributes=attributes),
            "recommended, not pooled": Plan(epsilon=epsilon, anonymity=0, attributes=attributes),
            "recommended": Plan(epsilon=epsilon, attributes=attributes),
        }
        for name, plan in plans.items():
            masked = (
                protect(table, plan, seed=1, keep_order=True).data.to_numpy().astype(np.float64)
            )
            shares = [attack(original, masked).share for attack in ATTACKS]
            shares.append(structure_linkage(original, masked, people=0.5).share)
            figures = "".join(f"{share:9.1%}" for share in shares)
            print(f"  ε = {epsilon:<6g}{name:<20}{figures}", flush=True)


def _attack_large(records: int, attributes: int) -> None:
    random = np.random.default_rng(1)
    values = random.normal(size=(records, 3)) @ random.normal(size=(3, attributes))
    table = pl.DataFrame(values + random.normal(size=values.shape), orient="row")
    plan = Plan.published(epsilon=1, k=10, attributes=dict.fromkeys(table.columns, "confidential"))
    original, masked = (
        table.to_numpy(),
        protect(table, plan, seed=1, keep_order=True).data.to_numpy(),
    )
    print(f"\n{records:,} × {attributes}, ε = 1, published, k = 10")
    for attack in ATTACKS:
        start = time.process_time()
        found = attack(original, masked)
        seconds = time.process_time() - start
        print(f"  {found.id:<20}{found.share:9.1%}{seconds:9.1f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
