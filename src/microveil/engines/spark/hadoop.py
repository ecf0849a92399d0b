"""Files where Spark keeps them: on this machine, HDFS or an object store, by Hadoop's interface."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from microveil.core.scratch import name_of_scratch
from microveil.engines.spark.settings import whole_batches
from microveil.errors import FileError, PlanError

PATIENCE = 60.0
"""Seconds to wait for somebody else who moves the same release into place."""

SCRATCH = "spark.microveil.scratch"
"""The Spark setting that names a directory all workers can reach."""


def place(spark: SparkSession, path: str | Path) -> str:
    """Return where a path is: relative ones on this machine start here, not where Java started."""
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    elsewhere = ":/" in str(path) or not settings.get("fs.defaultFS").startswith("file:")
    return str(path).rstrip("/") if elsewhere else Path(path).absolute().as_posix()


class Files:
    """The file system of a Spark session that holds a path."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        java: Any = spark._jvm
        self._path = java.org.apache.hadoop.fs.Path
        self._permission = java.org.apache.hadoop.fs.permission.FsPermission
        settings = spark.sparkContext._jsc.hadoopConfiguration()
        self._files = self._path(path).getFileSystem(settings)

    def whole(self, path: str) -> str:
        """Return a path with its file system and all its directories."""
        return str(self._files.makeQualified(self._path(path)).toString())

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        return bool(self._files.exists(self._path(path)))

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with all it holds, if it is there."""
        self._files.delete(self._path(path), True)

    def move(self, source: str, target: str) -> None:
        """Rename a file or directory."""
        if not self._files.rename(self._path(source), self._path(target)):
            raise FileError(f"{target}: cannot be written")

    def on_this_machine(self, path: str) -> Path | None:
        """Return a path as Python knows it; None if it is on another file system."""
        uri = self._files.makeQualified(self._path(path)).toUri()
        return Path(uri.getPath()) if uri.getScheme() == "file" else None

    @contextmanager
    def locked(self, path: str) -> Iterator[None]:
        """Keep others who name the same path waiting, by a file that is there meanwhile."""
        until = monotonic() + PATIENCE
        while not self._is_new(path):
            if monotonic() > until:
                raise FileError(
                    f"{path}: for a minute somebody else has been writing this release; if nobody "
                    "is, a run was killed at that moment: delete this file and try again"
                )
            sleep(0.1)
        try:
            yield
        finally:
            self.delete(path)

    def _is_new(self, path: str) -> bool:
        try:
            return bool(self._files.createNewFile(self._path(path)))
        except Py4JJavaError:
            if self.exists(path):  # somebody else was quicker
                return False
            raise

    def write_text(self, path: str, text: str) -> None:
        """Write a file, without a checksum beside it."""
        self._files.setWriteChecksum(False)
        out = self._files.create(self._path(path), True)
        try:
            out.write(text.encode())
        finally:
            out.close()
            self._files.setWriteChecksum(True)

    def make_private(self, path: str) -> None:
        """Make a directory that others cannot read, and that goes when Spark ends."""
        self._files.mkdirs(self._path(path), self._permission("700"))
        self._files.setPermission(self._path(path), self._permission("700"))
        self._files.deleteOnExit(self._path(path))


def place_of_scratch(spark: SparkSession) -> str:
    """Return the directory in which scratch directories are made."""
    base = spark.conf.get(SCRATCH, None) or Path(tempfile.gettempdir()).as_uri()
    return base.rstrip("/")


class Scratch:
    """A private directory for what is written once and read back."""

    def __init__(self, spark: SparkSession) -> None:
        if spark.conf.get(SCRATCH, None) is None and not str(spark.sparkContext.master).startswith(
            "local"
        ):
            raise PlanError(
                f"Spark needs a directory that all workers can reach: set {SCRATCH}, "
                "e.g. --conf spark.microveil.scratch=hdfs:///tmp"
            )
        self._spark = spark
        self.path = f"{place_of_scratch(spark)}/{name_of_scratch()}"
        self._files = Files(spark, self.path)
        self._files.make_private(self.path)

    @property
    def on_this_machine(self) -> Path | None:
        """The directory as Python knows it; None if it is on another file system."""
        return self._files.on_this_machine(self.path)

    def write(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a table and return it read back.

        Whatever was drawn at random is drawn once: of the attempts at a task, failed, repeated or
        speculative, Hadoop's committer moves the files of one into place, and whoever reads the
        table again, in this job or the next, reads those files.
        """
        path = f"{self.path}/{name}"
        with whole_batches(self._spark):
            frame.write.options(**_HOW).parquet(path)
        return self._spark.read.schema(frame.schema).parquet(path)

    def delete(self, name: str = "") -> None:
        """Remove a table, or all of them."""
        self._files.delete(f"{self.path}/{name}".rstrip("/"))


_HOW = {
    "mapreduce.fileoutputcommitter.algorithm.version": "1",  # 2 may leave a failed attempt's files
    "parquet.enable.dictionary": "false",  # few values come more than once
}
