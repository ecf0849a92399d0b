"""Experiments in parallel, each kept in a file of its own, so that an interrupted run can go on."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import polars as pl

from microveil.formats import moved_into_place
from microveil.lab.paper.datasets import CENSUS, PaperTable
from microveil.lab.paper.experiments import Experiment, perform
from microveil.machine import available_cores
from microveil.types import Progress

Jobs = Mapping[Path, Callable[[], pl.DataFrame]]


def run_experiments(
    todo: Sequence[Experiment],
    tables: Mapping[str, PaperTable],
    directory: Path,
    progress: Progress | None = None,
) -> pl.DataFrame:
    """Perform the experiments that `directory` does not hold yet, and return the results of all.

    Results are taken over only if today's code gives the same figures on a made-up table.
    """
    parts = directory / _edition()
    jobs = {parts / f"{t.name}.parquet": partial(perform, t, tables[t.dataset]) for t in todo}
    return run_parts(jobs, progress, what="experiments")


def run_parts(jobs: Jobs, progress: Progress | None, *, what: str) -> pl.DataFrame:
    """Do in parallel the jobs whose files do not exist yet, and return what is in all files.

    Parameters
    ----------
    jobs
        By the file that keeps its results, what makes them: something that can be pickled.
    progress, what
        Called after every job, with what is being done.
    """
    for directory in {path.parent for path in jobs}:
        directory.mkdir(parents=True, exist_ok=True)
    missing = {path: job for path, job in jobs.items() if not path.is_file()}
    done = len(jobs) - len(missing)
    if progress:
        progress(what, done, len(jobs))
    if missing:
        _do_all(missing, lambda number: progress and progress(what, done + number, len(jobs)))
    return pl.concat(pl.read_parquet(path) for path in jobs)


def _edition() -> str:
    """Hash all figures of a made-up table: every change of results changes it."""
    values = np.arange(1.0, 31.0)
    attributes = pl.DataFrame({"rising": values, "falling": values[::-1] ** 2})
    table = PaperTable(CENSUS, attributes, values % 3 == 0)
    figures = pl.concat(perform(Experiment("made up", k, 1), table) for k in (3, None))
    return sha256(figures.write_csv().encode()).hexdigest()[:16]


def _do_all(jobs: Jobs, finished: Callable[[int], object]) -> None:
    workers = min(available_cores(), len(jobs))
    # Polars has threads, and a forked process would inherit their locks.
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, spawning, initializer=_follow_parent) as pool:
        futures = [pool.submit(_keep, job, path) for path, job in jobs.items()]
        try:
            for number, future in enumerate(as_completed(futures), start=1):
                future.result()
                finished(number)
        finally:
            pool.shutdown(cancel_futures=True)


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, so that jobs under way are kept, and never outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _keep(job: Callable[[], pl.DataFrame], path: Path) -> None:
    with moved_into_place([path]) as [temporary]:
        job().write_parquet(temporary)
