"""Files by Hadoop's interface: the one place that reaches into Spark's Java, through py4j."""

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from microveil.errors import FileError


def starts_on_this_machine(spark: SparkSession) -> bool:
    """Whether a path that names no file system is one of this machine."""
    settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
    return bool(settings.get("fs.defaultFS").startswith("file:"))


class HadoopFiles:
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

    def make_new(self, path: str) -> bool:
        """Make an empty file, unless there is one."""
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
