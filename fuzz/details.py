"""Private details from strangers: tables with other values, rows, types and columns, and damage."""

import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import polars as pl

from fuzz.checks import check_error, secrets_of
from fuzz.damage import damaged
from microveil import MicroveilError, Plan, evaluate, protect
from microveil.errors import noted
from microveil.formats import sandbox

_PLANS: tuple[dict[str, Any], ...] = (
    {"rules": ["a <= b"]},
    {"unit": "household", "records_per_person": 2},
    {"within": ["region"]},
    {"pooling": "average"},
)
_VALUES = (None, -1, 0, 1, 10**12, -(2**63), float("nan"), float("inf"), 1e308, "", "a", "b", True)
_TYPES = (pl.Int8, pl.Int64, pl.Float64, pl.String, pl.Boolean, pl.Date, pl.List(pl.Int64))


def run(random: Random, folder: Path) -> str:
    """Evaluate with a detail that somebody altered: figures, or a line of our own."""
    table = pl.DataFrame({
        "a": [random.randint(10**7, 10**8) for _ in range(48)],
        "b": [random.randint(10**8, 10**9) for _ in range(48)],
        "household": [i // 2 for i in range(48)],
        "region": ["north", "south"] * 24,
    })  # fmt: skip
    roles = {"a": "confidential", "b": "confidential", "household": "identifier", "region": "kept"}
    settings: dict[str, Any] = {"anonymity": 4} | random.choice(_PLANS)
    plan = Plan(epsilon=1.0, k=3, attributes=roles, **settings)
    with noted():
        release = protect(table, plan)
        path = folder / "out.parquet"
        release.write(path, detail=True)
        detail = path.with_suffix(".detail.zip")
        _alter(random, detail)
        try:
            with patch.object(sandbox, "_ask", sandbox.write_answer):  # a process takes seconds
                evaluate(table, path, detail=detail)
        except MicroveilError as error:
            check_error(error, secrets_of(table))
            return "refused"
    return "judged"


def _alter(random: Random, path: Path) -> None:
    if random.random() < 0.2:
        path.write_bytes(damaged(random, path.read_bytes()))
        return
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name in random.sample([*parts], random.choice([1, 1, 1, 2])):
        if name.endswith(".parquet") and random.random() < 0.8:
            parts[name] = _other_table(random, pl.read_parquet(parts[name]))
        elif random.random() < 0.2:
            parts[name] = b""
        else:
            parts[name] = damaged(random, parts[name])
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)


def _other_table(random: Random, table: pl.DataFrame) -> bytes:
    changes: list[Callable[[Random, pl.DataFrame], pl.DataFrame]] = [
        _other_value, _other_value, _other_value, _other_type, _other_rows, _other_columns,
    ]  # fmt: skip
    written = BytesIO()
    try:
        random.choice(changes)(random, table).write_parquet(written)
    except pl.exceptions.PolarsError:  # nothing that a table can be
        table.head(0).write_parquet(written)
    return written.getvalue()


def _other_value(random: Random, table: pl.DataFrame) -> pl.DataFrame:
    if not table.width or not table.height:
        return table
    name, value = random.choice(table.columns), random.choice(_VALUES)
    there = pl.int_range(pl.len()) == random.randrange(table.height)
    if random.random() < 0.2:
        there = pl.lit(value=True)
    new: Any = pl.lit(value).cast(table[name].dtype, strict=False)
    return table.with_columns(pl.when(there).then(new).otherwise(pl.col(name)).alias(name))


def _other_type(random: Random, table: pl.DataFrame) -> pl.DataFrame:
    if not table.width:
        return table
    name = random.choice(table.columns)
    return table.with_columns(pl.col(name).cast(random.choice(_TYPES), strict=False))


def _other_rows(random: Random, table: pl.DataFrame) -> pl.DataFrame:
    match random.choice(["fewer", "more", "none", "shuffled"]):
        case "fewer":
            return table.slice(random.randint(0, 3), max(0, table.height - random.randint(0, 5)))
        case "more":
            return pl.concat([table, table.head(random.randint(1, 4))])
        case "none":
            return table.head(0)
        case _:
            return table.sample(fraction=1.0, shuffle=True, seed=random.getrandbits(20))


def _other_columns(random: Random, table: pl.DataFrame) -> pl.DataFrame:
    if not table.width:
        return table
    name = random.choice(table.columns)
    match random.choice(["removed", "renamed", "added", "turned"]):
        case "removed":
            return table.drop(name)
        case "renamed":
            return table.rename({name: random.choice(["other", "^x$", "a, b", ""])})
        case "added":
            return table.with_columns(pl.lit(0, pl.Int64).alias("more"))
        case _:
            return table.select(reversed(table.columns))
