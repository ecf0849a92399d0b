"""Every behaviour on every engine: `run_on` runs a plan in memory or on Spark."""

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import polars as pl
import pytest
from pyspark.sql import SparkSession

from microveil import Certificate, MicroveilError, Plan, protect
from microveil.engines.spark.session import check_installed, open_session


class Outcome(NamedTuple):
    """What a release says, as tables in memory."""

    data: pl.DataFrame
    clusters: pl.DataFrame
    losses: pl.DataFrame
    certificate: Certificate


RunOn = Callable[..., Outcome]

OPTIONS = [
    "--driver-memory 2g",
    "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'",  # start quickly
    "--conf spark.sql.codegen.wholeStage=false",
    "--conf spark.sql.shuffle.partitions=2",
    "--conf spark.driver.host=127.0.0.1",
]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small Spark for all tests; a task may fail three times."""
    try:
        check_installed()
    except MicroveilError as error:
        pytest.skip(str(error))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{' '.join(OPTIONS)} pyspark-shell"
    session = open_session("local[2,4]")
    yield session
    session.stop()


@pytest.fixture
def run_on_spark(spark: SparkSession) -> RunOn:
    """Protect a table on Spark, from so many partitions."""

    def run(
        table: pl.DataFrame, plan: Plan, *, partitions: int = 3, seed: int | None = None
    ) -> Outcome:
        frame = spark.createDataFrame(table.to_arrow()).coalesce(1)
        release: Any = protect(frame.repartition(partitions), plan, seed=seed)
        clusters = pl.DataFrame(release.detail.clusters.toArrow())
        data = pl.DataFrame(release.data.toArrow())
        return Outcome(data, _sorted(clusters), release.detail.losses, release.certificate)

    return run


def run_in_memory(table: pl.DataFrame, plan: Plan) -> Outcome:
    """Protect a table in memory."""
    release = protect(table, plan)
    detail = release.detail
    return Outcome(release.data, _sorted(detail.clusters), detail.losses, release.certificate)


@pytest.fixture(params=["memory", "spark"])
def run_on(request: pytest.FixtureRequest) -> RunOn:
    """Protect a table on each engine in turn."""
    if request.param == "memory":
        return run_in_memory
    run: RunOn = request.getfixturevalue("run_on_spark")
    return run


def _sorted(clusters: pl.DataFrame) -> pl.DataFrame:
    return clusters.sort("attribute", "cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests of this directory on one worker: Spark takes both cores."""
    for item in items:
        if "parity" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("spark"))
