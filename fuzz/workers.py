"""Processes that run cases, so that a case that ends its process is found as well."""

import time
import traceback
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random

from fuzz import csv_files, details, formats, kills, ledgers, pages, plans, risks, tables
from fuzz.checks import Broken

FUZZERS = {
    "tables": tables.run,
    "csv": csv_files.run,
    "formats": formats.run,
    "plans": plans.run,
    "risk": risks.run,
    "ledgers": ledgers.run,
    "details": details.run,
    "pages": pages.run,
    "kills": kills.run,
}
_LONGEST_CASE = 120.0
_spawn = get_context("spawn")  # a forked child would share threads that are not there


@dataclass(frozen=True)
class Case:
    """A fuzzer and the seed it is given; the two make the case again."""

    fuzzer: str
    seed: int

    def __str__(self) -> str:
        return f"{self.fuzzer}:{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What came of a case; `broken` is the kind of promise that did not hold, if one did not."""

    case: Case
    what: str
    seconds: float
    broken: str | None = None


def run_case(case: Case, folder: Path) -> Outcome:
    """Run a case in this process."""
    start = time.monotonic()
    broken = None
    try:
        what = FUZZERS[case.fuzzer](Random(case.seed), folder)
    except Broken as error:
        broken, what = error.kind, _account(error)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        broken, what = "crash", _account(error)
    return Outcome(case, what, time.monotonic() - start, broken)


def _account(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def _serve(connection: Connection) -> None:
    while True:
        case, folder = connection.recv()
        connection.send(run_case(case, folder))


class Worker:
    """A process that runs one case after the other, replaced when it dies or hangs."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self.connection, theirs = _spawn.Pipe()
        self._process = _spawn.Process(target=_serve, args=(theirs,), daemon=False)
        self._process.start()
        theirs.close()
        self._case: Case | None = None
        self._since = time.monotonic()

    @property
    def is_free(self) -> bool:
        """Whether it waits for a case."""
        return self._case is None

    def give(self, case: Case, folder: Path) -> None:
        """Let it run a case."""
        self._case, self._since = case, time.monotonic()
        self.connection.send((case, folder))

    def collect(self) -> Outcome | None:
        """Return what came of its case; None if it is still at work."""
        if self._case is None:
            return None
        seconds = time.monotonic() - self._since
        if not self.connection.poll():
            return self._replace("hang", seconds) if seconds > _LONGEST_CASE else None
        try:
            outcome: Outcome = self.connection.recv()
        except (EOFError, ConnectionError):
            return self._replace("crash", seconds)
        self._case = None
        return outcome

    def _replace(self, kind: str, seconds: float) -> Outcome:
        assert self._case is not None  # noqa: S101
        case = self._case
        self.end()
        status = self._process.exitcode
        self._begin()
        return Outcome(case, f"the process ended with status {status}", seconds, kind)

    def end(self) -> None:
        """Stop the process."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def wait_for(workers: list[Worker]) -> None:
    """Wait until one of them has an answer, a second at most."""
    wait([worker.connection for worker in workers if not worker.is_free], timeout=1)
