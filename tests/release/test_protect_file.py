"""A column at a time gives what the whole table gives; failures leave nothing behind."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from microveil import DataError, Detail, FileError, Plan, protect
from microveil.formats import Source, read_table, sha256_of
from microveil.plan.sample import people, people_plan
from microveil.release.certificate import Certificate
from microveil.release.protect_file import is_large, protect_file

Run = Callable[[str], tuple[int, str, str]]

PLANS = {
    "sample": people_plan(),
    "dropped": people_plan().replace(missing="drop"),
    "pooled": people_plan().replace(anonymity=7, groups=[["age", "education", "hours"]]),
}  # fmt: skip


@pytest.fixture(params=[".parquet", ".csv"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / f"in{request.param}"
    people().write_csv(path) if path.suffix == ".csv" else people().write_parquet(path)
    return path


@pytest.mark.parametrize("name", PLANS)
def test_the_same_release_as_from_memory(source: Path, name: str) -> None:
    plan, folder = PLANS[name], source.parent
    whole = protect(source, plan, seed=4)
    for keep_order in (True, False):
        expected = folder / f"whole{keep_order}.parquet"
        whole.write(expected, keep_order=keep_order, detail=True)
        parts = folder / f"parts{keep_order}{source.suffix}"
        written = protect_file(source, plan, parts, keep_order=keep_order, detail=True, seed=4)
        certificate = written.certified
        one, two = read_table(expected), read_table(parts)
        assert_frame_equal(two.cast(one.schema), one)
        assert certificate.levels == whole.certificate.levels
        assert certificate.attributes == whole.certificate.attributes
        stored = Certificate.read(written.certificate)
        assert stored == certificate
        assert stored.file
        assert stored.file.sha256 == sha256_of(parts)
        detail, other = (
            Detail.read(parts.with_suffix(".detail.zip")),
            Detail.read(expected.with_suffix(".detail.zip")),
        )
        assert_frame_equal(detail.clusters, other.clusters)
        np.testing.assert_array_equal(detail.positions, other.positions)
    assert not list(folder.glob(".*"))


def test_without_detail_none_is_written(source: Path) -> None:
    written = protect_file(source, people_plan(), source.parent / "out.parquet")
    assert written.detail is None
    assert {p.name for p in source.parent.iterdir()} == {
        source.name,
        "out.parquet",
        "out.certificate.json",
    }


def test_the_dialect_of_a_csv_file_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    rows = "\n".join(f"{i};{i % 7},5;ä" for i in range(40))
    path.write_bytes(f"a;b;c\n{rows}\n".encode("latin-1"))
    plan = Plan.published(
        epsilon=1, k=5, attributes={"a": "confidential", "b": "confidential", "c": "kept"}
    )
    with pytest.warns(match="grid|UTF-8"):
        protect_file(Source(path), plan, tmp_path / "out.csv", keep_order=True, seed=1)
    lines = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "a;b;c"
    assert all(line.endswith(";ä") and line.count(",") == 1 for line in lines[1:])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3\n", "line 3"),
        ("a,a\n1,2\n", "same name twice"),
        ("1,2\n3,4\n", "column names"),
    ],
)
def test_a_bad_csv_file_is_one_clear_message(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "in.csv").write_text(content)
    plan = Plan.published(epsilon=1, attributes={"a": "confidential"})
    with pytest.raises((FileError, DataError), match=message):
        protect_file(tmp_path / "in.csv", plan, tmp_path / "out.csv")
    assert {p.name for p in tmp_path.iterdir()} == {"in.csv"}


def test_other_kinds_of_files_are_refused(tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "in.parquet")
    with pytest.raises(FileError, match="must be Parquet or CSV"):
        protect_file(tmp_path / "in.parquet", people_plan(), tmp_path / "out.arrow")


def test_a_file_is_large_in_proportion_to_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().write_parquet(tmp_path / "in.parquet")  # 1,000 records × 12 columns × 8 bytes
    memory = "microveil.release.protect_file.available_memory"
    monkeypatch.setattr(memory, lambda: 8 * 96_000)
    assert not is_large(Source(tmp_path / "in.parquet"))
    monkeypatch.setattr(memory, lambda: 8 * 96_000 - 8)
    assert is_large(Source(tmp_path / "in.parquet"))
    assert not is_large(Source(tmp_path / "none.parquet"))
    assert not is_large(Source("postgresql://localhost/x", query="select 1"))


SCRIPT = """
import sys
from pathlib import Path
from microveil.release.protect_file import protect_file
from microveil.plan.sample import people_plan

def slow(what, done, total):
    print(what, flush=True)
    if done == 3:
        import time; time.sleep(60)

import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
protect_file(sys.argv[1], people_plan(), sys.argv[2], overwrite=True, progress=slow)
"""


@pytest.mark.parametrize(
    ("source", "how"),
    [(".parquet", signal.SIGINT), (".csv", signal.SIGTERM), (".parquet", signal.SIGKILL)],
    indirect=["source"],
)
def test_an_interrupted_run_leaves_the_old_release_and_nothing_else(
    source: Path, how: signal.Signals
) -> None:
    out = source.parent / "out.parquet"
    protect_file(source, people_plan(), out)
    before = {p.name: sha256_of(p) for p in source.parent.iterdir()}
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SCRIPT, source, out],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        while b"education" not in process.stdout.readline():
            time.sleep(0.01)
        process.send_signal(how)
    assert process.returncode != 0
    if how == signal.SIGKILL:  # nobody could clean up: the next run does
        assert len(list(source.parent.glob(".microveil-*"))) == 1
        protect_file(source, people_plan(), source.parent / "other.parquet")
    left = {p.name: sha256_of(p) for p in source.parent.iterdir() if "other" not in p.name}
    assert left == before


def test_a_run_does_not_remove_the_files_of_one_that_is_alive(source: Path) -> None:
    host = re.sub(r"\W", "_", socket.gethostname())
    alive = source.parent / f".microveil-{host}-{os.getpid()}-0123-x.parquet"
    alive.touch()
    protect_file(source, people_plan(), source.parent / "out.parquet")
    assert alive.exists()


LIMITED = """
import resource, sys
from microveil import MicroveilError
from microveil.release.protect_file import protect_file
from microveil.plan.sample import people_plan
protect_file(sys.argv[1], people_plan(), sys.argv[2])  # compile what is needed
for limit in (100, 4_096, 12_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        protect_file(sys.argv[1], people_plan(), sys.argv[2], overwrite=True)
    except MicroveilError as error:
        print(error)
"""


def test_a_full_disk_is_one_clear_message(source: Path) -> None:
    out = source.parent / "out.parquet"
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LIMITED, source, out], check=True, capture_output=True, text=True
    )
    messages = done.stdout.splitlines()
    assert len(messages) == 3
    assert all(message.startswith(f"{out}: cannot be written: ") for message in messages)
    assert not list(source.parent.glob(".*"))
    assert Certificate.read(source.parent / "out.certificate.json").file.sha256 == sha256_of(out)  # type: ignore[union-attr]


def test_the_command_takes_large_files_a_column_at_a_time(
    source: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("microveil.release.protect_file.is_large", lambda _: True)
    (source.parent / "plan.toml").write_text(people_plan().to_toml())
    command = f"protect {source} --no-verdict"
    code, out, err = run(f"{command} --plan {source.parent}/plan.toml -o safe.csv --detail")
    assert (code, err) == (0, "")
    assert "1,000 records, 9 attributes masked" in out
    assert read_table(Path("safe.csv")).height == 1_000
    flags = "--drop person --drop education --drop occupation --keep region --missing keep"
    code, _, err = run(f"{command} --epsilon 1 -o flags.parquet {flags}")
    assert code == 0, err
    assert read_table(Path("flags.parquet")).width == 9
