"""Forked processes, which have the memory of their parent but none of its threads."""

import multiprocessing
import os
from threading import Event, Thread

import polars as pl

from microveil.errors import MicroveilError

_PATIENCE = 10.0
"""Seconds that are more than enough for threads that exist."""

_forked = Event()
"""Set in a process that was forked after this module was imported."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked.set)


def check_threads() -> None:
    """Refuse to work where Polars would wait forever for threads that only the parent has."""
    if not _forked.is_set() and multiprocessing.parent_process() is None:
        return
    attempt = Thread(target=_use_threads, daemon=True)
    attempt.start()
    attempt.join(_PATIENCE)
    if attempt.is_alive():
        raise MicroveilError(
            "this process was forked after Polars had started threads, for which it would wait "
            'forever; start processes with multiprocessing.get_context("spawn"), or fork before '
            "the first table is used"
        )


def _use_threads() -> None:
    pl.DataFrame({"x": [2, 1], "y": [1, 2]}).lazy().select(pl.all().sort()).collect()
