"""A made-up table of people: mixed types, missing values, an identifier, a derived total."""

from datetime import date

import numpy as np
import polars as pl

from microveil.plan.fields import AttributesGiven
from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential, Derived
from microveil.plan.taxonomy import leaf_paths

REGIONS = ("North", "East", "South", "West")
EDUCATION = ("primary", "secondary", "tertiary")
OCCUPATIONS = {
    "services": {"health": ["nurse", "doctor"], "trade": ["clerk", "seller"]},
    "crafts": ["builder", "farmer"],
}


def people(records: int = 1_000) -> pl.DataFrame:
    """Make the same sample of people every time. None of them exists.

    Examples
    --------
    >>> people(3).columns
    ['person', 'region', 'age', 'education', 'occupation', 'since', 'children', 'hours', 'wages', \
'other', 'weight', 'income']
    """
    random = np.random.default_rng(1)
    age = random.integers(18, 90, records)
    works = random.random(records) < np.where(age < 66, 0.8, 0.1)
    hours = works * (random.normal(34, 9, records).clip(4, 70) * 2).round() / 2
    wages = works * random.lognormal(10.2, 0.45, records) * (hours + 10) / 40
    other = (random.random(records) < 0.6) * random.gamma(1.5, 1_600, records)
    weight = random.normal(74, 13, records).clip(38, 180).round(1)
    education, occupation, since = _background(age)
    return pl.DataFrame(
        {
            "person": [f"P{number:04d}" for number in range(1, records + 1)],
            "region": random.choice(REGIONS, records, p=[0.2, 0.3, 0.4, 0.1]),
            "age": age,
            "education": education,
            "occupation": occupation,
            "since": since,
            "children": random.poisson(1.4, records),
            "hours": hours,
            "wages": wages.astype(np.int64),
            "other": _sometimes_missing(other.astype(np.int64), random, 0.05),
            "weight": _sometimes_missing(weight, random, 0.03),
        }
    ).with_columns(income=pl.col("wages") + pl.col("other"))


def _background(
    age: np.typing.NDArray[np.int64],
) -> tuple[list[str], list[str], pl.Series]:
    """Make an education, an occupation that goes with it, and the day people moved in."""
    random = np.random.default_rng(2)
    level = random.binomial(2, np.where(age < 50, 0.6, 0.4))
    likely = np.array(
        [[1, 0, 3, 4, 6, 6], [5, 0, 6, 5, 3, 1], [3, 5, 4, 2, 1, 1]], dtype=np.float64
    )
    chances = np.cumsum(likely / likely.sum(axis=1, keepdims=True), axis=1)
    number = (random.random(len(age))[:, np.newaxis] > chances[level]).sum(axis=1)
    days = (random.random(len(age)) * (age - 16) * 365).astype(np.int64)
    since = pl.select(pl.lit(date(2025, 1, 1)) - pl.duration(days=pl.lit(pl.Series(days))))
    names = list(leaf_paths(OCCUPATIONS))
    return (
        [EDUCATION[code] for code in level],
        [str(names[code]) for code in number],
        since.to_series().alias("since"),
    )


def _sometimes_missing(
    values: np.typing.NDArray[np.generic], random: np.random.Generator, share: float
) -> pl.Series:
    missing = pl.Series(random.random(len(values)) < share)
    return pl.select(pl.when(~missing).then(pl.Series(values))).to_series()


def people_plan(epsilon: float = 1.0) -> Plan:
    """Make a plan for the sample that masks it as the paper does."""
    return Plan.published(epsilon=epsilon, missing="keep", attributes=_ROLES)


def recommended_people_plan(epsilon: float = 1.0) -> Plan:
    """Make the plan that `microveil demo` uses for the sample; nothing is kept as it is."""
    region = Confidential(kind="nominal", categories=REGIONS, method="DP-UM", k=50)
    roles = {**_ROLES, "region": region}
    return Plan(epsilon=epsilon, missing="keep", attributes=roles)


_ROLES: AttributesGiven = {
    "person": "identifier",
    "region": "kept",
    "age": Confidential(lower=0, upper=120),
    "education": Confidential(kind="ordinal", categories=EDUCATION, method="DP-UM", k=50),
    "occupation": Confidential(kind="nominal", taxonomy=OCCUPATIONS, method="DP-UM", k=50),
    "since": Confidential(lower=date(1930, 1, 1), upper=date(2025, 1, 1)),
    "children": Confidential(lower=0, upper=20),
    "hours": Confidential(lower=0, upper=100, decimals=1),
    "wages": Confidential(lower=0, upper=1_000_000),
    "other": Confidential(lower=0, upper=1_000_000),
    "weight": Confidential(lower=20, upper=300, decimals=1),
    "income": Derived(expression="wages + other"),
}
