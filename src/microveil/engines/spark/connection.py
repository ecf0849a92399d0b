"""Start Spark, or say what is missing."""

import os
import shutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from microveil.errors import FileError, MicroveilError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECT = "sc://"
"""How the address of a Spark Connect server begins."""

CONNECT_PATIENCE = 10.0
"""Seconds to wait for such a server."""

_JAVA = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:Tier4InvocationThreshold=20000 "
    "-XX:Tier4MinInvocationThreshold=2400 -XX:Tier4CompileThreshold=60000 "
    "-XX:Tier4BackEdgeThreshold=160000"
)
"""Let Java compile code for good once it has run four times as often as it would wait for.

Every step is code of its own, and on one machine compiling took a sixth of all time.
"""

_ON_ONE_MACHINE = {
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(2**25),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**30),
}
"""Let Python workers keep memory for their next task instead of giving it back to the system."""


def read_with_spark(spark: "SparkSession", path: str) -> "DataFrame":
    """Open a Parquet table."""
    try:
        table = spark.read.parquet(path)
        table.schema  # noqa: B018 - Spark Connect looks at a file no earlier
    except _spark_errors() as error:
        missing = "PATH_NOT_FOUND" in str(error)
        what = "no such file" if missing else "not Parquet that Spark can read"
        raise FileError(f"{path}: {what}") from None
    return table


def _spark_errors() -> tuple[type[Exception], ...]:
    """Return what Spark raises: also Java's own errors, where there is a Java."""
    from pyspark.errors import PySparkException

    if find_spec("py4j") is None:
        return (PySparkException,)
    from py4j.protocol import Py4JError

    return PySparkException, Py4JError


def open_session(master: str | None = None) -> "SparkSession":
    """Start Spark, or join the session that runs; quiet, and with this Python on the workers."""
    address = master or os.environ.get("SPARK_REMOTE", "")
    connected = address.startswith(CONNECT)
    check_installed(connected=connected)
    if connected:
        return _connect(address)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("microveil").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.ui.enabled", "false")
    if master is not None:
        builder = builder.master(master)
    if (master or "local").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_SUBMIT_OPTS", _JAVA)
        for name, value in _ON_ONE_MACHINE.items():
            builder = builder.config(name, value)
    return builder.getOrCreate()


def _connect(address: str) -> "SparkSession":
    """Join a server that answers within a while: PySpark by itself would try for ten minutes."""
    import grpc
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.client import DefaultChannelBuilder

    try:
        channel = DefaultChannelBuilder(address).toChannel()
        grpc.channel_ready_future(channel).result(timeout=CONNECT_PATIENCE)
        channel.close()
        return SparkSession.builder.remote(address).getOrCreate()
    except (PySparkException, grpc.FutureTimeoutError, grpc.RpcError):
        server = address.partition("/;")[0]  # what comes after may be a password
        raise MicroveilError(
            f"{server}: no Spark Connect server answers; expected an address as sc://host:15002"
        ) from None


def check_installed(*, connected: bool = False) -> None:
    """Refuse to go on without PySpark, and Java or what Spark Connect needs."""
    if find_spec("pyspark") is None or (connected and find_spec("grpc_status") is None):
        raise MicroveilError("Spark needs PySpark: pip install 'microveil[spark]'")
    home = os.environ.get("JAVA_HOME")
    if not connected and not shutil.which("java", path=f"{home}/bin" if home else None):
        raise MicroveilError(
            "Spark needs Java 17 or newer: install it (on Debian and Ubuntu: apt-get install "
            "openjdk-17-jre-headless) or set JAVA_HOME"
        )
