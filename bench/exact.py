"""What it costs that no value goes out without noise unless ten persons have it, at ε = 1.

Errors are mean squares of what a release moves, in variances of the attribute, before pooling. Each
is a multiple of that with `exact_from = 0` in the same run, with the same seeds.
"""

import warnings

import numpy as np
import polars as pl

from bench.paper import load_with_domains
from bench.units import TABLES, errors, plan_for
from microveil import Plan
from microveil.lab.paper.datasets import CENSUS

RUNS = 5


def census() -> tuple[pl.DataFrame, Plan]:
    """Return the paper's Census with its recommended plan, not pooled."""
    table, attributes = load_with_domains(CENSUS)
    return table, Plan(epsilon=1.0, anonymity=0, attributes=attributes)


def main() -> None:
    """Print the table of the documentation."""
    warnings.simplefilter("ignore")
    cases = {"Census": census()}
    for name, (make, unit, per_unit) in TABLES.items():
        table = make()
        cases[name] = table, plan_for(unit, per_unit, table)
    print(
        "| table | attribute | error, exact_from = 0 | with 10, as a multiple |\n|---|---|---|---|"
    )
    for name, (table, plan) in cases.items():
        both = []
        for fewest in (0, 10):
            runs = [errors(table, plan.replace(exact_from=fewest), seed) for seed in range(RUNS)]
            both.append({a: float(np.mean([run[a] for run in runs])) for a in runs[0]})
        off, on = both
        for a in off:
            ratio = on[a] / off[a] if off[a] else np.nan
            print(f"| {name} | {a} | {off[a]:.5f} | {ratio:.2f} |")
        off_all, on_all = (sum(one.values()) / len(one) for one in (off, on))
        print(f"| {name} | mean | {off_all:.5f} | {on_all / off_all:.2f} |")


if __name__ == "__main__":
    main()
