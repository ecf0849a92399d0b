"""Tables of any types, names and libraries, under any plan that can be written down."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path
from random import Random
from typing import Any, get_args

import polars as pl

from fuzz import values
from fuzz.checks import Broken, check_error, check_release, frame_of, same, save_table, secrets_of
from microveil import MicroveilError, Plan, evaluate, protect, protect_file, verdict
from microveil.core.choices import GuaranteeName, MethodName, Missing, Partition, Pooling, Post
from microveil.errors import noted
from microveil.release.release import Release
from microveil.types import UserTable

_LIBRARIES: dict[str, Callable[[pl.DataFrame], UserTable]] = {
    "polars": lambda table: table.clone(),
    "pandas": pl.DataFrame.to_pandas,
    "pyarrow": lambda table: table.cast({pl.Enum: pl.String}).to_arrow(),
}


def run(random: Random, folder: Path) -> str:
    """Protect a table in memory, and again from a file a column at a time."""
    table = make_table(random)
    save_table(table, folder)
    with noted():
        try:
            plan = make_plan(random, table)
        except MicroveilError as error:
            check_error(error, secrets_of(table, _declared(table)))
            return "plan refused"
        (folder / "plan.toml").write_text(plan.to_toml(), encoding="utf-8")
        return _protect(random, table, plan, folder)


def _protect(random: Random, table: pl.DataFrame, plan: Plan, folder: Path) -> str:
    library, seed = random.choice(list(_LIBRARIES)), random.getrandbits(30)
    data = _LIBRARIES[library](table)
    before = frame_of(data).clone()
    declared = {
        x for a in plan.confidential.values() for x in (*a.declared_categories, a.lower, a.upper)
    }
    secrets = secrets_of(table, declared)
    try:
        release = protect(data, plan, keep_order=True, seed=seed)
    except MicroveilError as error:
        check_error(error, secrets)
        return "refused"
    if not same(frame_of(data), before):
        raise Broken("changed value", "in the table that came in")
    check_release(before, plan, release, secrets)
    if library == "polars" and random.random() < 0.5:
        _check_large(table, plan, release, seed, folder)
    if random.random() < 0.2:
        return _judge(data, release, secrets)
    return "released"


def _judge(data: UserTable, release: Release, secrets: set[str]) -> str:
    """Look for people in a release."""
    try:
        verdict(data, release, seed=1)
        evaluate(data, release)
    except MicroveilError as error:
        check_error(error, secrets)
        return "not judged"
    return "judged"


def _check_large(
    table: pl.DataFrame, plan: Plan, release: Release, seed: int, folder: Path
) -> None:
    """Check that the engine for large files releases the same."""
    source = folder / "source.parquet"
    table.write_parquet(source)
    written = protect_file(source, plan, folder / "large.parquet", seed=seed, keep_order=True)
    if not same(pl.read_parquet(written.protected), frame_of(release.data)):
        raise Broken("engines", "the engine for large files releases something else")


def make_table(random: Random) -> pl.DataFrame:
    """Make a table of a few columns, most of them usable."""
    records = random.choice([0, 1, 3, *[random.randint(8, 60)] * 20, 400])
    makers = random.choice([values.COLUMNS, values.NUMERIC, (values.integers, values.reals)])
    named = values.names(random, random.randint(1, 6))
    return pl.DataFrame({name: values.column(random, records, makers) for name in named})


def make_plan(random: Random, table: pl.DataFrame) -> Plan:
    """Write a plan for a table; many do not fit it, or contradict themselves."""
    roles = {name: _role(random, table[name]) for name in table.columns}
    if random.random() < 0.9 and "confidential" not in {role["role"] for role in roles.values()}:
        roles[random.choice(table.columns)] = {"role": "confidential"}
    make = random.choice([Plan, Plan.published])
    settings = _settings(random, list(roles))
    if "unit" not in settings:
        for role in roles.values():
            role.pop("per_unit", None)
    return make(**settings, attributes=roles)


def _settings(random: Random, names: list[str]) -> Any:  # noqa: ANN401 - what a plan takes
    settings: dict[str, Any] = {"epsilon": random.choice([0.01, 0.1, 1, 1, 1.0, 10, 1e-9, 1e6])}
    optional: dict[str, Callable[[], object]] = {
        "method": lambda: random.choice(get_args(MethodName)),
        "k": lambda: random.choice([3, 3, 3, 4, 5, 5, 10, "auto", 1, 1000]),
        "partition": lambda: random.choice(get_args(Partition)),
        "cap": lambda: random.choice([20, 400]),
        "trim": lambda: random.choice([0.0, 0.1, 0.25, 0.49]),
        "guarantee": lambda: random.choice(get_args(GuaranteeName)),
        "post": lambda: random.choice(get_args(Post)),
        "missing": lambda: random.choice(["keep", "keep", *get_args(Missing)]),
        "records_per_person": lambda: random.choice([1, 2, 5]),
        "domain_from_data": lambda: True,
        "anonymity": lambda: random.choice([2, 3, 5, 10]),
        "pooling": lambda: random.choice(get_args(Pooling)),
        "groups": lambda: [random.sample(names, min(2, len(names)))],
        "within": lambda: random.sample(names, 1),
        "unit": lambda: random.choice(names),
        "exact_from": lambda: random.choice([0, 1, 3, 10]),
        "rules": lambda: [_rule(random, names) for _ in range(random.choice([1, 1, 2]))],
    }
    often = {
        "k": 0.9, "missing": 0.8, "domain_from_data": 0.7, "guarantee": 0.15, "cap": 0.1,
        "rules": 0.1, "within": 0.15, "unit": 0.15,
    }  # fmt: skip
    for name, choose in optional.items():
        if random.random() < often.get(name, 0.35):
            settings[name] = choose()
    if "anonymity" not in settings or random.random() < 0.8:
        settings.pop("groups", None)
    return settings


def _rule(random: Random, names: list[str]) -> str:
    one, other = ('"' + random.choice(names).replace('"', '""') + '"' for _ in range(2))
    sign = random.choice(["<=", "<", "==", ">="])
    right = random.choice([other, other, f"2 * {other}", f"{other} + {one}", f"{other} - 1e3", "5"])
    return f"{one} {sign} {right}"


def _role(random: Random, column: pl.Series) -> dict[str, Any]:
    role = random.choice(["confidential"] * 6 + ["kept"] * 3 + ["identifier", "sampling_weight"])
    if role != "confidential":
        return {"role": role}
    settings: dict[str, Any] = {"role": role}
    if _few(column):
        settings |= {
            "kind": random.choice(["nominal", "ordinal"]),
            "categories": _categories(column),
        }
        if random.random() < 0.2:
            settings["merge"] = {"rest": settings["categories"][:2]}
    elif random.random() < 0.5:
        settings |= _domain(random, column)
    if column.dtype.is_float() and random.random() < 0.3:
        settings["decimals"] = random.choice([0, 1, 2, 15])
    own: dict[str, list[Any]] = {
        "per_unit": [True],
        "budget_share": [0.5, 3, 1e-6], "k": [3, 4], "method": [*get_args(MethodName)],
    }  # fmt: skip
    return settings | {n: random.choice(of) for n, of in own.items() if random.random() < 0.1}


def _few(column: pl.Series) -> bool:
    column = column.alias("")  # Polars takes some names for patterns
    texts = column.dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean)
    return (texts or column.dtype == pl.Int64) and 2 <= column.drop_nulls().n_unique() <= 12


def _categories(column: pl.Series) -> list[Any]:
    seen = column.alias("").drop_nulls().unique()
    if column.dtype in (pl.Categorical, pl.Enum):
        seen = seen.cast(pl.String)
    return sorted(seen.to_list())


def _declared(table: pl.DataFrame) -> set[object]:
    """Return values that a plan for this table may declare, and its errors may quote."""
    return {c for name in table.columns if _few(table[name]) for c in _categories(table[name])}


def _domain(random: Random, column: pl.Series) -> dict[str, Any]:
    """Declare a domain about the values, now and then one that does not hold them."""
    wide = random.choice([1e3, 1e6, 1e7, 1e9, 1e155, 1e300])
    if column.dtype.is_numeric():
        return {"lower": -wide, "upper": random.choice([wide, 2 * wide])}
    if column.dtype == pl.Date:
        return {
            "lower": date(1, 1, 1),
            "upper": random.choice([date(9999, 12, 31), date(2020, 1, 1)]),
        }
    if column.dtype == pl.Datetime:
        return {"lower": datetime(1970, 1, 1), "upper": datetime(1971, 1, 1) + timedelta(days=9e4)}
    if column.dtype == pl.Time:
        return {"lower": time(0), "upper": time(23, 59, 59)}
    return {}
