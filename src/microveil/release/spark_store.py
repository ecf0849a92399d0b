"""Releases on any file system Spark writes to, by Hadoop's interface."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from microveil.engines.spark.hadoop import Files, place
from microveil.errors import FileError
from microveil.formats import TableMeta, digest_of_directory
from microveil.formats.paths import OR_OVERWRITE
from microveil.release.detail import Detail
from microveil.release.store import Places


@dataclass(frozen=True)
class SparkStore:
    """The file systems of a Spark session; `source` is where the table came from, if known."""

    spark: SparkSession = field(repr=False)
    source: str | None = None
    meta: TableMeta = field(default_factory=TableMeta)

    def places(self, path: str | Path, *, detail: bool) -> Places:
        """Where a release written to this path goes."""
        protected = place(self.spark, path)
        stem = protected[:-8] if protected.lower().endswith(".parquet") else protected
        return Places(protected, f"{stem}.certificate.json", f"{stem}.detail" if detail else None)

    def check(self, places: Places, *, overwrite: bool) -> None:
        """Refuse places that should not be written, before any work is done."""
        files = Files(self.spark, places.protected)
        if self.source is not None:
            source = Files(self.spark, self.source).whole(self.source)
            if source == files.whole(places.protected):
                raise FileError(
                    f"{places.protected}: the output would replace the input; choose another path"
                )
        for path in places.all:
            if not overwrite and files.exists(path):
                raise FileError(f"{path}: it exists; {OR_OVERWRITE}")

    @contextmanager
    def moved_into_place(self, places: Sequence[str]) -> Iterator[list[str]]:
        """Give a temporary place for each; move all into place at the end, or remove all."""
        files, token = Files(self.spark, places[0]), secrets.token_hex(4)
        temporary = [
            "/".join([*path.split("/")[:-1], f".{token}.{path.split('/')[-1]}"]) for path in places
        ]
        try:
            yield temporary
            for source, target in zip(temporary, places, strict=True):
                files.delete(target)
                files.move(source, target)
        finally:
            for path in temporary:
                files.delete(path)

    def write_table(self, data: DataFrame, place: str, _meta: TableMeta) -> None:
        """Write a directory of Parquet files."""
        data.write.parquet(place)

    def write_text(self, text: str, place: str) -> None:
        """Write text in UTF-8."""
        Files(self.spark, place).write_text(place, text)

    def write_detail(self, detail: Detail, place: str) -> None:
        """Write a directory, readable by its owner only."""
        files, clusters = Files(self.spark, place), detail.clusters
        files.make_private(place)
        clusters.write.parquet(f"{place}/clusters")
        files.write_text(f"{place}/about.json", detail.about())
        files.write_text(f"{place}/plan.toml", detail.plan_text)
        files.write_text(f"{place}/losses.json", detail.losses.write_json())

    def digest(self, place: str) -> str:
        """SHA-256 of a directory; every file is read where it lies."""
        contents = self.spark.read.format("binaryFile").load(place)
        rows: list[Any] = contents.select("path", F.sha2("content", 256)).collect()
        return digest_of_directory({name.rpartition("/")[2]: digest for name, digest in rows})
