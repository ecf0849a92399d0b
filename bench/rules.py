"""Proposed rules: what a table of hospital visits keeps with them, and what attacks find."""

import warnings

import numpy as np
import polars as pl

from microveil import Confidential, Derived, Plan, protect, verdict
from microveil.attacks.attack_rows import ATTACKS

RECORDS = 4_000


def hospital_visits(records: int = RECORDS, seed: int = 28) -> pl.DataFrame:
    """Several visits a patient, with dates, a length of stay, costs and gaps. Nobody exists."""
    random = np.random.default_rng(seed)
    patients = max(2, records * 2 // 5)
    who = np.sort(random.integers(0, patients, records))
    days = "timedelta64[D]"
    born = np.datetime64("1925-01-01") + random.integers(0, 36_000, patients).astype(days)
    visit = np.datetime64("2022-01-01") + random.integers(0, 1_000, records).astype(days)
    visit = np.maximum(visit, born[who] + random.integers(0, 20, records).astype(days))
    stay = np.minimum(random.geometric(0.2, records) - 1, 60)
    age = (visit - born[who]).astype(np.int64) / 365.25
    systolic = (100 + 0.5 * age + random.normal(0, 14, records)).round().astype(np.int64)
    diastolic = np.minimum(
        (60 + 0.2 * age + random.normal(0, 9, records)).round().astype(np.int64),
        systolic - random.integers(5, 20, records),
    )
    fee = (200 + 350 * stay + random.gamma(2, 150, records)).round(2)
    drugs = random.gamma(1.5, 80, records).round(2)
    table = pl.DataFrame({
        "patient_id": random.choice(9 * 10**6, patients, replace=False)[who] + 10**6,
        "birth_date": born[who],
        "sex": random.choice(["F", "M"], patients)[who],
        "ward": random.choice(["surgery", "medicine", "children"], records, p=[0.3, 0.4, 0.3]),
        "visit_date": visit,
        "discharge_date": visit + stay.astype(days),
        "length_of_stay": stay,
        "systolic": systolic,
        "diastolic": diastolic,
        "fee": fee,
        "drugs": drugs,
        "total_cost": (fee + drugs).round(2),
        "died": (random.random(records) < 0.01 + 0.08 * (age > 75)).astype(np.int64),
    })  # fmt: skip
    known = {name: pl.Series(random.random(records) >= 0.04) for name in ("diastolic", "drugs")}
    gaps = [pl.when(there).then(name).alias(name) for name, there in known.items()]
    total = pl.when(pl.col("drugs").is_not_null()).then("total_cost").alias("total_cost")
    return table.with_columns(gaps).with_columns(total)


def without_rules(plan: Plan) -> Plan:
    """Return a plan that keeps nothing between its columns but the total of costs."""
    attributes = {**plan.attributes, "discharge_date": Confidential()}
    marked = [one for one in plan.from_data if not one.startswith(("discharge_date", "rules"))]
    return plan.replace(rules=[], attributes=attributes, from_data=marked)


def derived_difference(plan: Plan) -> Plan:
    """Return a plan that derives the difference of two dates instead of the later one."""
    attributes = {**plan.attributes, "discharge_date": Confidential()}
    attributes["length_of_stay"] = Derived(expression="discharge_date - visit_date")
    return plan.replace(attributes=attributes)


def days_and_fees(data: pl.DataFrame) -> str:
    """Say how long visits last, and how the fee goes with it."""
    days = (data["discharge_date"] - data["visit_date"]).dt.total_days().to_numpy()
    related = np.corrcoef(data["fee"].to_numpy(), days)[0, 1]
    return f"days {days.mean():.2f} (sd {days.std():.1f}), correlation with the fee {related:.3f}"


def measure(what: str, table: pl.DataFrame, plan: Plan) -> None:
    """Print how records keep the rules, and what every attack of the verdict finds."""
    release = protect(table, plan, seed=1)
    data = release.data
    early = int((data["discharge_date"] < data["visit_date"]).sum())
    upside_down = int((data["diastolic"] > data["systolic"]).sum())
    print(
        f"{what}: {early:,} of {data.height:,} visits end before they begin, {upside_down} "
        f"diastolic above systolic; {days_and_fees(data)}"
    )
    worst: dict[str, float] = {}
    for figure in verdict(table, release, seed=1).figures:
        if figure.measure in ATTACKS:
            worst[figure.measure] = max(worst.get(figure.measure, 0.0), figure.value)
    for measure_id, value in worst.items():
        print(f"  {ATTACKS[measure_id].label}, at worst {value:.2%}")


def main() -> None:
    """Print the figures of the original and of three releases."""
    warnings.simplefilter("ignore")
    table = hospital_visits()
    print(f"original: {days_and_fees(table)}")
    plan = Plan.propose(table)
    for what, tried in (
        ("without rules", without_rules(plan)),
        ("difference derived", derived_difference(plan)),
        ("proposed", plan),
    ):
        measure(what, table, tried)


if __name__ == "__main__":
    main()
