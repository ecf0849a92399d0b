"""Runs of the command that are killed, hung up on, starved of disk, or not alone."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import polars as pl

from fuzz.checks import Broken
from microveil.formats import sha256_of

_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_ENDINGS = ("csv", "csv", "parquet", "arrow", "xlsx", "dta")
_PLAN = 'epsilon = 1\nk = 3\nanonymity = 4\n[attributes]\nage = "confidential"\nid = "kept"\n'


def run(random: Random, folder: Path) -> str:
    """Write over a release, be stopped, and look at what lies there."""
    records = random.choice([60, 20_000])
    ages = np.random.default_rng(random.getrandbits(30)).integers(0, 100, records)
    pl.DataFrame({"age": ages, "id": range(records)}).write_csv(folder / "people.csv")
    (folder / "plan.toml").write_text(_PLAN, encoding="utf-8")
    output = folder / f"out.{random.choice(_ENDINGS)}"
    _finish(_start(folder, output))
    if random.random() < 0.3:
        return _race(folder, output)
    return _stop(random, folder, output)


def _race(folder: Path, output: Path) -> str:
    """Let three runs write to the same place at once."""
    for process in [_start(folder, output) for _ in range(3)]:
        _finish(process)
    if not _is_whole(output):
        raise Broken("mixed release", "of three runs at once")
    _check_directory(folder, output)
    return "raced"


def _stop(random: Random, folder: Path, output: Path) -> str:
    """Stop a run at some moment, most often while it writes."""
    starved = random.random() < 0.2
    before = _contents(output)
    process = _start(folder, output, most_bytes=random.randint(0, 3000) if starved else None)
    if not starved:
        _wait_for_scratch(process, folder, random)
        process.send_signal(random.choice(_SIGNALS))
    status = _finish(process)
    after = _contents(output)
    if starved and status == 3:
        raise Broken("crash", "a full disk is not said to be one")
    if not _is_whole(output):
        _check_refused(output)
    elif status != 0 and starved and after != before:
        raise Broken("mixed release", "the old release is not what it was")
    _finish(_start(folder, output))
    if not _is_whole(output):
        raise Broken("mixed release", "after the next run")
    _check_directory(folder, output)
    return "starved" if starved else "killed" if status < 0 else "ended by itself"


def _start(folder: Path, output: Path, most_bytes: int | None = None) -> "subprocess.Popen[str]":
    def limit() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if most_bytes is not None:  # a file may not grow beyond it, as on a full disk
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    command = [sys.executable, "-m", "microveil", "protect", "people.csv", "--plan", "plan.toml",
               "-o", output.name, "--overwrite", "--no-verdict"]  # fmt: skip
    return subprocess.Popen(  # noqa: S603
        command, cwd=folder, text=True, preexec_fn=limit,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ | {"NO_COLOR": "1"},
    )  # fmt: skip


def _finish(process: "subprocess.Popen[str]") -> int:
    _, errors = process.communicate(timeout=100)  # on a machine under load
    shown = errors.partition("Exception ignored in")[0]  # Ctrl+C while Python ends
    if "defect" in shown or "Traceback" in shown:
        raise Broken("crash", f"the command says {errors[-300:]!r}")
    return process.returncode


def _wait_for_scratch(process: "subprocess.Popen[str]", folder: Path, random: Random) -> None:
    """Wait until the run has begun to write, most of the time, and a moment longer."""
    if random.random() < 0.2:
        time.sleep(random.uniform(0, 2))
        return
    while process.poll() is None and not list(folder.glob(".microveil-*")):
        time.sleep(0.0005)
    time.sleep(random.choice([0, random.uniform(0, 0.003), random.uniform(0, 0.05)]))


def _contents(output: Path) -> tuple[bytes, bytes]:
    return output.read_bytes(), _certificate(output).read_bytes()


def _certificate(output: Path) -> Path:
    return output.with_suffix(".certificate.json")


def _is_whole(output: Path) -> bool:
    """Whether the certificate is that of the table beside it."""
    certified = json.loads(_certificate(output).read_text(encoding="utf-8"))
    return bool(certified["file"]["sha256"] == sha256_of(output))


def _check_refused(output: Path) -> None:
    """Check that what a kill mixed is not taken for a release."""
    command = [sys.executable, "-m", "microveil", "certificate", str(_certificate(output))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        raise Broken("mixed release", "the command takes it for one")


def _check_directory(folder: Path, output: Path) -> None:
    """Check that nothing of a stopped run is left once another has ended."""
    known = {"people.csv", "plan.toml", output.name, _certificate(output).name}
    left = {path.name for path in folder.iterdir()} - known
    if {name for name in left if not name.startswith(".lock")}:
        raise Broken("left behind", f"{len(left)} files of a stopped run")
