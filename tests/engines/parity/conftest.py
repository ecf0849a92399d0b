"""Every behaviour on every engine: `run_on` protects a table on each of them in turn."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

from microveil import Certificate, Detail, MicroveilError, Plan, protect, protect_file
from microveil.engines.spark.beside_spark import fingerprint, staged_columns
from microveil.engines.spark.connection import check_installed, open_session
from microveil.release.release import Written
from microveil.types import Integers

ENGINES = ("memory", "columnwise", "spark")


class Outcome(NamedTuple):
    """What a release says, as tables in memory."""

    data: pl.DataFrame
    clusters: pl.DataFrame
    losses: pl.DataFrame
    certificate: Certificate
    positions: Integers | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What the certificate says whenever and wherever the release is written."""
        return dict(self.certificate.model_dump(exclude={"created", "file"}))


@dataclass(frozen=True)
class RunOn:
    """Protects a table on one engine."""

    engine: str
    run: Callable[..., Outcome]

    def __call__(self, table: pl.DataFrame, plan: Plan, **options: Any) -> Outcome:  # noqa: ANN401
        """Protect a table; options are a seed, and for Spark from how many partitions."""
        return self.run(table, plan, **options)


OPTIONS = [
    "--driver-memory 2g",
    "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC'",  # start quickly
    "--conf spark.sql.codegen.wholeStage=false",
    "--conf spark.sql.shuffle.partitions=2",
    "--conf spark.driver.host=127.0.0.1",
    "--conf spark.plugins=org.apache.spark.sql.connect.SparkConnectPlugin",  # for test_connect.py
    "--conf spark.connect.grpc.binding.address=127.0.0.1",
    "--conf spark.connect.grpc.binding.port=0",
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
        table: pl.DataFrame,
        plan: Plan,
        *,
        partitions: int = 3,
        seed: int | None = None,
        key: Path | None = None,
        positions: bool = False,
    ) -> Outcome:
        frame = spark.createDataFrame(table.to_arrow()).coalesce(1)
        release: Any = protect(frame.repartition(partitions), plan, seed=seed, key=key)
        clusters = pl.DataFrame(release.detail.clusters.toArrow())
        data = pl.DataFrame(release.data.toArrow())
        at = _positions(staged_columns(frame, plan), release) if positions else None
        return Outcome(data, _sorted(clusters), release.detail.losses, release.certificate, at)

    return RunOn("spark", run)


def _positions(original: DataFrame, release: Any) -> Integers:  # noqa: ANN401 - on Spark
    """Return where each released record stood, by the fingerprints in the private detail."""
    was, now = (
        [row[0] for row in frame.select(fingerprint(frame, dict(zip(frame.columns, frame.columns,
         strict=True)), release.plan)).collect()]
        for frame in (original, release.data)
    )  # fmt: skip
    told = {row.released: row.original for row in release.detail.positions.collect()}
    return np.array([was.index(told[each]) for each in now])


def run_in_memory(
    table: pl.DataFrame, plan: Plan, *, seed: int | None = None, key: Path | None = None
) -> Outcome:
    """Protect a table in memory, write the release and read it back."""
    with TemporaryDirectory() as folder:
        release = protect(table, plan, seed=seed, key=key)
        return _read(release.write(Path(folder) / "out.parquet", detail=True))


def run_columnwise(
    table: pl.DataFrame, plan: Plan, *, seed: int | None = None, key: Path | None = None
) -> Outcome:
    """Protect a Parquet file a column at a time, and read the release back."""
    with TemporaryDirectory() as folder:
        source, output = Path(folder) / "in.parquet", Path(folder) / "out.parquet"
        table.write_parquet(source)
        return _read(protect_file(source, plan, output, detail=True, seed=seed, key=key))


def _read(written: Written) -> Outcome:
    assert written.detail is not None
    detail, data = Detail.read(written.detail), pl.read_parquet(written.protected)
    certificate = Certificate.read(written.certificate)
    return Outcome(data, _sorted(detail.clusters), detail.losses, certificate, detail.positions)


def _on(engine: str, request: pytest.FixtureRequest) -> RunOn:
    if engine == "spark":
        run: RunOn = request.getfixturevalue("run_on_spark")
        return run
    return RunOn(engine, {"memory": run_in_memory, "columnwise": run_columnwise}[engine])


@pytest.fixture(params=ENGINES)
def run_on(request: pytest.FixtureRequest) -> RunOn:
    """Protect a table on each engine in turn."""
    return _on(request.param, request)


@pytest.fixture(params=ENGINES[1:])
def run_elsewhere(request: pytest.FixtureRequest) -> RunOn:
    """Protect a table on each engine in turn that is to do what memory does."""
    return _on(request.param, request)


def _sorted(clusters: pl.DataFrame) -> pl.DataFrame:
    return clusters.sort("attribute", "cluster")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep all tests of this directory on one worker: Spark takes both cores."""
    for item in items:
        if "parity" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("spark"))
