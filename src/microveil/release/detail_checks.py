"""A private detail that someone sent: sizes before anything is read, then tables that fit together.

What is wrong is a `ValueError`; whoever reads a detail says in one sentence that it cannot be used.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import polars as pl

from microveil.engines.detail_rows import CLUSTER_COLUMNS, LOSS_COLUMNS
from microveil.formats import LoadedTable, Source
from microveil.formats.sandbox import sandboxed
from microveil.machine import available_memory
from microveil.plan.plan import Plan
from microveil.release.rule_outcomes import RULE_COLUMNS

_LARGEST_TEXT = 20 * 10**6  # bytes of a plan
_BYTES_PER_VALUE = 16  # of text; numbers take half of it
_SCHEMAS: dict[str, Mapping[str, type[pl.DataType]]] = {
    "clusters.parquet": CLUSTER_COLUMNS,
    "losses.parquet": LOSS_COLUMNS,
    "rows.parquet": {"position": pl.Int64},
    "rules.parquet": RULE_COLUMNS,
}


def check_entries(archive: ZipFile, texts: Sequence[str]) -> None:
    """Refuse packed entries, which can be far larger than their archive, and what needs too much.

    Details are written unpacked, since Parquet is packed in itself.
    """
    entries = archive.infolist()
    _require(len({entry.filename for entry in entries}) == len(entries) <= 7)
    memory = available_memory()
    for entry in entries:
        _require(entry.compress_type == ZIP_STORED and entry.file_size == entry.compress_size)
        _require(entry.file_size <= (_LARGEST_TEXT if entry.filename in texts else memory))


def digest_of(about: bytes) -> str | None:
    """Return the digest of the protected file that a detail belongs to."""
    digest = json.loads(about)["protected_sha256"]
    _require(digest is None or isinstance(digest, str))
    return digest  # type: ignore[no-any-return]


def _tried(source: Source, names: Collection[str]) -> LoadedTable:
    with ZipFile(source.location) as archive:
        for name in names:
            pl.read_parquet(BytesIO(archive.read(name)))
    return LoadedTable(pl.DataFrame())


def _tried_in_parts(source: Source, _: Collection[str]) -> LoadedTable:
    pl.scan_parquet(source.location).select(pl.all().count()).collect(engine="streaming")
    return LoadedTable(pl.DataFrame())


try_tables, try_in_parts = sandboxed(_tried), sandboxed(_tried_in_parts)
"""Read tables once in a process of limited memory: a page of text may unpack to gigabytes."""


def read_part(archive: ZipFile, name: str) -> pl.DataFrame:
    """Read a table, once it is known to have the right columns and to fit into the memory."""
    file = BytesIO(archive.read(name))
    rows = checked_rows(pl.scan_parquet(file), name)
    table = pl.read_parquet(file)
    _require(table.height == rows)
    return table


def unpacked_part(archive: ZipFile, name: str, directory: Path) -> pl.LazyFrame:
    """Unpack a table that is read a part at a time."""
    path = archive.extract(name, directory)
    try_in_parts(Source(path), ())
    lazy = pl.scan_parquet(path)
    _require(dict(lazy.collect_schema()) == _SCHEMAS[name])
    return lazy


def checked_rows(lazy: pl.LazyFrame, name: str) -> int:
    """Return the number of rows, which the end of a Parquet file tells, if they fit."""
    schema = lazy.collect_schema()
    _require(dict(schema) == _SCHEMAS.get(name, dict.fromkeys(schema, pl.Int64)))
    rows = int(lazy.select(pl.len()).collect().item())
    _require(rows * max(1, len(schema)) * _BYTES_PER_VALUE <= available_memory())
    return rows


def check_rows(rows: pl.DataFrame, joint: pl.DataFrame, plan: Plan) -> None:
    """Refuse positions that two records share, and joint clusters of other records or groups."""
    positions = rows["position"].to_numpy()
    _require(rows["position"].null_count() == 0 < len(positions))
    _require(positions.min() >= 0 and len(np.unique(positions)) == len(positions))
    groups = {
        ", ".join(name for name in group.attributes if (name in plan.per_unit) == per_unit)
        for group in plan.pooled_groups
        for per_unit in (False, True)
    }
    _require(groups >= set(joint.columns))
    _require(not joint.width or joint.height == len(positions))
    for label in joint:
        _require(label.null_count() == 0 and label.is_between(0, len(positions) - 1).all())


def check_description(clusters: pl.LazyFrame, plan: Plan) -> None:
    """Refuse clusters of other attributes, without records, or upside down."""
    records, size = pl.col("records"), pl.col("largest") - pl.col("smallest")
    no_width = pl.col("largest").is_null() & pl.col("smallest").is_null()
    right = (
        pl.col("attribute").is_in(list(plan.confidential))
        & (records > 0)
        & (no_width | (size >= 0) & size.is_finite())
        & pl.all_horizontal(
            column.is_null() | (column >= 0) & column.is_not_nan()
            for column in map(pl.col, ("sensitivity", "scale"))
        )
    )
    _require(clusters.select(right.fill_null(value=False).all()).collect(engine="streaming").item())


def check_losses(losses: pl.DataFrame, plan: Plan) -> None:
    """Refuse losses of other attributes than the plan masks."""
    _require(sorted(losses["attribute"].fill_null("")) == sorted(plan.confidential))
    _require((losses["epsilon"] > 0).fill_null(value=False).all())


def check_outcomes(rules: pl.DataFrame | None, plan: Plan) -> None:
    """Refuse outcomes of other rules, and counts that cannot be."""
    if rules is None:
        return
    _require(rules["rule"].to_list() == list(plan.rules))
    records = pl.col("records")
    right = [records > 0, pl.col("in_days").is_not_null()]
    right += [
        pl.col(name).is_null() | pl.col(name).is_between(0, records)
        for name in ("original", "masked", "released")
    ]
    right.append(pl.col("moved").is_null() | (pl.col("moved") >= 0) & pl.col("moved").is_finite())
    _require(rules.select(pl.all_horizontal(right).fill_null(value=False).all()).item())


def _require(right: object) -> None:
    if not right:
        raise ValueError
