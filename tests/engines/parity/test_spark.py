"""What only Spark has to promise: noise drawn once, no order told, little on the driver."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from microveil import (
    Certificate,
    Confidential,
    DataError,
    Derived,
    FileError,
    Plan,
    PlanError,
    protect,
)
from microveil.core.kernels.keys import hashed
from microveil.engines.spark import scratch_files as spark_files
from microveil.engines.spark import spark_table as line
from microveil.engines.spark.arrow import Batches
from microveil.engines.spark.hadoop import HadoopFiles
from microveil.engines.spark.scratch_files import SCRATCH, Scratch, file_system_of, locked_place
from microveil.engines.spark.tasks import map_batches
from microveil.engines.spark.workers import unpacked_clusters
from microveil.formats import sha256_of
from microveil.release.spark_store import SparkStore
from tests.conftest import Run

DOMAIN = Confidential(lower=0, upper=10_000)
PLAN = Plan.published(epsilon=1, k=4, method="iDP-LS", attributes={"x": DOMAIN, "n": "kept"})
RECORDS = 302
TABLE = pl.DataFrame({"x": np.arange(RECORDS) * 30.0, "n": np.arange(RECORDS)})


def frame_of(spark: SparkSession, table: pl.DataFrame = TABLE, partitions: int = 3) -> DataFrame:
    return spark.createDataFrame(table.to_arrow()).repartition(partitions)


def read(frame: DataFrame) -> pl.DataFrame:
    return pl.DataFrame(frame.toArrow())


def masked_of_clusters(data: pl.DataFrame) -> list[list[float]]:
    """Return the masked values seen in each cluster: ranks are known, since values are unique."""
    cluster = (pl.col("n") // 4).clip(upper_bound=RECORDS // 4 - 1)
    return data.group_by(cluster).agg(pl.col("x").unique()).sort("n")["x"].to_list()


@pytest.mark.parametrize(
    ("stage", "kill"), [("c0/ranked", True), ("c0/masked", False), ("c0/masked", True)]
)
def test_noise_is_drawn_once_although_tasks_fail(
    stage: str,
    kill: bool,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Every first attempt at a task fails, or its worker dies, after it has drawn its noise."""
    monkeypatch.setattr(line, "VALUES_PER_TASK", 180)
    write, diary = Scratch.write, str(tmp_path)

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        from pathlib import Path

        from pyspark import TaskContext

        task = TaskContext.get()
        seen: list[float] = []
        for batch in batches:
            packed = unpacked_clusters([batch]) if "batch" in batch.schema.names else ()
            seen += [v for one in packed for v in one["masked"].to_pylist()] or [0]
            yield batch
        if task and task.attemptNumber() == 0:
            Path(diary, f"{task.partitionId()}").write_text(repr(seen))
            if kill:
                os._exit(1)
            raise RuntimeError("on purpose")

    def sabotaged(self: Scratch, frame: DataFrame, name: str) -> DataFrame:
        if name == stage:
            frame = frame.mapInArrow(fail_once, frame.schema)
        return write(self, frame, name)

    monkeypatch.setattr(Scratch, "write", sabotaged)
    data = read(protect(frame_of(spark), PLAN).data)
    wasted = [value for file in tmp_path.iterdir() for value in json.loads(file.read_text())]
    assert wasted
    assert data["n"].sort().to_list() == list(range(RECORDS))
    masked = masked_of_clusters(data)
    assert [len(values) for values in masked] == [1] * (RECORDS // 4)
    if stage == "c0/masked":
        assert len(wasted) >= RECORDS // 4  # noise was drawn, and thrown away
        inside = [v for v in wasted if 0 < v < 10_000]
        assert inside
        assert not set(inside) & {values[0] for values in masked}


def test_every_action_gives_the_same_values(spark: SparkSession) -> None:
    release = protect(frame_of(spark), PLAN)
    first, again = (read(release.data).sort("n") for _ in range(2))
    assert first.equals(again)
    assert read(release.data.where("n < 50").orderBy("n"))["x"].equals(first["x"][:50])


def test_the_driver_sees_counts_and_totals_only(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kind = type(frame_of(spark))
    collect, seen = kind.collect, [0]

    def counted(self: DataFrame) -> list[Any]:
        rows = collect(self)
        seen.append(len(rows))
        return rows

    monkeypatch.setattr(kind, "collect", counted)
    for name in ("toPandas", "toArrow", "toLocalIterator", "head", "take"):
        monkeypatch.delattr(kind, name)
    for guarantee in ("fixed-clusters", "re-clustered"):
        protect(frame_of(spark), PLAN.replace(guarantee=guarantee))
    assert max(seen) <= 2  # one length for each of two ranges


def test_ties_are_spark_s_hashes_of_keys(spark: SparkSession) -> None:
    found = spark.range(5).select(F.xxhash64(F.lit(-7).cast("long"), "id")).collect()
    keys, secret = np.arange(5, dtype=np.uint64), np.int64(-7).view(np.uint64)
    assert hashed(keys, secret).view(np.int64).tolist() == [row[0] for row in found]


def test_a_wrong_seed_is_refused_before_any_work(spark: SparkSession) -> None:
    broken = frame_of(spark).selectExpr("assert_true(x < 0) as x", "n")  # fails once it is read
    with pytest.raises(PlanError, match="seed must be 0 or more"):
        protect(broken, PLAN, seed=-1)


def test_an_expression_over_other_records_is_refused(spark: SparkSession) -> None:
    plan = PLAN.replace(attributes={**PLAN.attributes, "d": Derived(expression="x - MEDIAN(x)")})
    table = TABLE.with_columns(d=pl.lit(0.0))
    with pytest.raises(DataError, match=r"attribute 'd': .* depends on other records"):
        protect(frame_of(spark, table), plan)


def test_names_that_are_the_same_are_refused(spark: SparkSession) -> None:
    with pytest.raises(DataError, match="the same name twice"):
        protect(frame_of(spark).toDF("x", "x"), PLAN)


def test_a_release_is_written_with_its_certificate(spark: SparkSession, tmp_path: Path) -> None:
    frame = frame_of(spark)
    release = protect(frame, PLAN)
    written: Any = release.write(f"{tmp_path}/out.parquet", detail=True)
    data = pl.read_parquet(f"{tmp_path}/out.parquet/*.parquet")
    assert data.sort("n").equals(read(release.data).sort("n"))
    certificate = Certificate.read(written.certificate)
    assert certificate.file is not None
    assert certificate.file.sha256 == sha256_of(tmp_path / "out.parquet") == by_shell(tmp_path)
    assert certificate.row_order == "random"
    detail = tmp_path / "out.detail"
    assert detail.stat().st_mode & 0o077 == 0
    assert pl.read_parquet(f"{detail}/clusters/*.parquet").height == RECORDS // 4
    assert json.loads((detail / "losses.json").read_text())[0]["attribute"] == "x"
    assert Plan.read(detail / "plan.toml") == PLAN
    with pytest.raises(FileError, match=r"out\.parquet: it exists"):
        release.write(f"{tmp_path}/out.parquet")
    release.write(f"{tmp_path}/out.parquet", keep_order=True, overwrite=True)
    certificate = Certificate.read(written.certificate)
    assert any(one.kind == "row-order" for one in certificate.not_protected)
    parts = sorted((tmp_path / "out.parquet").glob("*.parquet"))
    kept = pl.concat([pl.read_parquet(part) for part in parts])
    assert kept["n"].equals(read(frame)["n"])
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "out.certificate.json",
        "out.detail",
        "out.parquet",
    ]


@pytest.mark.parametrize("stopped_at", ["out.parquet", "out.detail", "out.certificate.json"])
def test_a_release_that_cannot_be_moved_leaves_the_old_one(
    stopped_at: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SparkStore(spark)
    places = store.places(f"{tmp_path}/out.parquet", detail=True).all

    def write(text: str) -> None:
        with store.moved_into_place(places) as temporary:
            for place in temporary:
                store.write_text(text, f"{place}/part" if "certificate" not in place else place)

    write("old")
    move = HadoopFiles.move

    def stop(files: HadoopFiles, source: str, target: str) -> None:
        if target.endswith(f"/{stopped_at}") and not source.endswith(".old"):
            raise FileError("stopped")
        move(files, source, target)

    monkeypatch.setattr(HadoopFiles, "move", stop)
    with pytest.raises(FileError, match="stopped"):
        write("new")
    names = ("out.certificate.json", "out.detail/part", "out.parquet/part")
    assert [(tmp_path / name).read_text() for name in names] == ["old"] * 3
    assert len(list(tmp_path.iterdir())) == 3


def test_one_writer_at_a_time_where_files_are_not_on_this_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_files, "_PATIENCE", 0.0)
    files, lock = file_system_of(spark, str(tmp_path)), f"{tmp_path}/.lock.out.parquet"
    with locked_place(files, lock):
        with pytest.raises(FileError, match="another process"), locked_place(files, lock):
            pass
        assert Path(lock).exists()
    with locked_place(files, lock):
        pass
    assert not list(tmp_path.iterdir())


def by_shell(directory: Path) -> str:
    command = "cd out.parquet && sha256sum part-* | sha256sum"
    run = subprocess.run(["bash", "-c", command], cwd=directory, capture_output=True, check=True)  # noqa: S603, S607
    return run.stdout.decode().split()[0]


@pytest.mark.usefixtures("spark")
def test_the_command_reads_and_writes_parquet(run: Run) -> None:
    TABLE.write_parquet("in.parquet")
    Path("plan.toml").write_text(PLAN.to_toml(), encoding="utf-8")
    how = "--engine spark --master local[2] --epsilon 1"
    address = Path("in.parquet").absolute().as_uri()  # as hdfs:///… would be
    code, out, err = run(f"protect {address} {how} --plan plan.toml -o out.parquet")
    assert (code, err.count("\n")) == (4, 1)
    assert "302 records, 1 attributes masked" in out
    assert "Risk High: does not pass." in " ".join(out.split())
    assert sorted(p.name for p in Path().glob("out*")) == ["out.certificate.json", "out.parquet"]
    code, out, _ = run("certificate out.certificate.json")
    assert "out.parquet: matches the certificate" in out
    part = next(Path("out.parquet").glob("*.parquet"))
    part.write_bytes(part.read_bytes() + b"x")
    assert run("certificate out.certificate.json")[0] == 1
    for arguments, message in (
        (f"none.parquet {how} -o new.parquet", "none.parquet: no such file"),
        (f"plan.toml {how} -o new.parquet", "plan.toml: not Parquet that Spark can read"),
        (f"in.parquet {how} -o in.parquet --overwrite", "would replace the input"),
        (f"in.parquet {how} -o out.parquet", "out.parquet: it exists"),
    ):
        code, _, err = run(f"protect {arguments}")
        assert code == 1
        assert message in err


def test_without_java_or_a_shared_directory_the_error_says_what_to_do(
    run: Run,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    code, _, err = run("protect in.parquet --engine spark --epsilon 1 -o out.parquet")
    assert code == 1
    assert "install it" in err
    assert "openjdk" in err
    settings = {"spark.master": "yarn"}
    monkeypatch.setattr(spark_files, "_setting", lambda _, name: settings.get(name))
    with pytest.raises(PlanError, match=SCRATCH):
        Scratch(spark)


def test_what_a_killed_run_left_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    session = spark.newSession()
    session.conf.set(SCRATCH, str(tmp_path))
    scratch = Path(Scratch(session).path).name
    killed = tmp_path / scratch.replace(f"-{os.getpid()}-", f"-{ended.pid}-") / "records"
    killed.mkdir(parents=True)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob(f"*{scratch}")} == {0o700}
    protect(frame_of(session), PLAN)
    names = {path.name for path in tmp_path.iterdir()}
    assert killed.parent.name not in names
    assert scratch in names  # of a process that runs


def test_nothing_is_left_behind_after_an_error(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set(SCRATCH, str(tmp_path))
    table = frame_of(session).selectExpr("x", "n", "cast(null as double) as d")
    plan = PLAN.replace(attributes={**PLAN.attributes, "d": Derived(expression="x / (x - x)")})
    with pytest.raises(DataError, match="no finite result"):
        protect(table, plan)
    assert not list(tmp_path.iterdir())


def test_workers_do_not_look_through_our_modules_after_every_task(spark: SparkSession) -> None:
    """Spark's workers collect garbage after each task, which took longer than many tasks."""

    def left_to_look_through(batches: Batches) -> Iterator[pa.RecordBatch]:
        import gc

        import microveil.core.kernels.keys  # noqa: F401 - what most tasks need

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"objects": [len(gc.get_objects())]})

    found = map_batches(spark.range(1), left_to_look_through, pa.schema([("objects", pa.int64())]))
    assert min(found.collect()[0].objects for _ in range(6)) < 50_000
