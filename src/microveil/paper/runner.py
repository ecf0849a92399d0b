"""Tasks in parallel, each kept in a file of its own, so that an interrupted run can go on."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl

from microveil.formats import moved_into_place
from microveil.paper.datasets import CENSUS, Table
from microveil.paper.experiments import Task, perform
from microveil.release.protect import Progress


def run(
    todo: Sequence[Task],
    tables: Mapping[str, Table],
    directory: Path,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Perform the tasks that `directory` does not hold yet, and return the results of all.

    Results are taken over only if today's code gives the same figures on a made-up table.
    """
    parts = directory / _edition()
    parts.mkdir(parents=True, exist_ok=True)
    paths = {task: parts / f"{task.name}.parquet" for task in todo}
    missing = [task for task in todo if not paths[task].is_file()]
    done = len(todo) - len(missing)
    if progress:
        progress("experiments", done, len(todo))
    if missing:
        _perform_all(missing, tables, paths, done, progress)
    return pl.concat(pl.read_parquet(paths[task]) for task in todo)


def _edition() -> str:
    """Digest all figures of a made-up table: whatever changes results changes it."""
    values = np.arange(1.0, 31.0)
    attributes = pl.DataFrame({"rising": values, "falling": values[::-1] ** 2})
    table = Table(CENSUS, attributes, values % 3 == 0)
    figures = pl.concat(perform(Task("made up", k, 1), table) for k in (3, None))
    return sha256(figures.write_csv().encode()).hexdigest()[:16]


def _perform_all(
    missing: Sequence[Task],
    tables: Mapping[str, Table],
    paths: Mapping[Task, Path],
    done: int,
    progress: Progress | None,
) -> None:
    workers = min(os.cpu_count() or 1, len(missing))
    # Polars has threads, and a forked process would inherit their locks.
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawning, initializer=_follow_parent) as pool:
        futures = [pool.submit(_keep, task, tables[task.dataset], paths[task]) for task in missing]
        try:
            for finished, future in enumerate(as_completed(futures), start=1):
                future.result()
                if progress:
                    progress("experiments", done + finished, len(paths))
        finally:
            pool.shutdown(cancel_futures=True)


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, so that tasks under way are kept, and never outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _keep(task: Task, table: Table, path: Path) -> None:
    with moved_into_place([path]) as [temporary]:
        perform(task, table).write_parquet(temporary)
