"""Warnings reach whoever called, and nobody in another thread."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from microveil.app.upload import Upload
from microveil.errors import FileWarning, noted, warn

SOURCE = Path(__file__).parent.parent / "src" / "microveil"


def test_notes_of_one_thread_are_not_those_of_another() -> None:
    both = Barrier(2, timeout=10)

    def work(message: str) -> list[str]:
        with noted() as notes:
            both.wait()
            warn(message, FileWarning, stacklevel=1)
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
        warn("a", FileWarning, stacklevel=1)
    with pytest.warns(FileWarning, match="b") as caught:
        warn("b", FileWarning, stacklevel=1)
    assert (outer, inner) == ([], ["a"])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        (r"warnings\.warn\(", {"errors.py"}),
        (r"catch_warnings\(", {"cli/commands.py", "evaluation/utility.py"}),
    ],
)
def test_what_concerns_the_whole_process_is_called_nowhere_else(
    call: str, allowed: set[str]
) -> None:
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}
    assert {name for name, text in texts.items() if re.search(call, text)} == allowed
