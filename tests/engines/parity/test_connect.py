"""Spark Connect: a client without Java, and a server that may be elsewhere."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from pyspark.sql import SparkSession

from microveil import (
    Certificate,
    Confidential,
    DataError,
    FileError,
    Plan,
    PlanError,
    protect,
    verdict,
)
from microveil.engines.spark import connection as session
from microveil.engines.spark import scratch_files as spark_files
from microveil.engines.spark.connection import read_with_spark
from microveil.engines.spark.scratch_files import SCRATCH, Scratch
from microveil.engines.spark.shared_files import SharedFiles
from microveil.formats import sha256_of
from tests.conftest import Run
from tests.engines.parity.conftest import run_in_memory

RANDOM = np.random.default_rng(17)
RECORDS = 400
TABLE = pl.DataFrame(
    {
        "x": RANDOM.lognormal(3, 1, RECORDS).round(2).clip(0, 1000),
        "y": RANDOM.permutation(RECORDS),
        "who": [f"p{number}" for number in range(RECORDS)],
    }
)
DOMAIN = Confidential(lower=0, upper=1000)
ROLES = {"x": DOMAIN, "y": DOMAIN, "who": "kept"}
PLAIN = Plan.published(epsilon=2, k=5, attributes=ROLES)
RECOMMENDED = Plan(epsilon=2, anonymity=8, attributes=ROLES)


@pytest.fixture(scope="module")
def address(spark: SparkSession) -> str:
    """Where the Connect server listens that the Spark of all tests has besides."""
    java: Any = spark._jvm
    service = getattr(java.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[SparkSession]:
    from pyspark.sql.connect.session import SparkSession as Client

    session: Any = Client.builder.remote(address).create()
    yield session
    session.client.close()


@pytest.fixture
def connected(client: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """A session whose functions are those of Connect: PySpark has one kind at a time."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    return client


def test_the_recommended_plan_gives_a_release_as_elsewhere(
    connected: SparkSession, tmp_path: Path
) -> None:
    frame = connected.createDataFrame(TABLE.to_arrow()).repartition(3)
    release = protect(frame, RECOMMENDED)
    release.write(f"{tmp_path}/out.parquet", detail=True)
    certificate = assert_released(tmp_path)
    here = run_in_memory(TABLE, RECOMMENDED).certificate
    ours, theirs = (
        one.model_dump(exclude={"created", "file", "row_order"}) for one in (certificate, here)
    )
    assert ours == theirs
    assert certificate.groups[0].related
    assert certificate.groups[0].anonymity == 8
    detail = tmp_path / "out.detail"
    assert detail.stat().st_mode & 0o077 == 0
    clusters = pl.read_parquet(f"{detail}/clusters/*.parquet")
    assert clusters.group_by("attribute").agg(pl.sum("records"))["records"].to_list() == [400] * 2
    assert verdict(frame, release, seed=1).records == RECORDS
    with pytest.raises(FileError, match=r"out\.parquet: it exists"):
        release.write(f"{tmp_path}/out.parquet")


def assert_released(folder: Path) -> Certificate:
    """Every record is there once, nothing is missing, and the certificate vouches for the files."""
    data = pl.read_parquet(f"{folder}/out.parquet/*.parquet")
    assert sorted(data["who"]) == sorted(TABLE["who"])
    assert data.null_count().row(0) == (0, 0, 0)
    certificate = Certificate.read(folder / "out.certificate.json")
    assert certificate.file is not None
    assert certificate.file.sha256 == sha256_of(folder / "out.parquet")
    assert certificate.row_order == "random"
    assert not list(folder.glob(".*"))
    return certificate


def test_errors_are_those_of_any_session(connected: SparkSession, tmp_path: Path) -> None:
    connected.conf.set(SCRATCH, str(tmp_path))
    narrow = {**ROLES, "y": Confidential(lower=5, upper=9)}
    try:
        with pytest.raises(DataError, match=r"attribute 'y': .*outside"):
            protect(connected.createDataFrame(TABLE.to_arrow()), PLAIN.replace(attributes=narrow))
        with pytest.raises(FileError, match=r"none\.parquet: no such file"):
            read_with_spark(connected, f"{tmp_path}/none.parquet")
    finally:
        connected.conf.unset(SCRATCH)
    assert not list(tmp_path.iterdir())


def test_a_directory_that_the_server_does_not_see_is_refused_before_any_work(
    connected: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the server were on another machine: what is written here is not there."""
    write = SharedFiles.write_text
    elsewhere = tmp_path / "elsewhere"

    def write_elsewhere(self: Any, path: str, text: str) -> None:  # noqa: ANN401
        write(self, path.replace(f"{tmp_path}/", f"{elsewhere}/"), text)

    monkeypatch.setattr(SharedFiles, "write_text", write_elsewhere)
    monkeypatch.setenv("MICROVEIL_SCRATCH", str(tmp_path))
    broken = connected.range(5).selectExpr("assert_true(id < 0) as x", "id as n")
    with pytest.raises(FileError, match="server of Spark Connect cannot read"):
        protect(broken, Plan.published(epsilon=1, attributes={"x": DOMAIN, "n": "kept"}))
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere"]


def test_a_cluster_needs_a_named_directory_that_this_machine_reaches(
    connected: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_files, "_is_one_machine", lambda _: False)
    with pytest.raises(PlanError, match=SCRATCH):
        Scratch(connected)
    monkeypatch.setenv("MICROVEIL_SCRATCH", "dbfs:/tmp")
    with pytest.raises(FileError, match="not reachable from this machine"):
        Scratch(connected)


def test_the_command_needs_an_address_and_no_java(address: str, tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "in.parquet")
    (tmp_path / "plan.toml").write_text(PLAIN.to_toml(), encoding="utf-8")
    without_java = (
        "import sys; sys.modules['microveil.engines.spark.hadoop'] = None\n"
        "from microveil.cli.commands import main; main()"
    )
    command = f"protect in.parquet --engine spark --master {address} --plan plan.toml --no-verdict"
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("PYSPARK", "SPARK"))}
    found = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", without_java, *command.split(), "-o", "out.parquet"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**environment, "JAVA_HOME": "/nowhere", "COLUMNS": "100"},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert "400 records, 2 attributes masked" in found.stdout
    assert_released(tmp_path)


def test_a_server_that_does_not_answer_is_not_waited_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "CONNECT_PATIENCE", 0.2)
    TABLE.write_parquet("in.parquet")
    where = "--engine spark --master 'sc://127.0.0.1:1/;token=secret'"
    code, _, err = run(f"protect in.parquet {where} --epsilon 1 -o out.parquet")
    assert code == 1
    assert "sc://127.0.0.1:1: no Spark Connect server answers" in err
    assert "secret" not in err


def test_households_of_a_client_are_masked_and_judged(connected: SparkSession) -> None:
    number = np.arange(RECORDS) // 2
    table = TABLE.with_columns(home=pl.Series(number), town=pl.Series(number % 2), rent=10 * number)
    roles = {
        "x": DOMAIN, "y": DOMAIN, "who": "identifier", "home": "identifier", "town": "kept",
        "rent": Confidential(lower=0, upper=2000, per_unit=True),
    }  # fmt: skip
    plan = Plan.published(
        epsilon=3, k=4, unit="home", within=["town"], anonymity=8, attributes=roles
    )
    frame = connected.createDataFrame(table.to_arrow()).repartition(3)
    release: Any = protect(frame, plan)
    ours, theirs = release.certificate, run_in_memory(table, plan).certificate
    assert ours.attributes == theirs.attributes
    assert ours.groups == theirs.groups
    (informed,) = [f for f in verdict(frame, release).figures if f.measure == "linkage.informed"]
    assert informed.facts["units"] == 200
    assert informed.value <= 1 / 8
