"""A hospital's visits: several of each patient, with codes, dates and missing values."""

import numpy as np
import polars as pl

WARDS, SHARES = ("cardiology", "geriatrics", "maternity", "medicine", "surgery"), (2, 2, 1, 3, 2)
CODES = ("E11", "I10", "I21", "J18", "K35", "N39", "O80", "S72")
AGES = (0, 40, 60, 75, 130)
"""Where age groups begin and end."""


def visits(patients: int = 1_500, seed: int = 28) -> pl.DataFrame:
    """Make up to six visits of each patient; of the older more end in death."""
    random = np.random.default_rng(seed)
    number = np.minimum(1 + random.poisson(1.2, patients), 6)
    whose = np.repeat(np.arange(patients), number)
    records = len(whose)
    born = (np.datetime64("1930-01-01") + random.integers(0, 27_000, patients))[whose]
    admitted = np.datetime64("2022-01-01") + random.integers(0, 1_000, records)
    age = (admitted - born).astype(int) / 365.25
    stay = np.minimum(random.gamma(1.5, 3, records), 60).astype(int)
    table = pl.DataFrame(
        {
            "patient_id": [f"P{one:05d}" for one in whose],
            "birth_date": born,
            "sex": random.choice(["f", "m"], patients)[whose],
            "admitted": admitted,
            "discharged": admitted + stay,
            "ward": random.choice(WARDS, records, p=np.array(SHARES) / 10),
            "diagnosis": random.choice(CODES, records),
            "systolic_bp": (105 + 0.45 * age + random.normal(0, 12, records)).round().astype(int),
            "bmi": random.normal(27, 4, records).round(1),
            "died": (random.random(records) < 0.02 + 0.0012 * np.maximum(age - 40, 0)).astype(int),
        }
    )
    for name, share in (("systolic_bp", 0.06), ("bmi", 0.1)):
        gone = pl.Series(random.random(records) < share)
        table = table.with_columns(pl.when(~gone).then(name).alias(name))
    return table


def figures(table: pl.DataFrame) -> list[float]:
    """Count deaths, and measure shares of wards and mean blood pressure by age group."""
    years = (table["admitted"] - table["birth_date"]).dt.total_days() / 365.25
    group = pl.Series("group", np.searchsorted(AGES, years, side="right"))
    means = table.with_columns(group).group_by("group").agg(pl.mean("systolic_bp")).sort("group")
    shares = [(table["ward"] == ward).mean() for ward in WARDS]
    return [float(table["died"].sum()), *shares, *means["systolic_bp"]]
