"""A made-up clinic: its patients and their visits, year after year."""

import numpy as np
import polars as pl

from microveil.types import Integers

_EVER, _FIRST, _TURNOVER = 1_400, 1_000, 0.05


def patients(year: int = 1) -> pl.DataFrame:
    """Make the patients of a year, the same every time: a row each. None of them exists.

    Each year one in twenty leaves and as many join. In the first year some weights are in pounds;
    year 0 is that year corrected.

    Examples
    --------
    >>> patients(1).height, patients(1)["patient"].is_in(patients(2)["patient"].implode()).sum()
    (1000, 950)
    """
    who, random = _here(max(1, year)), np.random.default_rng(30)
    birth = random.integers(1935, 2006, _EVER)
    female = random.random(_EVER) < 0.52
    weight = random.normal(78 - 9 * female + 0.1 * (2006 - birth), 11).clip(42, 160)
    weight += (max(1, year) - 1) * random.normal(0.3, 1.5, _EVER)
    income = np.rint(random.lognormal(10.1, 0.5, _EVER) / 100) * 100
    in_pounds = (random.random(_EVER) < 0.02) & (year == 1)
    table = {
        "birth_year": birth,
        "height": (175 - 12 * female + random.normal(0, 6, _EVER)).round(),
        "weight": np.where(in_pounds, 2.2046 * weight, weight).round(1),
        "income": income.astype(np.int64),
    }
    return pl.DataFrame({"patient": _names(who), **{n: of[who] for n, of in table.items()}})


def visits(year: int = 1) -> pl.DataFrame:
    """Make the visits of the patients of a year: one, two or three each.

    Some have another number of them from one year to the next.

    Examples
    --------
    >>> visits(1)["patient"].n_unique(), visits(1).height
    (1000, 1848)
    """
    who, ever = _here(year), np.random.default_rng(31)
    usual = 1 + ever.choice(3, _EVER, p=[0.4, 0.35, 0.25])
    pressure = ever.normal(0, 9, _EVER)
    random = np.random.default_rng(100 + year)
    often = np.where(random.random(_EVER) < 0.03, 1 + random.integers(0, 3, _EVER), usual)
    rows = np.repeat(who, often[who])
    one = dict(zip(patients(year)["patient"], patients(year)["weight"], strict=True))
    weight = np.array([one[name] for name in _names(rows)])
    systolic = 88 + 0.5 * weight.clip(42, 170) + pressure[rows] + random.normal(0, 6, len(rows))
    cost = random.gamma(2.0, 40, len(rows)) + 1.5 * np.abs(systolic - 120)
    return pl.DataFrame(
        {
            "patient": _names(rows),
            "systolic": np.rint(systolic).astype(np.int64),
            "minutes": 5 * random.integers(2, 10, len(rows)),
            "cost": np.rint(cost).astype(np.int64),
        }
    )


def _here(year: int) -> Integers:
    """Return the patients of a year: those of the year before without some, and new ones."""
    random, here = np.random.default_rng(32), np.arange(_FIRST)
    joined = round(_TURNOVER * _FIRST)
    for before in range(1, year):
        stay = random.choice(here, _FIRST - joined, replace=False)
        new = _FIRST + (before - 1) * joined + np.arange(joined)
        here = np.sort(np.concatenate([stay, new]))
    return here


def _names(who: Integers) -> list[str]:
    return [f"A{number:04d}" for number in who + 1]
