"""Who is a person: keys that several records share, and what only looks like one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from microveil import Plan
from microveil.plan.propose.proposal import propose_plan

Frame = pl.DataFrame
random = np.random.default_rng(26)


def repeated(units: int, most: int = 8) -> NDArray[np.int64]:
    """Give every unit one to some records, most of them few."""
    return np.repeat(np.arange(units), np.minimum(random.geometric(0.35, units), most))


def drawn(units: int, digits: int = 6) -> NDArray[np.int64]:
    low = 10 ** (digits - 1)
    return np.asarray(random.choice(9 * low, units, replace=False) + low)


def days(units: int) -> NDArray[Any]:
    return np.asarray(np.datetime64("1930-01-01") + random.integers(0, 30_000, units))


def money(records: int, scale: float = 2_000) -> NDArray[np.int64]:
    return np.rint(random.lognormal(0, 0.6, records) * scale).astype(np.int64)


def visits(key: str, numbers: NDArray[Any] | None = None, units: int = 300) -> Frame:
    """Hospital visits in no order: patients have a birth date and a sex, visits all else."""
    who = random.permutation(repeated(units))
    numbers = drawn(units) if numbers is None else numbers
    return Frame({
        key: numbers[who],
        "born": days(units)[who],
        "sex": random.choice(["f", "m"], units)[who],
        "cost": money(len(who)),
        "stay": random.poisson(4, len(who)),
        "ward": random.choice(["A", "B", "C", "D"], len(who)),
        "died": (random.random(len(who)) < 0.01).astype(int),
    })  # fmt: skip


def of_households(key: str = "household", number: int = 250) -> Frame:
    home = repeated(number, 12)
    return Frame({
        key: drawn(number, 5)[home],
        "person_id": random.permutation(len(home)) + 70_000,
        "rooms": random.integers(1, 9, number)[home],
        "rent": money(number, 700)[home],
        "region": np.sort(random.choice(["N", "E", "S", "W"], number))[home],
        "age": random.integers(0, 95, len(home)),
        "income": money(len(home)),
    })  # fmt: skip


def panel(key: str = "pid", people: int = 200, years: int = 5) -> Frame:
    who, year = np.repeat(np.arange(people), years), np.tile(np.arange(2015, 2015 + years), people)
    return Frame({
        key: drawn(people)[who],
        "year": year,
        "born": random.integers(1930, 2000, people)[who],
        "sex": random.choice([1, 2], people)[who],
        "edu": random.integers(1, 7, people)[who],
        "wage": money(len(who)),
        "hours": random.normal(38, 6, len(who)).round(1),
        "gdp": (random.normal(300, 20, years).round(2))[year - 2015],
    })  # fmt: skip


def accounts() -> Frame:
    who = random.permutation(repeated(400, 15))
    return Frame({
        "konto": np.array([f"AT{n}" for n in drawn(400, 9)])[who],
        "opened": days(400)[who],
        "branch": random.choice(["a", "b", "c"], 400)[who],
        "amount": money(len(who), 80),
        "booked": days(len(who)),
        "product": np.array([f"item {n}" for n in range(60)])[random.integers(0, 60, len(who))],
    })  # fmt: skip


def nested() -> Frame:
    """A panel of persons in households, both of which come again and again."""
    home = np.repeat(np.arange(80), random.integers(1, 5, 80))
    who = np.tile(np.arange(len(home)), 3)
    return Frame({
        "pnr": drawn(len(home), 7)[who],
        "hhnr": drawn(80, 5)[home][who],
        "wave": np.repeat([1, 2, 3], len(home)),
        "rooms": random.integers(1, 9, 80)[home][who],
        "sex": random.choice([1, 2], len(home))[who],
        "income": money(len(who)),
    })  # fmt: skip


def moving() -> Frame:
    """A panel whose persons change their household."""
    table = nested()
    return table.with_columns(hhnr=pl.Series(random.permutation(table["hhnr"].to_numpy())))


def unit_of(table: Frame) -> tuple[str | None, tuple[str, ...]]:
    plan = Plan.from_toml(propose_plan(table, "t.csv"))
    return plan.unit, tuple(plan.per_unit)


@pytest.mark.parametrize("key", ["patient", "patient_no", "MRN", "ref", "x1", "Kennzahl"])
@pytest.mark.parametrize("digits", [0, 6, 10])
def test_patients_are_found_whatever_their_numbers_and_headers(key: str, digits: int) -> None:
    numbers = drawn(300, digits) if digits else np.arange(1, 301)
    assert unit_of(visits(key, numbers)) == (key, ("born", "sex"))


@pytest.mark.parametrize("key", ["national_id", "account name", "x1", "email"])
def test_text_and_columns_that_would_be_dropped_are_looked_at_too(key: str) -> None:
    names = np.array([f"{n:x}-{n % 89:02d}" for n in drawn(300)])
    assert unit_of(visits(key, names)) == (key, ("born", "sex"))


@pytest.mark.parametrize("key", ["household", "hhid", "ref", "x1"])
def test_persons_in_households_with_a_key_of_both(key: str) -> None:
    unit, per_unit = unit_of(of_households(key))
    assert (unit, per_unit) == (key, ("rooms", "rent", "region"))


@pytest.mark.parametrize("key", ["pid", "ref", "x1"])
def test_a_panel_of_one_row_per_person_and_year(key: str) -> None:
    assert unit_of(panel(key)) == (key, ("born", "sex", "edu"))


def test_bank_accounts_are_people_and_the_products_they_buy_are_not() -> None:
    assert unit_of(accounts()) == ("konto", ("opened", "branch"))


def test_of_nested_keys_the_coarser_one_and_of_others_the_persons() -> None:
    assert unit_of(nested()) == ("hhnr", ("rooms",))
    unit, per_unit = unit_of(moving())
    assert (unit, set(per_unit)) == ("pnr", {"rooms", "sex"})


def test_few_patients_who_come_twice_are_enough() -> None:
    who = np.append(np.arange(500), random.choice(500, 15, replace=False))
    table = Frame({
        "x1": drawn(500)[who], "born": days(500)[who], "sex": random.choice([1, 2], 500)[who],
        "cost": money(515),
    })  # fmt: skip
    assert unit_of(table)[0] == "x1"
    assert "born" in unit_of(table)[1]


def census() -> Frame:
    n = 800
    wage = money(n, 30_000) // 500 * 500
    return Frame({
        "wage": wage, "fica": wage * 153 // 2000, "tax": money(n, 4_000),
        "band": np.digitize(wage, [15_000, 30_000, 60_000]), "age": random.integers(18, 90, n),
    })  # fmt: skip


def renamed(make: Callable[[], Frame]) -> Callable[[], Frame]:
    """Take away what names say."""

    def anonymous() -> Frame:
        table = make()
        return table.rename({name: f"v{number}" for number, name in enumerate(table.columns)})

    return anonymous


def regions() -> Frame:
    """Wards of many people each, with what is known of wards."""
    where = random.integers(0, 30, 900)
    return Frame({
        "ward": where + 100, "deprived": random.normal(size=30).round(3)[where],
        "mayor": np.array([f"M{n}" for n in range(30)])[where], "age": random.integers(0, 90, 900),
        "income": money(900),
    })  # fmt: skip


def postcodes() -> Frame:
    codes = np.sort(drawn(220, 4))
    canton = np.sort(random.integers(0, 26, 220))
    where = random.integers(0, 220, 700)
    return Frame({
        "postcode": codes[where], "canton": canton[where], "language": (canton // 9)[where],
        "age": random.integers(0, 90, 700), "income": money(700),
    })  # fmt: skip


def ages() -> Frame:
    age = random.integers(0, 95, 900)
    return Frame({
        "age": age, "born": 2024 - age, "pension": (age >= 65).astype(int), "band": age // 10,
        "premium": np.sort(random.lognormal(5, 1, 95)).round(2)[age], "income": money(900),
    })  # fmt: skip


def years() -> Frame:
    year = random.integers(1960, 2020, 900)
    return Frame({
        "year": year, "inflation": random.normal(2, 1, 60).round(2)[year - 1960],
        "income": money(900), "sex": random.choice([1, 2], 900),
    })  # fmt: skip


def catalogue() -> Frame:
    what = random.integers(0, 200, 800)
    return Frame({
        "product_id": drawn(200, 5)[what], "price": (money(200, 30) / 4)[what],
        "colour": random.choice(["red", "blue", "green"], 200)[what],
        "pieces": random.poisson(2, 800),
        "paid": money(800, 60),
    })  # fmt: skip


def sorted_integers() -> Frame:
    """A table in the order of two columns, so that neighbours are alike."""
    n = 600
    return Frame({
        "x": np.sort(random.integers(0, 400, n)), "y": np.sort(random.integers(0, 12, n)),
        "z": np.sort(random.choice(["a", "b", "c"], n)), "w": money(n),
    })  # fmt: skip


def noise() -> Frame:
    """Repeated keys of no name, and nothing that agrees."""
    n = 900
    return Frame({
        "x1": random.choice(drawn(300), n), "sex": random.choice([1, 2], n),
        "rare": (random.random(n) < 0.005).astype(int), "income": money(n),
        "empty": pl.Series([None] * (n - 3) + [1, 2, 3]),
    })  # fmt: skip


NO_UNIT = [census, regions, postcodes, ages, years, catalogue, sorted_integers, noise]


@pytest.mark.parametrize("make", NO_UNIT, ids=lambda make: make.__name__)
def test_what_is_no_person(make: Callable[[], Frame]) -> None:
    assert unit_of(make()) == (None, ())


@pytest.mark.parametrize(
    "make", [census, regions, postcodes, ages, years, sorted_integers, noise],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_what_is_no_person_under_any_name(make: Callable[[], Frame]) -> None:
    assert unit_of(renamed(make)()) == (None, ())


@pytest.mark.parametrize("seed", range(5))
def test_what_agrees_by_chance_is_not_declared_per_unit(seed: int) -> None:
    table = visits("patient")
    one_by_one = table.unique("patient").vstack(table.sample(3, seed=seed))
    assert "died" not in unit_of(one_by_one)[1]


def test_a_key_that_is_missing_in_some_records_is_no_unit_and_the_plan_says_why() -> None:
    table = visits("patient_no")
    gaps = pl.when(pl.int_range(pl.len()) >= 7).then(pl.col("patient_no")).alias("patient_no")
    text = propose_plan(table.with_columns(gaps), "t.csv")
    assert Plan.from_toml(text).unit is None
    assert "first fill it in where it is missing, in 7 records" in text


def test_subjects_of_pupils_are_not_those_of_a_trial() -> None:
    subjects = np.array([f"s{n:02}" for n in range(30)])
    marks = Frame({
        "subject": subjects[random.integers(0, 30, 450)], "mark": random.integers(1, 6, 450),
        "hours": money(450, 30),
    })  # fmt: skip
    assert unit_of(marks)[0] is None
    assert unit_of(visits("subject"))[0] == "subject"


def test_every_type_of_column_is_looked_at_or_left_alone() -> None:
    table = visits("x1").with_columns(
        pl.col("x1").cast(pl.String).cast(pl.Categorical),
        pl.concat_list("cost", "stay").alias("list"),
        pl.lit(b"x").alias("bytes"),
        pl.lit(None).alias("empty"),
    )
    table = table.with_columns(pl.Series("object", [object()] * table.height, dtype=pl.Object))
    assert unit_of(table)[0] == "x1"


@pytest.mark.parametrize("key", ["^x$", "*", "^.*$", "len", "column"])
def test_columns_of_any_name_are_looked_at(key: str) -> None:
    table = visits(key).rename({"born": "^b$", "sex": "*" if key != "*" else "len"})
    weighted = table.with_columns(pl.lit(3.0).alias("weights"), pl.lit(2.5).alias("^w_weights$"))
    assert unit_of(weighted)[0] == key
    assert "^b$" in unit_of(weighted)[1]


def test_units_of_a_large_table_are_compared_in_all_of_their_records() -> None:
    who = np.repeat(np.arange(60_000), 2)
    born, sex = days(60_000)[who], random.choice([1, 2], 60_000)[who]
    table = Frame({"x1": who + 1_000_000, "born": born, "sex": sex, "cost": money(len(who))})
    assert unit_of(table) == ("x1", ("born", "sex"))
    sex[0] = 3 - sex[0]  # far from the records that are looked at
    assert unit_of(table.with_columns(sex=pl.Series(sex))) == ("x1", ("born",))


def test_the_plan_says_what_was_found_and_how_to_change_it() -> None:
    table = visits("x1")
    text = propose_plan(table, "t.csv")
    plan = Plan.from_toml(text)
    most = table["x1"].value_counts()["count"].max()
    assert plan.records_per_person == most
    assert plan.attributes["x1"].role == "identifier"
    assert {"unit", "records_per_person", "born: per_unit", "sex: per_unit"} <= set(plan.from_data)
    assert f"(from the data) 300 units were found, of up to {most} records" in text
    assert "set records_per_person = 1, and remove unit and per_unit" in text


def test_nothing_shared_is_said_as_before() -> None:
    text = propose_plan(census(), "t.csv")
    assert "unit" not in Plan.from_toml(text).from_data
    assert "records_per_person = 1 " in text
