"""What masking persons with several records costs: hospital visits and households, ε = 1.

Errors are mean squares of what a release moves, in variances of the attribute, before pooling; of
categories, the share of records that change.
"""

import numpy as np
import polars as pl

from microveil import Confidential, Plan, protect

PATIENTS, HOUSEHOLDS, MOST, RUNS = 5_000, 4_000, 12, 5


def visits(patients: int = PATIENTS, seed: int = 1) -> pl.DataFrame:
    """Make up to 12 visits of each patient, about four on average; 1.4% end in death."""
    random = np.random.default_rng(seed)
    number = np.minimum(random.geometric(0.25, patients), MOST)
    patient = np.repeat(np.arange(patients), number)
    age, frailty = random.integers(0, 95, patients), random.normal(size=patients)
    cost = np.exp(7 + 0.4 * frailty[patient] + 0.6 * random.normal(size=len(patient)))
    births = np.datetime64("2020-01-01") - (365.25 * age).astype(int) - random.integers(0, 365)
    return pl.DataFrame({
        "patient": [f"p{one:06}" for one in patient],
        "born": births[patient],
        "cost": cost.round(2),
        "days": random.poisson(np.exp(0.9 + 0.3 * frailty[patient])),
        "pressure": (120 + 0.3 * age[patient] + 12 * random.normal(size=len(patient))).round(),
        "died": (random.random(len(patient)) < 0.014).astype(int),
        "ward": random.choice(["surgery", "medicine", "children"], len(patient), p=[0.4, 0.5, 0.1]),
    })  # fmt: skip


def households(number: int = HOUSEHOLDS, seed: int = 1) -> pl.DataFrame:
    """Make persons of households with one to twelve members."""
    random = np.random.default_rng(seed)
    members = np.minimum(1 + random.poisson(1.4, number), MOST)
    home, head = np.repeat(np.arange(number), members), random.normal(size=number)
    return pl.DataFrame({
        "household": [f"h{one:05}" for one in home],
        "rooms": np.clip(random.poisson(3 + 0.5 * members), 1, 12)[home],
        "rent": np.rint(np.exp(6 + 0.4 * head))[home],
        "age": random.integers(0, 95, len(home)),
        "income": np.rint(np.exp(7 + 0.4 * head[home] + 0.6 * random.normal(size=len(home)))),
        "hours": np.clip(np.rint(random.normal(34, 12, len(home))), 0, 80),
    })  # fmt: skip


TABLES = {
    "visits": (visits, "patient", {"born"}),
    "households": (households, "household", {"rooms", "rent"}),
}


def plan_for(unit: str, per_unit: set[str], table: pl.DataFrame) -> Plan:
    """Return the recommended plan, not pooled."""
    roles = {
        name: "identifier" if name == unit
        else Confidential(kind="nominal", categories=table[name].unique().sort().to_list())
        if table[name].dtype == pl.String
        else Confidential(per_unit=name in per_unit, decimals=2 if name == "cost" else None)
        for name in table.columns
    }  # fmt: skip
    return Plan(epsilon=1.0, unit=unit, anonymity=0, attributes=roles)


def errors(table: pl.DataFrame, plan: Plan, seed: int) -> dict[str, float]:
    """Return the mean square of what a release moves, in variances, of each number."""
    released = protect(table, plan, seed=seed, keep_order=True).data
    found = {}
    for name in plan.confidential:
        one, other = table[name], released[name]
        if one.dtype == pl.String:
            found[name] = float(np.mean(one.to_numpy() != other.to_numpy()))
            continue
        before, after = one.to_physical().to_numpy(), other.to_physical().to_numpy()
        found[name] = float(np.mean((after - before * 1.0) ** 2) / np.var(before))
    return found


def main() -> None:
    """Print the table of the documentation."""
    print("| table | attribute | error, mean of 5 runs | largest |\n|---|---|---|---|")
    for name, (make, unit, per_unit) in TABLES.items():
        table = make()
        plan = plan_for(unit, per_unit, table)
        runs = [errors(table, plan, seed) for seed in range(RUNS)]
        for attribute in runs[0]:
            each = [run[attribute] for run in runs]
            print(f"| {name} | {attribute} | {np.mean(each):.4f} | {max(each):.4f} |")
    table = visits()
    plan = plan_for("patient", {"born"}, table)
    rates = [_deaths(protect(table, plan, seed=seed, keep_order=True).data) for seed in range(RUNS)]
    print(f"\ndeaths: {_deaths(table):.2%} of visits; released {min(rates):.2%} to "
          f"{max(rates):.2%}")  # fmt: skip


def _deaths(table: pl.DataFrame) -> float:
    return float(np.mean(table["died"].to_numpy()))


if __name__ == "__main__":
    main()
