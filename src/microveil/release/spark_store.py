"""Releases on any file system Spark writes to."""

import json
import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from microveil.engines.spark.scratch_files import (
    FileSystem,
    check_shared,
    file_system_of,
    locked_place,
    place,
    place_of_scratch,
)
from microveil.errors import FileError
from microveil.formats import TableMeta, digest_of_directory, remove_scratch
from microveil.formats.atomic import OR_OVERWRITE, exclusive
from microveil.plan.plan import Plan
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
        files = file_system_of(self.spark, places.protected)
        if self.source is not None:
            source = file_system_of(self.spark, self.source).whole(self.source)
            if source == files.whole(places.protected):
                raise FileError(
                    f"{places.protected}: the output would replace the input; choose another path"
                )
        for path in places.all:
            if not overwrite and files.exists(path):
                raise FileError(f"{path}: it exists; {OR_OVERWRITE}")
        check_shared(self.spark, places.protected.rpartition("/")[0] or "/")

    def remove_leftovers(self) -> None:
        """Remove what killed runs of this user left, where that is on this machine."""
        base = place_of_scratch(self.spark)
        here = file_system_of(self.spark, base).on_this_machine(base)
        if here is not None:
            remove_scratch(here)

    @contextmanager
    def moved_into_place(self, places: Sequence[str]) -> Iterator[list[str]]:
        """Give a temporary place for each; move all into place at the end, in turn, or none."""
        files, token = file_system_of(self.spark, places[0]), secrets.token_hex(4)
        temporary = [_hidden(path, token) for path in places]
        try:
            yield temporary
            with _alone(files, places[0]):
                _move(files, temporary, places)
        finally:
            for path in temporary:
                files.delete(path)

    def write_table(self, data: DataFrame, place: str, _meta: TableMeta) -> None:
        """Write a directory of Parquet files."""
        data.write.parquet(place)

    def write_text(self, text: str, place: str) -> None:
        """Write text in UTF-8."""
        file_system_of(self.spark, place).write_text(place, text)

    def write_detail(self, detail: Detail, place: str) -> None:
        """Write a directory, readable by its owner only."""
        files, clusters, rows = file_system_of(self.spark, place), detail.clusters, detail.positions
        files.make_private(place)
        clusters.write.parquet(f"{place}/clusters")
        if rows is not None:
            rows.write.parquet(f"{place}/rows")
        for number, joint in enumerate(detail.joint.values()):
            joint.write.parquet(f"{place}/joint{number}")
        files.write_text(f"{place}/joint.json", json.dumps(list(detail.joint)))
        files.write_text(f"{place}/about.json", detail.about())
        files.write_text(f"{place}/plan.toml", detail.plan_text)
        files.write_text(f"{place}/losses.json", detail.losses.write_json())

    def digest(self, place: str) -> str:
        """SHA-256 of a directory; every file is read where it lies."""
        contents = self.spark.read.format("binaryFile").load(place)
        rows: list[Any] = contents.select("path", F.sha2("content", 256)).collect()
        return digest_of_directory({name.rpartition("/")[2]: digest for name, digest in rows})


def read_detail(spark: SparkSession, path: str | Path) -> Detail:
    """Read the directory of a private detail; its tables stay on the cluster."""
    at = place(spark, path)
    if not file_system_of(spark, f"{at}/about.json").exists(f"{at}/about.json"):
        raise FileError(f"{path}: not a detail that Spark wrote; give the directory .detail")

    def text(name: str) -> str:
        read = spark.read.text(f"{at}/{name}", wholetext=True).collect()
        return str(read[0][0]) if read else ""

    return Detail(
        clusters=spark.read.parquet(f"{at}/clusters"),
        losses=pl.read_json(StringIO(text("losses.json"))),
        positions=spark.read.parquet(f"{at}/rows"),
        plan=Plan.from_toml(text("plan.toml")),
        protected_sha256=json.loads(text("about.json"))["protected_sha256"],
        joint={
            names: spark.read.parquet(f"{at}/joint{number}")
            for number, names in enumerate(json.loads(text("joint.json")))
        },
    )


def _hidden(path: str, mark: str) -> str:
    """Name a place beside a path that readers of the directory pass over."""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}.{mark}.{name}"


def _alone(files: FileSystem, path: str) -> AbstractContextManager[None]:
    """Keep others waiting who write the same release."""
    local = files.on_this_machine(path)
    return locked_place(files, _hidden(path, "lock")) if local is None else exclusive(local.parent)


def _move(files: FileSystem, sources: Sequence[str], targets: Sequence[str]) -> None:
    """Move all into place in turn, what was there aside; put it back if one cannot be moved.

    A directory cannot be replaced at once: for a moment the old one has another name.
    """
    moved: list[str] = []
    aside = {target: f"{source}.old" for source, target in zip(sources, targets, strict=True)}
    try:
        for source, target in zip(sources, targets, strict=True):
            if files.exists(target):
                files.move(target, aside[target])
            files.move(source, target)
            moved.append(target)
    except BaseException:
        for target in moved:
            files.delete(target)
        for target, old in aside.items():
            if files.exists(old):
                files.move(old, target)
        raise
    for old in aside.values():
        files.delete(old)
