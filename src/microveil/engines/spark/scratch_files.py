"""Files where Spark keeps them, and the scratch directory; Hadoop's interface or Arrow's."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from microveil.core.scratch import name_of_scratch
from microveil.engines.spark.shared_files import SharedFiles
from microveil.engines.spark.spark_settings import whole_batches
from microveil.errors import FileError, PlanError

SCRATCH = "spark.microveil.scratch"
"""The Spark setting that names a directory all workers can reach."""

SCRATCH_VARIABLE = "MICROVEIL_SCRATCH"
"""The environment variable that does so where a service takes no settings of its users."""

_PATIENCE = 60.0  # seconds to wait for another process that writes the same release


class FileSystem(Protocol):
    """The file system that holds a path."""

    def whole(self, path: str) -> str:
        """Return a path with its file system and all its directories."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with all it holds, if it is there."""

    def move(self, source: str, target: str) -> None:
        """Rename a file or directory."""

    def on_this_machine(self, path: str) -> Path | None:
        """Return a path as Python knows it; None if it is on another file system."""

    def make_new(self, path: str) -> bool:
        """Make a file, unless there is one."""

    def write_text(self, path: str, text: str) -> None:
        """Write a file."""

    def make_private(self, path: str) -> None:
        """Make a directory that others cannot read, and that goes in the end."""


def is_connected(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect."""
    return ".connect." in type(spark).__module__


def file_system_of(spark: SparkSession, path: str) -> FileSystem:
    """Open the file system that holds a path."""
    if is_connected(spark):
        return SharedFiles(path)
    from microveil.engines.spark.hadoop import HadoopFiles

    return HadoopFiles(spark, path)


def place(spark: SparkSession, path: str | Path) -> str:
    """Return where a path is: relative ones on this machine start here, not where Java started."""
    elsewhere = ":/" in str(path) or not _starts_here(spark)
    return str(path).rstrip("/") if elsewhere else Path(path).absolute().as_posix()


def _starts_here(spark: SparkSession) -> bool:
    if is_connected(spark):
        return True
    from microveil.engines.spark.hadoop import starts_on_this_machine

    return starts_on_this_machine(spark)


@contextmanager
def locked_place(files: FileSystem, path: str) -> Iterator[None]:
    """Keep other processes waiting that name the same path, by a file that is there meanwhile.

    These file systems are Hadoop's and Arrow's, which have no locks.
    """
    until = monotonic() + _PATIENCE
    while not files.make_new(path):
        if monotonic() > until:
            raise FileError(
                f"{path}: another process has been writing this release for a minute; if none is, "
                "a run was killed: delete this file and try again"
            )
        sleep(0.1)
    try:
        yield
    finally:
        files.delete(path)


def check_shared(spark: SparkSession, directory: str) -> None:
    """Refuse a directory in which Spark's server does not see what this machine writes.

    Only with Spark Connect can they be two: the server is asked to read a file made here.
    """
    if not is_connected(spark):
        return
    files, path = (
        file_system_of(spark, directory),
        f"{directory}/microveil-{secrets.token_hex(4)}.txt",
    )
    try:
        files.write_text(path, path)
        seen = [row.value for row in spark.read.text(path).collect()]
    except (PySparkException, OSError):
        seen = []
    finally:
        files.delete(path)
    if seen != [path]:
        raise FileError(
            f"{directory}: the server of Spark Connect cannot read what this machine writes there; "
            f"a release, and the scratch directory that {SCRATCH} names, must be where both can "
            "read and write, as the same user: a shared file system, HDFS or an object store"
        )


def place_of_scratch(spark: SparkSession) -> str:
    """Return the directory in which scratch directories are made."""
    base = _named_scratch(spark) or Path(tempfile.gettempdir()).as_uri()
    return base.rstrip("/")


def _named_scratch(spark: SparkSession) -> str | None:
    return _setting(spark, SCRATCH) or os.environ.get(SCRATCH_VARIABLE)


def _setting(spark: SparkSession, name: str) -> str | None:
    try:
        return spark.conf.get(name, None)
    except PySparkException:  # a managed service may not tell
        return None


class Scratch:
    """A private directory for what is written once and read back."""

    def __init__(self, spark: SparkSession) -> None:
        if _named_scratch(spark) is None and not _is_one_machine(spark):
            raise PlanError(
                f"Spark needs a directory that all workers can reach: set {SCRATCH}, "
                "e.g. --conf spark.microveil.scratch=hdfs:///tmp"
            )
        self._spark = spark
        self.path = f"{place_of_scratch(spark)}/{name_of_scratch()}"
        self._files = file_system_of(spark, self.path)
        self._files.make_private(self.path)
        try:
            check_shared(spark, self.path)
        except FileError:
            self.delete()
            raise

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


def _is_one_machine(spark: SparkSession) -> bool:
    return (_setting(spark, "spark.master") or "").startswith("local")


_HOW = {
    "compression": "uncompressed",  # it took more time than what it saved on disk
    "mapreduce.fileoutputcommitter.algorithm.version": "1",  # 2 may leave a failed attempt's files
    "parquet.enable.dictionary": "false",  # few values come more than once
}
