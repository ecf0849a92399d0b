"""Run hostile cases for a while: `script/fuzz [SECONDS]`, or one again: `--case CASE`."""

import secrets
import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from fuzz.workers import FUZZERS, Case, Outcome, Worker, run_case, wait_for

_FAILURES = Path("fuzz-failures")
_BETWEEN = 1_000_003  # seeds of a run are its own number times this, and counted from there


def main() -> int:
    """Run what the command line asks for; 1 if a promise did not hold."""
    options = _options()
    console = Console(stderr=True)
    if options.case:
        fuzzer, _, seed = options.case.partition(":")
        return _again(Case(fuzzer, int(seed)), console)
    console.print(f"Seed {options.seed}: run the same cases with --seed {options.seed}")
    outcomes = _run(options, console)
    _show(outcomes, console)
    return any(outcome.broken for outcome in outcomes)


def _options() -> Namespace:
    parser = ArgumentParser(prog="script/fuzz", description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--workers", type=int, default=2, help="processes at once")
    parser.add_argument("--only", choices=FUZZERS, action="append", help="these fuzzers alone")
    parser.add_argument("--case", help="one case again, as it was printed: tables:123")
    return parser.parse_args()


def _again(case: Case, console: Console) -> int:
    folder = Path(tempfile.mkdtemp(prefix="microveil-fuzz-"))
    outcome = run_case(case, folder)
    console.print(f"{case}: {outcome.broken or 'held'}\n{outcome.what}", markup=False)
    console.print(f"Its files: {folder}", markup=False)
    return outcome.broken is not None


def _run(options: Namespace, console: Console) -> list[Outcome]:
    names = options.only or list(FUZZERS)
    spent = dict.fromkeys(names, 0.0)
    made = Counter[str]()
    outcomes: list[Outcome] = []
    workers = [Worker() for _ in range(options.workers)]
    folders: dict[Case, Path] = {}
    end = time.monotonic() + options.seconds
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console
    )
    with tempfile.TemporaryDirectory(prefix="microveil-fuzz-") as scratch, bar:
        task = bar.add_task("", total=options.seconds)
        while True:
            for worker in workers:
                outcome = worker.collect()
                if outcome:
                    outcomes.append(outcome)
                    spent[outcome.case.fuzzer] += outcome.seconds
                    _tidy(outcome, folders.pop(outcome.case), console)
                if worker.is_free and time.monotonic() < end:
                    name = min(names, key=lambda n: spent[n] + made[n] * 1e-6)
                    case = Case(name, options.seed * _BETWEEN + made[name])
                    made[name] += 1
                    spent[name] += 1e-3  # so that two workers do not take the same one
                    folders[case] = Path(tempfile.mkdtemp(dir=scratch))
                    worker.give(case, folders[case])
            bar.update(
                task,
                completed=options.seconds - max(0.0, end - time.monotonic()),
                description=f"{len(outcomes):,} cases, {_failed(outcomes)} broken",
            )
            if all(worker.is_free for worker in workers):
                break
            wait_for(workers)
        for worker in workers:
            worker.end()
    return outcomes


def _failed(outcomes: list[Outcome]) -> int:
    return sum(outcome.broken is not None for outcome in outcomes)


def _tidy(outcome: Outcome, folder: Path, console: Console) -> None:
    """Remove a case's files; keep those of one that failed, with what happened."""
    if outcome.broken:
        kept = _FAILURES / f"{outcome.case}".replace(":", "-")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(folder, kept)
        (kept / "what-happened.txt").write_text(outcome.what, encoding="utf-8", errors="replace")
        last = outcome.what.strip().splitlines()[-1][:300]
        console.print(f"{outcome.case}: {outcome.broken}: {last} (saved: {kept})", markup=False)
    shutil.rmtree(folder, ignore_errors=True)


def _show(outcomes: list[Outcome], console: Console) -> None:
    table = Table("fuzzer", "cases", "seconds", "what came of them", "broken")
    for name in FUZZERS:
        own = [outcome for outcome in outcomes if outcome.case.fuzzer == name]
        held = Counter(outcome.what for outcome in own if not outcome.broken)
        broken = Counter(outcome.broken for outcome in own if outcome.broken)
        table.add_row(
            name,
            f"{len(own):,}",
            f"{sum(outcome.seconds for outcome in own):.0f}",
            ", ".join(f"{what} {count:,}" for what, count in held.most_common()),
            ", ".join(f"{kind} {count:,}" for kind, count in broken.most_common()) or "0",
        )
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
