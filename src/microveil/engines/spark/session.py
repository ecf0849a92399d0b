"""Start Spark, or say what is missing."""

import os
import shutil
import sys
from typing import TYPE_CHECKING

from microveil.errors import FileError, MicroveilError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_parquet(spark: "SparkSession", path: str) -> "DataFrame":
    """Open a Parquet table."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        return spark.read.parquet(path)
    except (Py4JError, PySparkException) as error:
        missing = "PATH_NOT_FOUND" in str(error)
        what = "no such file" if missing else "not Parquet that Spark can read"
        raise FileError(f"{path}: {what}") from None


def open_session(master: str | None = None) -> "SparkSession":
    """Start Spark, or join the session that runs; quiet, and with this Python on the workers."""
    check_installed()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("microveil").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.ui.enabled", "false")
    if master is not None:
        builder = builder.master(master)
    if (master or "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder.getOrCreate()


def check_installed() -> None:
    """Refuse to go on without PySpark or Java."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MicroveilError("Spark needs PySpark: pip install 'microveil[spark]'") from None
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=f"{home}/bin" if home else None):
        raise MicroveilError(
            "Spark needs Java 17 or newer: install it (on Debian and Ubuntu: apt-get install "
            "openjdk-17-jre-headless) or set JAVA_HOME"
        )
