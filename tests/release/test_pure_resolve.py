"""Resolving a plan is looking: it gives the same answer every time, and leaves the table alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan
from microveil.engines.columnwise import Workspace, columnwise_table
from microveil.engines.local import LocalTable
from microveil.engines.memory import memory_table
from microveil.release.choose_k import resolve_and_choose
from microveil.release.resolve import resolve

TABLE = pl.DataFrame(
    {
        "home": [number // 2 for number in range(60)],
        "region": ["north", "south"] * 15 + ["north", "south"] * 15,
        "age": [20.0 + number % 40 for number in range(60)],
        "pay": [None if number % 7 == 0 else 100 * number for number in range(60)],
        "job": ["nurse", "doctor", "smith"] * 20,
    }
)
JOBS = {"health": ("nurse", "doctor"), "craft": ("smith",)}
ATTRIBUTES: dict[str, Any] = {
    "home": "identifier",
    "region": "kept",
    "age": Confidential(kind="integer", lower=0, upper=120, round_to=5),
    "pay": Confidential(kind="real", bottom=0, top=4000),
    "job": Confidential(kind="nominal", taxonomy=JOBS, level=1),
}
DROPPING = Plan.published(
    epsilon=1.0, k=3, missing="drop", within=["region"], attributes=ATTRIBUTES,
)  # fmt: skip
BY_UNIT = Plan.published(
    epsilon=1.0,
    k="auto",
    missing="keep",
    unit="home",
    records_per_person=2,
    method="iDP-LS",
    attributes={**ATTRIBUTES, "pay": "kept", "job": Confidential(kind="nominal", k=3)},
)


def in_memory(_directory: Path) -> LocalTable:
    return memory_table(TABLE, inferred=True)


def in_files(directory: Path) -> LocalTable:
    TABLE.write_parquet(directory / "table.parquet")
    files = dict.fromkeys(TABLE.columns, directory / "table.parquet")
    return columnwise_table(files, Workspace(directory, None, described=False), inferred=True)


def seen(table: LocalTable) -> list[Any]:
    """Return what can be seen of a table."""
    ends = (-np.inf, np.inf)
    return [
        table.records,
        dict(table.columns),
        table.facts({"age": ends, "pay": ends}),
        table.category_facts("job", None),
        table.unit_facts(["age"]),
        table.stratum_sizes().tolist(),
        table.stratum_sizes("pay").tolist(),
    ]


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("open_table", [in_memory, in_files])
def test_resolving_changes_nothing(
    open_table: Callable[[Path], LocalTable], tmp_path: Path
) -> None:
    table = open_table(tmp_path)
    before = seen(table)
    first = resolve(DROPPING, table)
    other = resolve_and_choose(BY_UNIT, table)
    assert resolve(DROPPING, table) == first
    assert resolve_and_choose(BY_UNIT, table) == other
    assert seen(table) == before
    untouched = open_table(tmp_path)
    assert resolve(DROPPING, untouched) == first
    assert resolve_and_choose(BY_UNIT, untouched) == other


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_a_resolved_plan_says_what_becomes_of_the_table() -> None:
    table = memory_table(TABLE, inferred=True)
    preparation = resolve(DROPPING, table).preparation
    assert preparation.kinds == {"age": "integer", "pay": "real"}
    assert preparation.groups == {"job": {"nurse": "health", "doctor": "health", "smith": "craft"}}
    assert preparation.codings.keys() == {"age", "pay"}
    assert (preparation.complete, preparation.strata) == (("age", "pay", "job"), ("region",))
    prepared = table.prepared(preparation)
    assert prepared.records == TABLE["pay"].count()
    assert [prepared.columns[name].kind for name in ("age", "pay", "job")] == [
        "integer", "real", None,
    ]  # fmt: skip
    assert table.records == len(TABLE)
