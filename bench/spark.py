"""Spark on this machine's cores beside the memory engine: time, growth, shuffled and driver bytes.

From a Parquet file to a protected Parquet file, secure noise: iDP-CBLS with k = 10, and after
`recommended` the recommended plan, pooled 10 to a joint cluster. Arguments: numbers of records, by
default 2,000,000 and 20,000,000.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession

from microveil import Confidential, Plan, protect
from microveil.engines.spark.connection import open_session
from microveil.engines.spark.scratch_files import Scratch

ATTRIBUTES, K = 4, 10
MIB = 2**20
NAMED = {f"x{number}": Confidential(decimals=2) for number in range(ATTRIBUTES)}
PLANS = {
    f"iDP-CBLS, k = {K}": Plan.published(epsilon=1.0, k=K, attributes=NAMED),
    "recommended": Plan(epsilon=1.0, anonymity=K, attributes=NAMED),
}
STEPS = {
    "records": "copy",
    "sample": "sample",
    "ranked": "rank",
    "masked": "cut and mask",
    "regressed": "cut and mask",
    "gathered": "pool",
    "pooled": "pool",
    "release": "join",
}


def make(path: Path, records: int) -> None:
    """Write a table of reals with two decimals: skewed, normal, uniform and heavily tied."""
    random = np.random.default_rng(1)
    shapes = (
        random.lognormal(3, 1, records),
        random.normal(0, 100, records),
        random.uniform(0, 1000, records),
        random.integers(0, 100, records).astype(np.float64),
    )
    columns = {f"x{number}": shape.round(2) for number, shape in enumerate(shapes)}
    pl.DataFrame(columns).write_parquet(path, row_group_size=MIB)


def seconds(work: Callable[[], object]) -> float:
    """Time a piece of work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


FIGURES = ("executorRunTime", "executorCpuTime", "shuffleWriteBytes", "outputBytes",
           "diskBytesSpilled", "resultSize", "numTasks")  # fmt: skip


def figures(spark: SparkSession) -> pl.DataFrame:
    """Return what each stage so far took, shuffled, wrote, spilled and sent to the driver."""
    context: Any = spark.sparkContext
    none = context._gateway.new_array(context._jvm.double, 0)
    stages = context._jsc.sc().statusStore().stageList(None, False, False, none, None)
    every = [stages.apply(number) for number in range(stages.size())]
    rows = [
        (stage.stageId(), _step(stage), *(int(getattr(stage, name)()) for name in FIGURES))
        for stage in every
    ]
    columns = {"stage": pl.Int64, "step": pl.String, **dict.fromkeys(FIGURES, pl.Int64)}
    return pl.DataFrame(rows, columns, orient="row")


def _step(stage: Any) -> str:  # noqa: ANN401 - of Java
    """Name the step of a stage, by what `described` told Spark of it."""
    said = stage.description()
    return STEPS.get(said.get().split("/")[-1], "count") if said.isDefined() else "count"


@contextmanager
def described(spark: SparkSession) -> Iterator[None]:
    """Let Spark know what is written to scratch, so that stages can be told apart."""
    write = Scratch.write

    def named(self: Scratch, frame: DataFrame, name: str) -> DataFrame:
        spark.sparkContext.setJobDescription(name)
        try:
            return write(self, frame, name)
        finally:
            spark.sparkContext.setJobDescription(None)  # type: ignore[arg-type]

    with patch.object(Scratch, "write", named):
        yield


def measure(spark: SparkSession, records: int, plan: str) -> float:
    """Run both engines once and print their figures; return Spark's seconds."""
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "in.parquet")
        make(source, records)
        memory = seconds(lambda: protect(source, PLANS[plan]).write(f"{directory}/memory.parquet"))
        before = figures(spark)["stage"].max()
        frame = spark.read.parquet(str(source))
        with described(spark):
            cluster = seconds(
                lambda: protect(frame, PLANS[plan]).write(f"{directory}/spark.parquet")
            )
    stages = figures(spark).filter(pl.col("stage") > (before if isinstance(before, int) else -1))
    used = stages.select(pl.col(FIGURES).sum()).row(0, named=True)
    shuffled = used["shuffleWriteBytes"]
    print(f"{records:,} records × {ATTRIBUTES} attributes, {plan}")
    for name, took in (("memory", memory), ("Spark", cluster)):
        print(f"  {name:<10}{took:8.1f} s {records / took / 1e6:8.2f} million records a second")
    print(f"  shuffled  {shuffled / MIB:8.0f} MiB, {shuffled / records / ATTRIBUTES:.1f} per value")
    print(f"  spilled   {used['diskBytesSpilled'] / MIB:8.0f} MiB")
    print(f"  to driver {used['resultSize'] / MIB:8.1f} MiB from {used['numTasks']:,} tasks")
    print("  step          tasks   task s   of them in Java   shuffled MiB   written MiB")
    for step, run, java, moved, written, _, _, tasks in (
        stages.group_by("step", maintain_order=True).agg(pl.col(FIGURES).sum()).rows()
    ):
        print(f"  {step:<12}{tasks:7,}{run / 1e3:9.1f}{java / 1e9:18.1f}{moved / MIB:15.0f}"
              f"{written / MIB:14.0f}")  # fmt: skip
    return cluster


def main() -> None:
    """Measure tables of growing size."""
    given = sys.argv[1:]
    plan = list(PLANS)["recommended" in given]
    sizes = [int(size) for size in given if size.isdigit()] or [2_000_000, 20_000_000]
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 6g pyspark-shell")
    spark = open_session("local[2]")
    measure(spark, 100_000, plan)  # to warm up
    took = [measure(spark, size, plan) for size in sizes]
    spark.stop()
    print(f"{sizes[0]:,} → {sizes[-1]:,} records: {took[-1] / took[0]:.1f} times Spark's time")


if __name__ == "__main__":
    main()
