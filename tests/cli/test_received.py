"""A certificate that somebody sent: it names no other file, hangs on nothing and hides nothing."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from microveil import Certificate, Detail, FileError, Plan, protect
from microveil.errors import visible

Run = Callable[[str], tuple[int, str, str]]
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\x00"


@pytest.fixture
def received(tmp_path: Path) -> Callable[..., str]:
    """Write a certificate with something changed; return the command that prints it."""
    people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    plan = Plan.published(
        epsilon=1.0, k=3, attributes={"age": {"role": "confidential", "lower": 0}}
    )
    protect(people, plan).write(tmp_path / "out.csv")
    content = json.loads((tmp_path / "out.certificate.json").read_text())

    def write(**changes: Any) -> str:  # noqa: ANN401 - whatever JSON holds
        (tmp_path / "out.certificate.json").write_text(json.dumps(content | changes))
        return "certificate out.certificate.json"

    return write


def file(name: str) -> dict[str, str]:
    return {"name": name, "sha256": "0" * 64}


@pytest.mark.parametrize(
    "name", ["/dev/zero", "../out.csv", "a/b", "..", ".", "", "a\\b", "c:d", "x\0y", "/etc/passwd"]
)
def test_a_file_that_does_not_lie_beside_it(name: str, run: Run, received: Any) -> None:  # noqa: ANN401
    code, out, err = run(received(file=file(name)))
    assert (code, out) == (1, "")
    assert err == (
        "error: out.certificate.json: expected the plain name of a file next to the certificate, "
        "found a path; ask the sender for another certificate\n"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files on Windows")
@pytest.mark.parametrize("kind", ["fifo", "link to a fifo", "link to a device", "in a directory"])
def test_what_is_beside_it_is_no_file(kind: str, run: Run, received: Any, tmp_path: Path) -> None:  # noqa: ANN401
    beside = tmp_path / "beside.csv"
    if kind == "in a directory":
        beside.mkdir()
        os.mkfifo(beside / "part-0")
    elif kind == "link to a device":
        beside.symlink_to("/dev/zero")
    else:
        os.mkfifo(tmp_path / "pipe")
        beside.symlink_to(tmp_path / "pipe") if "link" in kind else os.mkfifo(beside)
    code, _, err = run(received(file=file("beside.csv")))
    assert code == 1
    assert "expected a file, found something else" in err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files on Windows")
def test_a_certificate_or_detail_that_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileError, match="expected a file, found something else"):
            Certificate.read(path)
        with pytest.raises(FileError, match="not a readable private detail"):
            Detail.read(path)


def test_a_certificate_that_is_too_large(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as sparse:
        sparse.truncate(10**9)
    with pytest.raises(FileError, match=r"large.json: expected at most 20 MB, found 1,000 MB"):
        Certificate.read(tmp_path / "large.json")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_certificate_of_which_everything_is_wrong(received: Any, tmp_path: Path) -> None:  # noqa: ANN401
    """An error for every wrong value of 6 MB took 12 GB."""
    received(attributes=[{}] * 1_500_000)
    reading = (
        "import resource, sys\n"
        "import microveil.release.certificate as home\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**30,) * 2)\n"
        "home.Certificate.read(sys.argv[1])"
    )
    command = [sys.executable, "-c", reading, str(tmp_path / "out.certificate.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert "FileError" in done.stderr
    assert "not a certificate that" in done.stderr


def test_control_characters_are_shown(run: Run, received: Any, tmp_path: Path) -> None:  # noqa: ANN401
    strings = {"software": ESCAPES, "created": ESCAPES, "kept": [ESCAPES]}
    attributes = json.loads((tmp_path / "out.certificate.json").read_text())["attributes"]
    attributes[0] |= {"name": ESCAPES, "lower": ESCAPES}
    lists = {
        "notes": [{"kind": "exact-weights", "attributes": [ESCAPES]}],
        "not_protected": [{"kind": "kept-values", "attributes": [ESCAPES]}],
        "attributes": attributes,
        "reading": {"Scope": ["never read back"]},
    }
    command = received(**strings, **lists, file=file(f"{ESCAPES[:-1]}.csv"))
    (tmp_path / f"{ESCAPES[:-1]}.csv").touch()
    for line in (command, f"{command} --html page.html"):
        code, out, err = run(line)
        assert code == 1
        assert r"\u001b[2J" in err
        assert not hidden(out + err)
    (tmp_path / f"{ESCAPES[:-1]}.csv").unlink()
    code, out, _ = run(f"{command} --html page.html")
    assert code == 0
    assert out.count(r"\u001b[2J") == 8
    assert "never read back" not in out
    assert not hidden(out)
    assert not hidden((tmp_path / "page.html").read_text())


def test_evaluate_shows_control_characters_of_names(run: Run) -> None:
    name = "\x1b[2Jage\x9b\u202e"
    pl.DataFrame({name: [31, 35, 38, 52, 57, 58]}).write_parquet("in.parquet")
    for json_ in ("", " --json"):
        code, out, _ = run(f"evaluate in.parquet in.parquet --aligned{json_}")
        assert code == 0
        assert r"\u001b[2Jage\u009b\u202e" in out
        assert not hidden(out)
    assert name in {figure["attribute"] for figure in json.loads(out)["figures"]}


def hidden(text: str) -> set[str]:
    return {c for c in text if not c.isprintable()} - {"\n", "\t", "\xa0"}


def test_what_is_visible_stays() -> None:
    text = "Ärzte\t€ 1\n日本 \U0001f600"
    assert visible(text) == text
    assert visible("\x1b\x7f\u2028") == r"\u001b\u007f\u2028"
