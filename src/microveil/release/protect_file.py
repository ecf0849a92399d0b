"""Files larger than memory: the same line, a column at a time, from file to file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars as pl

from microveil.core.random_words import open_words
from microveil.engines.columnwise import Workspace, columnwise_table
from microveil.errors import FileError
from microveil.formats import Source, TableMeta, check_escaped, scratch_directory
from microveil.formats.atomic import check_readable
from microveil.formats.csv import detect_csv, read_csv_columnwise
from microveil.formats.forked import check_threads
from microveil.formats.values import as_missing
from microveil.machine import available_memory
from microveil.plan.plan import Plan
from microveil.release.key import key_of
from microveil.release.ledger import reserved
from microveil.release.persistent import joining
from microveil.release.protect import require_plan, run_plan
from microveil.release.release import Release, Written, check_detail, check_order
from microveil.release.store import LocalStore
from microveil.release.synthesise_here import synthesise_in_files
from microveil.types import Progress

COLUMNWISE = (".parquet", ".csv")
_SHARE_OF_MEMORY = 8

InspectRelease = Callable[[pl.LazyFrame, Release], None]
"""Looks at an original and its release before that is written."""


def is_columnwise(source: Source, output: Path) -> bool:
    """Whether a file is so large that it had better be protected a column at a time."""
    return _is_parquet_or_csv(output) and is_large(source)


def column_names(source: Source) -> tuple[Source, list[str]]:
    """Return how a Parquet or CSV file is read, as detected, and the names of its columns."""
    path = Path(source.location)
    if path.suffix.lower() == ".csv":
        return detect_csv(source)
    return source, list(pl.read_parquet_schema(path))


def is_large(source: Source) -> bool:
    """Whether a file would take up more than an eighth of the available memory."""
    path = source.path
    if path is None or not _is_parquet_or_csv(path):
        return False
    with suppress(OSError, pl.exceptions.PolarsError):
        return path.is_file() and _size_in_memory(path) > available_memory() // _SHARE_OF_MEMORY
    return False  # reading it will say why


def _size_in_memory(path: Path) -> int:
    if path.suffix.lower() != ".parquet":
        return path.stat().st_size
    columns = len(pl.read_parquet_schema(path))
    return 8 * columns * int(pl.scan_parquet(path).select(pl.len()).collect().item())


def _is_parquet_or_csv(path: Path) -> bool:
    return path.suffix.lower() in COLUMNWISE


def protect_file(
    source: Source | str | Path,
    plan: Plan,
    output: str | Path,
    *,
    detail: bool = False,
    keep_order: bool = False,
    overwrite: bool = False,
    escape_formulas: bool = False,
    ledger: str | Path | None = None,
    key: str | Path | None = None,
    joint: str | Path | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    look: InspectRelease | None = None,
) -> Written:
    """Protect a Parquet or CSV file a column at a time; memory holds a few columns, not the table.

    Guarantee
    ---------
    That of `protect`: the same plan is checked, masked and certified by the same functions.

    Parameters
    ----------
    source, plan, ledger, key, joint, seed, progress
        As for `protect`.
    output, detail, keep_order, overwrite, escape_formulas
        As for `Release.write`; the output is Parquet or CSV as well.
    look
        Called with the original and the release before anything is written; the tables of both are
        lazy and are gone afterwards.
    """
    require_plan(plan)
    check_order(plan, keep_order=keep_order)
    check_detail(plan, detail=detail)
    check_threads()
    source = source if isinstance(source, Source) else Source(source)
    store = LocalStore(TableMeta(source.path))
    places = store.places(output, detail=detail)
    store.check(places, overwrite=overwrite)
    if escape_formulas:
        check_escaped(places.protected)
    if source.path is None or not all(map(_is_parquet_or_csv, (source.path, places.protected))):
        raise FileError("files larger than memory must be Parquet or CSV, for input and output")
    check_readable(source.path)
    secret = key_of(plan, key, seed)
    secret.check_apart(places.protected)
    source = replace(source, na=source.na or plan.na, dates=source.dates or plan.dates)
    with (
        reserved(plan, ledger, seed) as spending,
        joining(plan, joint, secret, seed, keep_order=keep_order) as joined,
        scratch_directory(places.protected) as scratch,
    ):
        files, meta = _columns(source, Path(source.location), plan.verbatim, scratch)
        shuffle = None if keep_order else open_words(seed, "row order")
        workspace = Workspace(scratch, shuffle, described=detail or look is not None)
        table = columnwise_table(files, workspace, inferred=meta.inferred)
        if plan.release == "synthetic":
            release = synthesise_in_files(table, plan, source.path, scratch, seed, progress)
        else:
            release = run_plan(
                plan, table, LocalStore(meta),
                seed=seed, progress=progress, key=secret, joined=joined,
            )  # fmt: skip
        release = release.entered(spending)
        if look is not None:
            look(_side_by_side(files), release)
        return release.write_to(places, keep_order=keep_order, escape_formulas=escape_formulas)


def open_lazily(
    source: Source, verbatim: Collection[str], scratch: Path
) -> tuple[pl.LazyFrame, TableMeta]:
    """Open a Parquet or CSV file larger than memory, of which a part is read at a time."""
    files, meta = _columns(source, Path(source.location), verbatim, scratch)
    return _side_by_side(files), meta


def _side_by_side(files: Mapping[str, Path]) -> pl.LazyFrame:
    """Scan columns of Parquet files, one for all or one for each."""
    if len(set(files.values())) == 1:
        return pl.scan_parquet(next(iter(files.values())))
    columns = [pl.scan_parquet(path).select(name) for name, path in files.items()]
    return pl.concat(columns, how="horizontal")


def _columns(
    source: Source, path: Path, verbatim: Collection[str], scratch: Path
) -> tuple[dict[str, Path], TableMeta]:
    if path.suffix.lower() == ".csv":
        return read_csv_columnwise(source, verbatim, scratch)
    try:
        names = list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError):
        raise FileError(f"{path}: not a Parquet file that can be read") from None
    if source.na:
        return _without(source.na, path, scratch), TableMeta(path)
    return dict.fromkeys(names, path), TableMeta(path)


def _without(na: Sequence[str], path: Path, scratch: Path) -> dict[str, Path]:
    """Write every column of a Parquet file again, without its declared missing values."""
    files = {}
    for number, name in enumerate(pl.read_parquet_schema(path)):
        column = as_missing(pl.read_parquet(path, columns=[number]).to_series(), tuple(na))
        files[name] = scratch / f"column{number}.parquet"
        column.to_frame().write_parquet(files[name], compression="lz4")
    return files
