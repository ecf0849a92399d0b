"""A made-up survey: persons in households, with strata and sampling weights."""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.plan.plan import Plan
from microveil.plan.roles import Confidential

STRATA = ("North", "East", "South", "West", "Capital")
DWELLINGS = ("flat", "house", "farm", "shared")
WORK = ("child", "studies", "employed", "unemployed", "retired")
MOST_MEMBERS = 8


Whole = NDArray[np.int64]

_SHARES = (0.22, 0.24, 0.2, 0.18, 0.16)
_FRACTIONS = (0.004, 0.005, 0.003, 0.006, 0.002)
_SIZES = (0.3, 0.31, 0.15, 0.14, 0.06, 0.025, 0.01, 0.005)


def survey(households: int = 12_000) -> pl.DataFrame:
    """Make the same survey every time, of 5 persons for every 2 households. None of them exists.

    Households were drawn by region: `sampling_weight` says for how many persons of the
    population one stands. What is of the household is the same for all its members.

    Examples
    --------
    >>> table = survey(200)
    >>> table.height, table["household_id"].n_unique()
    (500, 200)
    """
    random = np.random.default_rng(18)
    size = _sizes(households, random)
    region = random.choice(len(STRATA), households, p=_SHARES)
    urban = random.random(households) < np.where(region == len(STRATA) - 1, 0.95, 0.55)
    home = np.repeat(np.arange(households), size)
    order = np.arange(len(home)) - np.repeat(np.cumsum(size) - size, size)
    age, sex = _people(home, order, households, random)
    work = _work(age, random)
    education = np.where(age < 16, 0, 1 + random.binomial(2, np.where(age < 50, 0.55, 0.35)))
    level = random.normal(0, 0.25, households)
    earns = np.log(1.0 + 0.35 * education) + level[home] + 0.12 * urban[home]
    wage = (work == 2) * random.lognormal(9.9, 0.35, len(home)) * np.exp(earns - 0.5)
    pension = (work == 4) * random.lognormal(9.5, 0.3, len(home))
    income = np.bincount(home, wage + pension) + random.gamma(2.0, 1_500, households)
    return pl.DataFrame({
        "household_id": [f"H{number:05d}" for number in home + 1],
        "person_id": [f"H{n:05d}-{m}" for n, m in zip(home + 1, order + 1, strict=True)],
        "region": np.array(STRATA)[region[home]],
        "area": np.where(urban, "urban", "rural")[home],
        "sampling_weight": (1 / np.array(_FRACTIONS)).round(1)[region[home]],
        "dwelling": np.array(DWELLINGS)[_dwelling(size, urban, random)][home],
        "rooms": (1 + random.poisson(1.2 + 0.6 * size)).clip(1, 12)[home],
        "household_income": (np.rint(income / 10) * 10).astype(np.int64)[home],
        "age": age,
        "sex": sex,
        "education": np.array(["none", "primary", "secondary", "tertiary"])[education],
        "work": np.array(WORK)[work],
        "wage": (np.rint(wage / 10) * 10).astype(np.int64),
    })  # fmt: skip


def survey_plan(**settings: object) -> Plan:
    """Return a plan for the survey: households are units, and regions strata.

    What is of persons has clusters of more records, and more of epsilon, since a household has up
    to 8 values of it.

    Examples
    --------
    >>> survey_plan().unit, survey_plan().within
    ('household_id', ('region',))
    """
    chosen: dict[str, object] = {
        "epsilon": 8.0, "method": "DP-UM", "k": 100, "post": "isotonic",
        "unit": "household_id", "records_per_person": MOST_MEMBERS, "within": ["region"],
        "anonymity": 50,
    }  # fmt: skip
    return Plan(attributes={
        "household_id": "identifier", "person_id": "identifier",
        "region": "kept", "sampling_weight": "sampling_weight",
        "area": Confidential(per_unit=True, kind="nominal", categories=["urban", "rural"]),
        "dwelling": Confidential(per_unit=True, kind="nominal", categories=DWELLINGS),
        "rooms": Confidential(per_unit=True, kind="integer", lower=1, upper=12),
        "household_income": Confidential(
            per_unit=True, kind="integer", bottom=0, top=200_000, k=50, budget_share=2.0
        ),
        "age": Confidential(kind="integer", lower=0, upper=100, k=300, budget_share=2.0),
        "sex": Confidential(kind="nominal", categories=["female", "male"], budget_share=0.5),
        "education": Confidential(
            kind="ordinal", categories=["none", "primary", "secondary", "tertiary"]
        ),
        "work": Confidential(kind="nominal", categories=WORK),
        "wage": Confidential(kind="integer", bottom=0, top=80_000, k=500, budget_share=3.0),
    }, **{**chosen, **settings})  # type: ignore[arg-type] # fmt: skip


def _sizes(households: int, random: np.random.Generator) -> Whole:
    """Draw how many members households have, 5 for every 2 of them in all."""
    size = 1 + random.choice(MOST_MEMBERS, households, p=_SIZES)
    missing = households * 5 // 2 - int(size.sum())
    step = 1 if missing > 0 else -1
    can = np.flatnonzero(size < MOST_MEMBERS if missing > 0 else size > 1)
    size[random.choice(can, abs(missing), replace=False)] += step
    return size


def _people(
    home: Whole, order: Whole, households: int, random: np.random.Generator
) -> tuple[Whole, NDArray[np.str_]]:
    """Make the first member of each household, mostly a partner of that one, and children."""
    first = np.clip(random.normal(50, 18, households), 18, 95)[home]
    partner = np.clip(first + random.normal(-1, 4, len(home)), 18, 97)
    child = np.clip(first - random.normal(29, 5, len(home)) - 2 * order, 0, 60)
    couple = (random.random(households) < 0.75)[home]
    age = np.where(order == 0, first, np.where((order == 1) & couple, partner, child))
    female = random.random(len(home)) < 0.51
    other = (order == 1) & couple
    female[other] = ~female[np.flatnonzero(other) - 1]
    return np.rint(age).astype(np.int64), np.where(female, "female", "male")


def _work(age: Whole, random: np.random.Generator) -> Whole:
    chance = random.random(len(age))
    grown = np.where(chance < 0.78, 2, np.where(chance < 0.85, 3, 1))
    young = np.where(chance < 0.65, 1, 2)
    return np.select([age < 6, age < 22, age < 66], [np.zeros_like(age), young, grown], 4)


def _dwelling(size: Whole, urban: NDArray[np.bool_], random: np.random.Generator) -> Whole:
    chance = random.random(len(size)) + 0.08 * size
    town = np.where(chance < 0.85, 0, np.where(chance < 1.3, 1, 3))
    land = np.where(chance < 0.35, 0, np.where(chance < 0.95, 1, 2))
    return np.where(urban, town, land)
