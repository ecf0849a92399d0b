"""Warnings reach whoever called, and nobody in another thread."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import polars as pl
import pytest

from microveil import (
    Confidential,
    FileWarning,
    Plan,
    PrivacyWarning,
    UsefulnessWarning,
    audit,
    check,
    expected_error,
    protect,
)
from microveil.app.upload import Upload
from microveil.errors import noted, warn
from microveil.plan.sample import people

SOURCE = Path(__file__).parent.parent / "src" / "microveil"


def test_notes_of_one_thread_are_not_those_of_another() -> None:
    both = Barrier(2, timeout=10)

    def work(message: str) -> list[str]:
        with noted() as notes:
            both.wait()
            warn(message, FileWarning)
            both.wait()
        return notes

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(work, "ab")) == [["a"], ["b"]]


def test_uploads_of_many_sessions_keep_their_notes_apart() -> None:
    plain = Upload("plain.csv", b"age,name\n31,Ann\n35,Bo\n")
    strange = Upload("strange.csv", "age,name\n31,Zoë\n35,Bo\n".encode("windows-1252"))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda upload: len(upload.read()[1]), [plain, strange] * 50))
    assert found == [0, 1] * 50


def test_notes_that_nobody_collects_are_warnings() -> None:
    with noted() as outer, noted() as inner:
        warn("a", FileWarning)
    with pytest.warns(FileWarning, match="b") as caught:
        warn("b", FileWarning)
    assert (outer, inner) == ([], ["a"])
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("always")
def test_warnings_point_at_the_line_that_called_and_come_once_each(tmp_path: Path) -> None:
    table, path = people(60), tmp_path / "people.csv"
    table.write_csv(path)
    plan = Plan.propose(table)
    for call in (
        lambda: protect(table, plan, keep_order=True),
        lambda: protect(path, plan, keep_order=True),
        lambda: check(path, plan),
        lambda: expected_error(table, plan),
        lambda: audit(table, plan, runs=100, releases=20, seed=1),
    ):
        with pytest.warns(PrivacyWarning) as caught:
            call()
        messages = [str(warning.message) for warning in caught]
        assert len(messages) == len(set(messages)) >= 2
        assert {warning.filename for warning in caught} == {__file__}


def test_a_warning_about_a_file_points_at_the_line_that_read_it(tmp_path: Path) -> None:
    path = tmp_path / "strange.csv"
    path.write_bytes("age,name\n31,Zoë\n35,Bo\n".encode("windows-1252"))
    plan = Plan.published(
        epsilon=1.0, k=3, attributes={"age": "confidential", "name": "identifier"}
    )
    with pytest.warns(FileWarning, match="not UTF-8") as caught:
        assert check(path, plan)
    assert [warning.filename for warning in caught] == [__file__]


def test_what_is_so_of_many_attributes_is_said_once() -> None:
    names = [f"a{i}" for i in range(20)]
    table = pl.DataFrame({name: range(50) for name in names})
    grid = Confidential(resolution="data")
    plan = Plan.published(epsilon=10.0, attributes=dict.fromkeys(names, grid))
    with pytest.warns(PrivacyWarning) as caught:
        release = protect(table, plan)
    (said,) = [str(warning.message) for warning in caught]
    assert said.startswith("attributes 'a0', 'a1', ")
    assert "'a7' and 12 more: the noise grid was read from the data" in said
    (note,) = release.certificate.notes
    assert note.attributes == tuple(names)
    reading = release.certificate.reading
    assert reading["Notes"][0].startswith("All masked attributes: the noise grid")
    assert all("read from the data: noise grid" in line for line in reading["By attribute"])


def test_many_attributes_say_what_that_does_to_each_share() -> None:
    rng = np.random.default_rng(1)
    table = pl.DataFrame({f"a{i}": rng.integers(0, 1000, 50) for i in range(500)})
    plan = Plan.published(epsilon=1.0, attributes=dict.fromkeys(table.columns, "confidential"))
    with pytest.warns(UsefulnessWarning) as caught:
        check(table, plan)
    (said,) = [str(warning.message) for warning in caught]
    assert said.startswith("epsilon = 1 is shared by 500 attributes, 0.002 each: the expected ")
    off = float(re.search(r"value is about ([\d.,]+) times its", said).group(1).replace(",", ""))  # type: ignore[union-attr]
    one = plan.replace(epsilon=0.002, attributes={"a0": "confidential"})
    expected = expected_error(table.select("a0"), one).mean_sse ** 0.5
    assert off == pytest.approx(expected, rel=0.3)
    with pytest.warns(UsefulnessWarning):
        protect(table, plan)
    few = plan.replace(attributes=dict.fromkeys(table.columns[:50], "confidential"))
    assert check(table.select(table.columns[:50]), few) == ()
    assert check(table, plan.replace(epsilon=100.0)) == ()


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (r"warnings\.warn\(", {"errors.py"}),
        (r"catch_warnings\(", {"cli/commands.py"}),
    ],
)
def test_what_concerns_the_whole_process_is_called_nowhere_else(
    call: str, allowed: set[str]
) -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}
    assert {name for name, text in texts.items() if re.search(call, text)} == allowed
