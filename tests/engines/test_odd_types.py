"""Columns of unusual types: they work, or an error of our own names them and shows no value."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from microveil import DataError, Plan, evaluate, protect, verdict

N = 40
LETTERS = ["secret a", "secret b"] * (N // 2)
ODD = {
    "lists": pl.Series([[letter] for letter in LETTERS]),
    "structs": pl.Series([{"a": letter} for letter in LETTERS]),
    "lengths of time": pl.Series([timedelta(i % 2) for i in range(N)]),
    "bytes": pl.Series([b"secret \xff%d" % (i % 2) for i in range(N)]),
}
TABLES: dict[str, Any] = {
    name: pl.DataFrame({"s": column, "x": range(N)}) for name, column in ODD.items()
}
TABLES |= {f"{name} of PyArrow": table.to_arrow() for name, table in TABLES.items()}
TABLES["integers of 128 bits"] = pl.DataFrame(
    {"s": pl.Series([2**100 + i % 2 for i in range(N)], dtype=pl.Int128), "x": range(N)}
)
TABLES["views"] = pa.table({"s": pa.array(LETTERS, pa.string_view()), "x": range(N)})
TABLES["256 bits"] = pa.table({"s": pa.array([1] * N, pa.decimal256(60)), "x": range(N)})
TABLES["intervals"] = pd.DataFrame({"s": [*pd.interval_range(0, 2)] * (N // 2), "x": range(N)})
PERIODS = pd.PeriodIndex([*pd.period_range("2020", periods=2)] * (N // 2))
TABLES["periods"] = pd.DataFrame({"s": PERIODS, "x": range(N)})
TABLES["sets"] = pl.DataFrame(
    {"s": pl.Series([{letter} for letter in LETTERS], dtype=pl.Object), "x": range(N)}
)
OBJECTS: dict[str, list[Any]] = {
    "mixed": [1, "secret"],
    "dicts": [{"a": "secret"}, {"a": "b"}],
    "lists": [["secret"], ["b"]],
    "complex": [1j, 2j],
    "large integers": [2**70, 2**70 + 1],
}
TABLES |= {
    f"{name} of pandas": pd.DataFrame({"s": values * (N // 2), "x": range(N)})
    for name, values in OBJECTS.items()
}
PLAN = Plan(epsilon=1.0, anonymity=10, attributes={"s": "kept", "x": "confidential"})


def works_or_names_it(work: Callable[[], object]) -> None:
    """Whether it works or not: a message names the column, and shows nothing of it."""
    try:
        work()
    except DataError as error:
        message = str(error)
    else:
        message = "'s'"
    assert "'s'" in message
    assert "secret" not in message


@pytest.mark.parametrize("name", TABLES)
def test_strata_of_any_type(name: str) -> None:
    works_or_names_it(lambda: protect(TABLES[name], PLAN.replace(within=["s"])))


@pytest.mark.parametrize("name", TABLES)
def test_a_plan_is_proposed_for_columns_of_any_type(name: str) -> None:
    table = TABLES[name]
    more = [(i * 17) % 1000 / 8 for i in range(N)]  # something to mask
    if isinstance(table, pd.DataFrame):
        table = table.assign(z=more)
    elif isinstance(table, pl.DataFrame):
        table = table.with_columns(z=pl.Series(more))
    else:
        table = table.append_column("z", pa.array(more))
    plan = Plan.propose(table)
    assert plan.attributes["z"].role == "confidential"
    assert plan.attributes["s"].role in ("identifier", "confidential")


@pytest.mark.parametrize(
    ("names", "said"),
    [((0, 1), "must be text"), ((("a", "b"), ("a", "c")), "must be text"), ("ss", "must differ")],
)
def test_names_that_no_plan_can_say(names: Any, said: str) -> None:  # noqa: ANN401
    table = pd.DataFrame([[1, 2]] * N, columns=[*names])
    for work in (Plan.propose, protect, lambda table: protect(table, PLAN)):
        with pytest.raises(DataError, match=f"column names {said}"):
            work(table)


@pytest.mark.parametrize("what", [5, None, [[1]], {"s": [1]}, pd.Series([1], name="s")])
def test_what_is_no_table(what: Any) -> None:  # noqa: ANN401
    for plan in (None, PLAN):
        with pytest.raises(DataError, match="data must be a Polars or pandas DataFrame"):
            protect(what, plan)


def test_records_without_any_column() -> None:
    for plan in (None, PLAN):
        with pytest.raises(DataError, match=r"no (column|attributes|such column|records)"):
            protect(pd.DataFrame(index=range(N)), plan)


def test_synthetic_rows_of_numbers_of_256_bits() -> None:
    numbers = {"role": "confidential", "kind": "integer", "lower": 0, "upper": 50}
    plan = Plan(
        epsilon=9.0, release="synthetic", missing="keep", attributes={"s": numbers, "x": numbers}
    )
    released = protect(TABLES["256 bits"], plan, seed=1).data.to_pydict()["s"]
    assert released.count(1) > len(released) / 2  # as all were


@pytest.mark.parametrize("name", TABLES)
def test_kept_columns_of_any_type(name: str) -> None:
    table = TABLES[name]
    for judge in (verdict, evaluate):
        works_or_names_it(lambda judge=judge: judge(table, protect(table, PLAN)))  # type: ignore[misc]


def test_categories_that_pandas_has_in_a_dictionary_of_pyarrow() -> None:
    letters = pa.array(["never released", "a", "b", None, "a"] * 8).dictionary_encode()
    column = pd.Series(letters, dtype=pd.ArrowDtype(letters.type))
    table = pd.DataFrame({"s": column, "x": range(N)})
    table = table[table["s"] != "never released"].reset_index(drop=True)
    kept = protect(table, PLAN).data["s"]
    assert kept.dtype == column.dtype
    assert sorted(kept.dropna()) == sorted(table["s"].dropna())
    assert kept.array.__arrow_array__().chunk(0).dictionary.to_pylist() == ["a", "b"]
    declared = {"role": "confidential", "kind": "nominal", "categories": ["a", "b"]}
    masked = protect(table, PLAN.replace(attributes={"s": declared, "x": "confidential"})).data
    assert masked["s"].dtype == column.dtype
    assert set(masked["s"].dropna()) <= {"a", "b"}


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "int64"])
def test_integers_that_no_double_holds_are_masked_as_real_numbers(dtype: str) -> None:
    frame = pd.DataFrame({"s": [0] * N, "x": [2**53 + 1 + 2 * i for i in range(N)]})
    plan = PLAN.replace(
        attributes={"s": "kept", "x": {"role": "confidential", "kind": "real", "resolution": 1.0}}
    )
    for table in (frame.astype({"x": dtype}), pa.Table.from_pandas(frame)):
        released = protect(table, plan).data
        assert len(released) == N
