"""Types that databases, Parquet files and pandas have besides the plain ones."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from microveil import FileWarning, Plan, protect
from microveil.formats import read_table
from microveil.judge.evaluation import evaluate
from microveil.judge.verdict import Verdict, verdict
from microveil.plan.propose.proposal import propose_plan
from microveil.release.protect_file import protect_file

pytestmark = pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
LEVELS = ["low", "middle", "high"]


def table(records: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(4)
    cents = random.integers(100, 900_000, records)
    return pl.DataFrame(
        {
            "wage": pl.Series([Decimal(int(c)) / 100 for c in cents], dtype=pl.Decimal(12, 2)),
            "stay": pl.Series([timedelta(minutes=int(c % 977)) for c in cents]),
            "level": pl.Series(random.choice(LEVELS, records), dtype=pl.Enum(LEVELS)),
        }
    )


def with_gaps(frame: pl.DataFrame) -> pl.DataFrame:
    gap = pl.int_range(pl.len()) % 12 == 3
    return frame.with_columns(pl.when(~gap).then(pl.col("wage", "stay")))


def as_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    level = pd.Categorical(frame["level"].to_list(), categories=LEVELS, ordered=True)
    return pd.DataFrame(
        {"wage": frame["wage"].to_list(), "stay": frame["stay"].to_list(), "level": level}
    )


@pytest.mark.parametrize("kind", ["polars", "lazy", "arrow", "pandas"])
def test_decimals_lengths_of_time_and_ordered_categories(kind: str) -> None:
    frame = with_gaps(table())
    data: Any = {
        "polars": frame,
        "lazy": frame.lazy(),
        "arrow": frame.to_arrow(),
        "pandas": as_pandas(frame),
    }[kind]
    plan = Plan.from_toml(propose_plan(data, "t"))
    assert plan.names("confidential") == ("wage", "stay", "level")
    if kind != "arrow":  # which has no order
        assert plan.confidential["level"].categories == tuple(LEVELS)
        assert plan.confidential["level"].kind == "ordinal"
    release = protect(data, plan, seed=1, keep_order=True)
    released = release.data
    if kind == "pandas":
        assert isinstance(released, pd.DataFrame)
        assert dict(released.dtypes) == dict(data.dtypes)
        assert all(v is None or isinstance(v, Decimal) for v in released["wage"])
    elif kind == "arrow":
        assert released.schema.field("wage").type == pa.decimal128(12, 2)
        assert pa.types.is_duration(released.schema.field("stay").type)
    else:
        assert released.schema == frame.schema
    values = list(released["wage"].to_pylist() if kind == "arrow" else released["wage"])
    known = [v for v in values if v is not None]
    assert len(known) == 55
    assert abs(float(sum(known)) / 55 - float(frame["wage"].mean())) < 4_000  # type: ignore[arg-type]
    if kind == "polars":
        assert isinstance(verdict(data, release), Verdict)
        assert evaluate(data, release).value("utility.mean_sse") >= 0


def test_bounds_of_lengths_of_time_are_seconds_and_of_decimals_numbers() -> None:
    frame = table()
    plan = Plan.published(
        epsilon=0.1,
        k=5,
        attributes={
            "wage": {"role": "confidential", "lower": 0, "upper": 10_000},
            "stay": {"role": "confidential", "lower": 0, "upper": 60_000, "time_step": "minute"},
            "level": "identifier",
        },
    )
    released = protect(frame, plan, seed=2, keep_order=True).data
    assert released["stay"].min() >= timedelta()
    assert released["stay"].max() <= timedelta(seconds=60_000)
    assert all(length.seconds % 60 == 0 for length in released["stay"])
    assert 0 <= released["wage"].min() <= released["wage"].max() <= 10_000


def test_the_same_types_column_by_column(tmp_path: Path) -> None:
    frame = table()
    frame.write_parquet(tmp_path / "in.parquet")
    plan = Plan.from_toml(propose_plan(frame, "t"))
    protect_file(tmp_path / "in.parquet", plan, tmp_path / "out.parquet", keep_order=True, seed=1)
    out = pl.read_parquet(tmp_path / "out.parquet")
    assert out.schema == frame.schema
    assert out.equals(protect(frame, plan, seed=1, keep_order=True).data)


@pytest.mark.parametrize("ending", ["csv", "arrow", "xlsx"])
def test_they_are_written_as_far_as_a_file_has_them(tmp_path: Path, ending: str) -> None:
    frame = table()
    plan = Plan.from_toml(propose_plan(frame, "t"))
    for data in (frame, as_pandas(frame)):
        release = protect(data, plan, seed=1, keep_order=True)
        release.write(tmp_path / f"out.{ending}", keep_order=True, overwrite=True)
        out = read_table(tmp_path / f"out.{ending}")
        wages = pl.Series([float(wage) for wage in release.data["wage"]])
        stays = pl.Series([float(stay.total_seconds()) for stay in release.data["stay"]])
        read = out["stay"].cast(pl.Float64)
        assert out["wage"].cast(pl.Float64).to_list() == wages.to_list()
        assert (read if ending == "csv" else read / 1e6).to_list() == stays.to_list()


def test_an_index_that_says_something_is_named_in_a_warning() -> None:
    data = pd.DataFrame({"x": np.arange(40) * 3 % 37})
    plan = Plan.published(epsilon=1.0, attributes={"x": "confidential"})
    protect(data, plan, seed=1)
    protect(data[data["x"] > 3], plan, seed=1)
    with pytest.warns(FileWarning, match="the index 'person' is dropped.*reset_index"):
        protect(data.rename_axis("person"), plan, seed=1)
    with pytest.warns(FileWarning, match="the index, which has no name, is dropped"):
        protect(data.set_index(pd.Index([f"p{n}" for n in range(40)])), plan, seed=1)
