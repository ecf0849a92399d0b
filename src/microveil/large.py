"""Files larger than memory: the same line, a column at a time, from file to file."""

import os
from pathlib import Path

import polars as pl

from microveil.certificate import Certificate
from microveil.engines.columnwise import ColumnwiseEngine
from microveil.errors import FileError
from microveil.formats import Source, TableMeta, scratch_directory
from microveil.formats.delimited import header, read_columnwise
from microveil.formats.places import check_readable
from microveil.noise import open_words
from microveil.plan import Plan
from microveil.protect import Progress, release_of
from microveil.release import Written, check_paths, release_paths

COLUMNWISE = (".parquet", ".csv")
_SHARE_OF_MEMORY = 8


def is_columnwise(source: Source, output: Path) -> bool:
    """Whether a file is so large that it had better be protected a column at a time."""
    return output.suffix.lower() in COLUMNWISE and is_large(source)


def column_names(source: Source) -> list[str]:
    """Return the names of the columns of a Parquet or CSV file."""
    path = Path(source.location)
    return header(source) if path.suffix.lower() == ".csv" else list(pl.read_parquet_schema(path))


def is_large(source: Source) -> bool:
    """Whether a file would take up more than an eighth of the machine's memory."""
    path = source.path
    if path is None or path.suffix.lower() not in COLUMNWISE or not path.is_file():
        return False
    size = path.stat().st_size
    if path.suffix.lower() == ".parquet":
        try:
            columns = len(pl.read_parquet_schema(path))
            size = 8 * columns * int(pl.scan_parquet(path).select(pl.len()).collect().item())
        except (pl.exceptions.PolarsError, OSError):
            return False  # reading it will say why
    return size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _SHARE_OF_MEMORY


def protect_file(
    source: Source | str | Path,
    plan: Plan,
    output: str | Path,
    *,
    detail: bool = False,
    keep_order: bool = False,
    overwrite: bool = False,
    seed: int | None = None,
    progress: Progress | None = None,
) -> tuple[Written, Certificate]:
    """Protect a Parquet or CSV file a column at a time; memory holds a few columns, not the table.

    Guarantee
    ---------
    That of `protect`: the same plan is checked, masked and certified by the same functions.

    Parameters
    ----------
    source, plan, seed, progress
        As for `protect`.
    output, detail, keep_order, overwrite
        As for `Release.write`; the output is Parquet or CSV as well.
    """
    source = source if isinstance(source, Source) else Source(source)
    written = release_paths(output, detail=detail)
    check_paths(written, overwrite=overwrite, source=source.path)
    if source.path is None or not {source.path.suffix, written.protected.suffix} <= set(COLUMNWISE):
        raise FileError("what is larger than memory must be Parquet or CSV, and is written as such")
    check_readable(source.path)
    with scratch_directory(written.protected) as scratch:
        files, meta = _columns(source, source.path, plan, scratch)
        shuffle = None if keep_order else open_words(seed, "row order")
        parts: list[Path] = []

        def keep(clusters: pl.DataFrame) -> pl.DataFrame:
            if detail:
                parts.append(scratch / f"clusters{len(parts)}.parquet")
                clusters.write_parquet(parts[-1])
            return clusters.clear()

        engine = ColumnwiseEngine(files, scratch, shuffle)
        release = release_of(plan, engine, meta, seed=seed, progress=progress, keep=keep)
        release.write(
            output, detail=detail, keep_order=keep_order, overwrite=overwrite,
            clusters=pl.scan_parquet(parts) if parts else None,
        )  # fmt: skip
        return written, release.certificate


def _columns(
    source: Source, path: Path, plan: Plan, scratch: Path
) -> tuple[dict[str, Path], TableMeta]:
    if path.suffix.lower() == ".csv":
        return read_columnwise(source, plan.verbatim, scratch)
    try:
        names = list(pl.read_parquet_schema(path))
    except (pl.exceptions.PolarsError, OSError):
        raise FileError(f"{path}: not a Parquet file that can be read") from None
    return dict.fromkeys(names, path), TableMeta(path)
