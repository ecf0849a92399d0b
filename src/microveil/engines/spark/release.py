"""A release on Spark: the table and the private detail stay where Spark keeps them."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from microveil.certificate import ProtectedFile
from microveil.engines.spark.hadoop import Files, place
from microveil.errors import FileError
from microveil.formats import digest_of_directory
from microveil.release import Release


@dataclass(frozen=True, eq=False)
class SparkDetail:
    """What the data holder may know and nobody else; the clusters stay on the cluster.

    Attributes
    ----------
    clusters
        As in `microveil.Detail`, but a Spark DataFrame.
    losses
        As in `microveil.Detail`.
    """

    parts: list[DataFrame] = field(repr=False)
    losses: pl.DataFrame

    @property
    def clusters(self) -> DataFrame:
        """One row per cluster of every attribute."""
        return reduce(DataFrame.union, self.parts)


@dataclass(frozen=True)
class WrittenBySpark:
    """The directories and files a release was written to."""

    protected: str
    certificate: str
    detail: str | None


@dataclass(frozen=True, eq=False)
class SparkRelease(Release):
    """A protected Spark table, its certificate and its private detail.

    `data` is read from files that were written once, so every action on it gives the same values.
    They are in a private scratch directory until Spark ends: `write` what is to stay.
    """

    detail: SparkDetail = field(repr=False)  # type: ignore[assignment]
    ordered: DataFrame = field(kw_only=True, repr=False)

    def write(  # type: ignore[override]  # places on a cluster are not paths
        self,
        path: str | Path,
        *,
        detail: bool = False,
        keep_order: bool = False,
        overwrite: bool = False,
    ) -> WrittenBySpark:
        """Write a Parquet directory and its certificate, and the private detail if asked.

        Parameters
        ----------
        path
            A directory on any file system that Spark writes to. The certificate goes beside it,
            with the ending .certificate.json, and the detail, a directory, with .detail.
        detail
            Also write the private detail.
        keep_order
            Keep the records in their original order, instead of a random one.
        overwrite
            Replace what exists.
        """
        spark = self.data.sparkSession
        written = places_of(place(spark, path), detail=detail)
        check_places(spark, written, overwrite=overwrite)
        files = Files(spark, written.protected)
        with _moved_into_place(files, [p for p in vars(written).values() if p]) as temporary:
            table = self.data if not keep_order else self.ordered
            table.write.parquet(temporary[0])
            file = ProtectedFile(
                name=written.protected.rpartition("/")[2],
                sha256=_digest(spark, temporary[0]),
                row_order="as in the original" if keep_order else "random",
            )
            files.write_text(temporary[1], self._certificate_of(file, self.meta).to_json())
            if detail:
                self._write_detail(files, temporary[2], file)
        return written

    def _write_detail(self, files: Files, path: str, file: ProtectedFile) -> None:
        files.make_private(path)
        self.detail.clusters.write.parquet(f"{path}/clusters")
        about = {"private": "do not publish", "protected_sha256": file.sha256}
        files.write_text(f"{path}/about.json", json.dumps(about, indent=2))
        files.write_text(f"{path}/plan.toml", self.plan.to_toml())
        files.write_text(f"{path}/losses.json", self.detail.losses.write_json())


def places_of(protected: str, *, detail: bool) -> WrittenBySpark:
    """Where a release written to this path goes."""
    stem = protected.removesuffix(".parquet")
    return WrittenBySpark(
        protected, f"{stem}.certificate.json", f"{stem}.detail" if detail else None
    )


def check_places(
    spark: SparkSession, written: WrittenBySpark, *, overwrite: bool, source: str | None = None
) -> None:
    """Refuse places that should not be written, before any work is done."""
    files = Files(spark, written.protected)
    if source is not None and Files(spark, source).whole(source) == files.whole(written.protected):
        raise FileError(
            f"{written.protected}: the output would replace the input; choose another path"
        )
    for path in vars(written).values():
        if path and not overwrite and files.exists(path):
            raise FileError(f"{path}: it exists; choose another path or overwrite it")


@contextmanager
def _moved_into_place(files: Files, paths: list[str]) -> Iterator[list[str]]:
    """Give a temporary path for each; move all into place at the end, or remove all on failure."""
    token = secrets.token_hex(4)
    temporary = [
        "/".join([*path.split("/")[:-1], f".{token}.{path.split('/')[-1]}"]) for path in paths
    ]
    try:
        yield temporary
        for source, target in zip(temporary, paths, strict=True):
            files.delete(target)
            files.move(source, target)
    finally:
        for path in temporary:
            files.delete(path)


def _digest(spark: SparkSession, path: str) -> str:
    """SHA-256 of a directory; every file is read where it lies."""
    contents = spark.read.format("binaryFile").load(path)
    digests = contents.select("path", F.sha2("content", 256)).collect()
    return digest_of_directory({name.rpartition("/")[2]: digest for name, digest in digests})
