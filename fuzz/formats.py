"""Kept columns of any type through every format, and damaged files of every format."""

from pathlib import Path
from random import Random

import polars as pl

from fuzz import values
from fuzz.checks import check_error, check_read_back, save_table, secrets_of
from fuzz.damage import damaged
from microveil import MicroveilError, Plan, protect
from microveil.errors import noted
from microveil.formats import WRITABLE, read_table, write_table


def run(random: Random, folder: Path) -> str:
    """Write and read back, or read what was damaged."""
    if random.random() < 0.5:
        return _kept(random, folder)
    return _damaged(random, folder)


def _kept(random: Random, folder: Path) -> str:
    """Release kept columns into a file: it holds them as they were, or refuses them."""
    table = _table(random)
    save_table(table, folder)
    path = folder / f"released{random.choice(WRITABLE)}"
    kept = [name for name in table.columns if name != "amount"]
    plan = Plan.published(
        epsilon=1, k=3, attributes=dict.fromkeys(kept, "kept") | {"amount": "confidential"}
    )
    with noted() as notes:
        try:
            protect(table, plan, seed=1).write(path, keep_order=True)
        except MicroveilError as error:
            check_error(error, secrets_of(table))
            return "refused"
        told = " ".join(notes)
        back = read_table(path, verbatim=kept)
    for name, written in zip(kept, [c for c in back.columns if c != "amount"], strict=True):
        if "spaces at the end" in told and table[name].dtype in (
            pl.String,
            pl.Categorical,
            pl.Enum,
        ):
            continue
        check_read_back(table[name], back[written])
    return "released"


def _damaged(random: Random, folder: Path) -> str:
    """Read a damaged file: it is read, or refused by a line of our own."""
    path = folder / f"damaged{random.choice(WRITABLE)}"
    table = _table(random)
    with noted():
        try:
            write_table(table, path)
        except MicroveilError as error:
            check_error(error, secrets_of(table))
            return "not written"
        path.write_bytes(damaged(random, path.read_bytes()))
        try:
            read_table(path)
        except MicroveilError as error:
            check_error(error, secrets_of(table))
            return "damage refused"
    return "damage read"


def _table(random: Random) -> pl.DataFrame:
    records = random.randint(4, 40)
    named = [name for name in values.names(random, random.randint(1, 4)) if name != "amount"]
    columns = {name: values.column(random, records) for name in named}
    return pl.DataFrame({**columns, "amount": [random.randint(0, 99) for _ in range(records)]})
