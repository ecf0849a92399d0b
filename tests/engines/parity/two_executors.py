"""Protect tables on two executors, of which tasks are slow or die; print what was seen, as JSON.

A program of its own, since a cluster needs a driver of its own: see `test_two_executors.py`.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession

from microveil import Confidential, Plan, protect
from microveil.engines.spark import spark_table as line
from microveil.engines.spark.scratch_files import SCRATCH, Scratch

RECORDS = 180
DOMAIN = Confidential(lower=0, upper=10_000)
TABLE = pl.DataFrame(
    {name: np.arange(RECORDS) * step for name, step in (("x", 30), ("y", 30), ("n", 1))}
)
QUICK = "-XX:TieredStopAtLevel=1"
OPTIONS = {
    "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m", "spark.driver.memory": "768m", "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": QUICK, "spark.driver.extraJavaOptions": QUICK,
    "spark.speculation": "true", "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.4", "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "300ms",
}  # fmt: skip


def main(folder: Path) -> None:
    """Protect a table twice: with a slow task, and with an executor that dies while it pools."""
    with cluster(folder) as spark:
        found = {"slow": with_a_slow_task(spark, folder), "dead": with_a_death(spark, folder)}
    print(json.dumps(found))  # noqa: T201 - read by the test


def with_a_slow_task(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Draw the noise of a task twice at the same time."""
    plan = Plan.published(epsilon=1, k=4, method="iDP-LS", attributes={"x": DOMAIN, "n": "kept"})
    how = partial(draw_twice, diary=str(made(folder / "slow")))
    return protected(spark, plan, Sabotage("c0/masked", ("clusters", "batch"), how))


def with_a_death(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Pool in blocks, one of which takes an executor with it."""
    line.__dict__["VALUES_PER_TASK"] = 360
    plan = Plan.published(
        epsilon=3e6, k=5, anonymity=8, pooling="exchange",
        attributes={"x": DOMAIN, "y": DOMAIN, "n": "kept"},
    )  # fmt: skip
    how = partial(die_once, diary=str(made(folder / "dead")))
    return protected(spark, plan, Sabotage("pool0/pooled", ("key", "m0"), how))


class Sabotage(NamedTuple):
    """What happens to the tasks that write one table, and the columns that tell what was drawn."""

    stage: str
    columns: tuple[str, str]
    how: partial[Iterator[pa.RecordBatch]]


@contextmanager
def cluster(folder: Path) -> Iterator[SparkSession]:
    """Start a master and two workers of one core each.

    They have hosts of their own, since Spark makes no speculative attempt on the same host, for
    which reason `local-cluster` will not do.
    """
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["SPARK_DAEMON_JAVA_OPTS"] = QUICK
    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = " ".join(f"--conf {name}={value}" for name, value in OPTIONS.items())
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{options} pyspark-shell"
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    running = [start(folder, f"master.Master --host 127.0.0.1 --port {port} --webui-port 0")]
    for host in ("127.0.0.2", "127.0.0.3"):
        room = f"--cores 1 --memory 768m --work-dir {folder}/{host}"
        running += [start(folder, f"worker.Worker --host {host} {room} --webui-port 0 {master}")]
    try:
        session = SparkSession.builder.master(master).config(SCRATCH, str(made(folder / "scratch")))
        spark = session.getOrCreate()
        yield spark
        spark.stop()
    finally:
        for process in running:
            process.terminate()


def start(folder: Path, what: str) -> subprocess.Popen[bytes]:
    """Start a part of a cluster of Spark's own kind; what it says goes to a file."""
    name, *arguments = what.split()
    program = f"{os.environ['SPARK_HOME']}/bin/spark-class"
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603
            [program, f"org.apache.spark.deploy.{name}", *arguments], stdout=log, stderr=log
        )


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def protected(spark: SparkSession, plan: Plan, sabotage: Sabotage) -> dict[str, Any]:
    """Protect a table; return the release, what was written, and what every attempt has drawn."""
    written: list[Any] = []
    write = Scratch.write

    def sabotaged(self: Scratch, frame: DataFrame, name: str) -> DataFrame:
        if name != sabotage.stage:
            return write(self, frame, name)
        work = partial(sabotage.how, columns=sabotage.columns)
        found = write(self, frame.mapInArrow(work, frame.schema), name)
        rows = found.select(*sabotage.columns).collect()
        written.extend(tuple(map(short, row)) for row in rows)
        return found

    Scratch.write = sabotaged  # type: ignore[method-assign]
    table = TABLE.select(name for name in TABLE.columns if name in plan.attributes)
    release: Any = protect(spark.createDataFrame(table.to_arrow()).repartition(2), plan)
    data = pl.DataFrame(release.data.toArrow()).to_dict(as_series=False)
    Scratch.write = write  # type: ignore[method-assign]
    attempts = diaries(Path(sabotage.how.keywords["diary"]))
    return {"data": data, "written": written, "attempts": attempts}


def draw_twice(
    batches: Iterator[pa.RecordBatch], columns: tuple[str, str], diary: str
) -> Iterator[pa.RecordBatch]:
    """Draw noise; the first two attempts at the first task end when both have done so."""
    import time

    number, attempt = task()
    yield from noted(batches, columns, diary)
    until = time.monotonic() + 60
    while number == 0 and attempt < 2 and time.monotonic() < until:
        time.sleep(0.1)
        if all(any(Path(diary).glob(f"0-{which}-*")) for which in (0, 1)):
            break


def die_once(
    batches: Iterator[pa.RecordBatch], columns: tuple[str, str], diary: str
) -> Iterator[pa.RecordBatch]:
    """Draw permutations, then in the first attempt at the second task kill the whole executor."""
    import os
    import signal

    number, _ = task()
    yield from noted(batches, columns, diary)
    if number == 1 and not Path(diary, "died").exists():
        Path(diary, "died").touch()
        executor = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
        os.kill(int(executor), signal.SIGKILL)


def noted(
    batches: Iterator[pa.RecordBatch], columns: tuple[str, str], diary: str
) -> Iterator[pa.RecordBatch]:
    """Hand batches on, then write down what was drawn; others may have the same numbers."""
    import secrets

    seen: list[Any] = []
    for batch in batches:
        seen += zip(*(map(short, batch[name].to_pylist()) for name in columns), strict=True)
        yield batch
    number, attempt = task()
    Path(diary, f"{number}-{attempt}-{secrets.token_hex(4)}").write_text(json.dumps(seen))


def short(value: Any) -> Any:  # noqa: ANN401 - a number, or packed clusters
    """Return a value by which it is told from others in a file of JSON."""
    from hashlib import sha256

    return sha256(value).hexdigest() if isinstance(value, bytes | bytearray) else value


def task() -> tuple[int, int]:
    """Return the number of the partition, and of the attempt at it."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.attemptNumber()


def diaries(folder: Path) -> list[tuple[int, Any]]:
    """Return the number of the task, and what it has drawn, for every attempt."""
    found = folder.glob("*-*-*")
    return [(int(path.name.partition("-")[0]), json.loads(path.read_text())) for path in found]


def made(folder: Path) -> Path:
    """Make a directory."""
    folder.mkdir()
    return folder


if __name__ == "__main__":
    main(Path(sys.argv[1]))
