"""Numbers that number things are never masked as amounts, whatever their column is called."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from microveil import Plan, protect
from microveil.plan.propose.proposal import propose_plan

Generator = np.random.Generator
Numbers = NDArray[Any]


def even(random: Generator, n: int) -> Numbers:
    return random.choice(20_000, n, replace=False) + 17


def with_late_blocks(random: Generator, n: int) -> Numbers:
    """Draw numbers as the register of American utilities has them: most small, some far up."""
    late = n // 11
    first = random.choice(20_000, n - late, replace=False) + 17
    return random.permutation(np.append(first, random.choice(12_000, late, replace=False) + 50_000))


def of_years(random: Generator, n: int) -> Numbers:
    """Number on from 1 in every year: 20170001, 20170002, ..., 20180001, ..."""
    year = np.sort(random.integers(2012, 2024, n))
    within = np.arange(n) - np.searchsorted(year, year)
    return random.permutation(year * 10_000 + within * 3 + 1)


def with_gaps(random: Generator, n: int) -> Numbers:
    return random.permutation(np.cumsum(random.integers(1, 40, n)) + 1_200)


def hashes(random: Generator, n: int) -> Numbers:
    return random.integers(0, 2**62, n)


def short_ones(random: Generator, n: int) -> Numbers:
    return random.choice(9_000, n, replace=False) + 1_000


def checked(random: Generator, n: int) -> Numbers:
    """Append a check digit to seven others."""
    stem = random.choice(9_000_000, n, replace=False) + 1_000_000
    digits = stem[:, np.newaxis] // 10 ** np.arange(7) % 10
    return np.asarray(stem * 10 + (digits * (1 + np.arange(7) % 2 * 2)).sum(axis=1) % 10)


KEYS = [even, with_late_blocks, of_years, with_gaps, hashes, short_ones, checked]


def companies(numbers: Numbers, random: Generator, header: str = "x1") -> pl.DataFrame:
    n = len(numbers)
    customers = random.lognormal(8, 1.4, n)
    return pl.DataFrame({
        header: numbers,
        "customers": np.rint(customers),
        "revenue": np.rint(customers * random.lognormal(7, 0.3, n)),
        "sales": (customers * random.lognormal(2, 0.4, n)).round(1),
        "ownership": random.choice(["public", "private", "cooperative"], n),
    })  # fmt: skip


def role(table: pl.DataFrame, name: str = "x1") -> str:
    return Plan.propose(table).attributes[name].role


@pytest.mark.parametrize("make", KEYS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("n", [30, 259, 1_500])
@pytest.mark.parametrize("header", ["x1", "utility_id", "utnum", "Versorger"])
def test_numbers_of_utilities_are_dropped(
    make: Callable[[Generator, int], Numbers], n: int, header: str
) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        assert role(companies(make(random, n), random, header), header) == "identifier"


@pytest.mark.parametrize("make", KEYS, ids=lambda make: make.__name__)
def test_numbers_that_some_records_share_are_dropped(
    make: Callable[[Generator, int], Numbers],
) -> None:
    """As where a utility reports for each state that it serves."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        numbers = np.repeat(make(random, 259), np.minimum(random.geometric(0.6, 259), 9))
        table = companies(random.permutation(numbers), random)
        assert role(table) == "identifier"
        assert role(table.with_columns(pl.col("x1").cast(pl.Float64))) == "identifier"
        gaps = pl.when(pl.int_range(pl.len()) % 9 > 0).then(pl.col("x1")).alias("x1")
        assert role(table.with_columns(gaps)) == "identifier"


@pytest.mark.parametrize("header", ["orders", "value", "size", "points"])
def test_no_name_of_an_amount_makes_one_of_numbers_one_by_one(header: str) -> None:
    random = np.random.default_rng(5)
    for numbers in (random.permutation(200) + 31, random.choice(9 * 10**9, 200) + 10**9):
        assert role(companies(numbers, random, header), header) == "identifier"


def test_codes_of_companies_are_no_categories() -> None:
    random = np.random.default_rng(6)
    numbers = np.repeat(even(random, 80), 4)
    table = companies(numbers, random, "utility_code")
    assert role(table, "utility_code") == "identifier"


@pytest.mark.parametrize("header", ["hhid", "customer_code", "x1"])
def test_hashes_of_64_bits_and_broken_numbers_are_no_amounts(header: str) -> None:
    random = np.random.default_rng(7)
    table = companies(random.integers(2**62, 2**64 - 1, 200, dtype=np.uint64), random, header)
    assert role(table, header) == "identifier"
    if header != "x1":
        gaps = table.with_columns(pl.when(pl.int_range(200) > 9).then(7.0).otherwise(float("nan")))
        broken = table.with_columns(gaps["literal"].alias(header))
        assert role(broken, header) == "identifier"


def test_a_few_companies_are_enough() -> None:
    random = np.random.default_rng(1)
    assert role(companies(even(random, 12) + 10_000, random)) == "identifier"


AMOUNTS: dict[str, Callable[[Generator, int], Numbers]] = {
    "income in euros": lambda random, n: np.rint(random.lognormal(10, 0.6, n)),
    "balances, some below 0": lambda random, n: np.rint(random.normal(3_000, 9_000, n)),
    "populations": lambda random, n: np.rint(random.lognormal(8.5, 1.5, n)),
    "prices of houses": lambda random, n: np.rint(random.lognormal(12.4, 0.4, n)) // 100 * 100,
    "grams at birth": lambda random, n: np.rint(random.normal(3_300, 500, n)),
    "steps in a day": lambda random, n: np.rint(random.gamma(4, 2_000, n)),
    "wages and none": lambda random, n: np.rint(
        random.lognormal(10, 1, n) * (random.random(n) < 0.6)
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", AMOUNTS)
@pytest.mark.parametrize("n", [600, 1_500])
def test_amounts_are_masked_without_a_telling_name(what: str, n: int) -> None:
    for seed in range(4):
        random = np.random.default_rng(seed)
        values = AMOUNTS[what](random, n).astype(np.int64)
        assert role(companies(values, random)) == "confidential"
        assert role(pl.DataFrame({"x1": values, "y": random.normal(size=n)})) == "confidential"


def test_even_amounts_are_masked_by_their_name_or_if_they_go_with_others() -> None:
    random = np.random.default_rng(2)
    evenly = even(random, 300)
    table = companies(evenly, random)
    assert role(table) == "identifier"
    assert role(table.rename({"x1": "income"}), "income") == "confidential"
    tax = pl.Series("tax", evenly * 0.21 + random.normal(size=300) * 300)
    assert role(table.with_columns(tax)) == "confidential"


def test_what_is_not_clear_is_dropped_and_said() -> None:
    random = np.random.default_rng(3)
    text = propose_plan(companies(with_late_blocks(random, 259), random), "utilities.csv")
    section = text[text.index("[attributes.x1]") : text.index("[attributes.customers]")]
    assert "dropped: may be keys as well as amounts; masked, keys would be published" in section
    assert 'instead: role = "confidential"' in section


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_no_number_of_a_utility_is_in_its_release() -> None:
    random = np.random.default_rng(4)
    table = companies(with_late_blocks(random, 259), random)
    released = protect(table, Plan.propose(table), seed=1).data
    assert "x1" not in released.columns


@pytest.mark.parametrize("file", ["census.csv", "winequality-white.csv"])
@pytest.mark.parametrize("named", [True, False])
def test_all_columns_of_the_papers_tables_stay_masked(
    paper_data: Path, file: str, *, named: bool
) -> None:
    """Census has no ties at all in five columns, as keys have none."""
    table = pl.read_csv(paper_data / file)
    if not named:
        table = table.rename({name: f"v{n}" for n, name in enumerate(table.columns)})
    plan = Plan.propose(table)
    dropped = {name for name, a in plan.attributes.items() if a.role == "identifier"}
    assert dropped <= ({"v0"} if file == "census.csv" else set())  # the weight, if no name says it
    assert {a.role for a in plan.attributes.values()} <= {"confidential", "derived", "identifier"}
    assert plan.unit is None
    if named and file == "census.csv":
        assert plan.sampling_weights == ("AFNLWGT",)
