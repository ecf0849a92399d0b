"""Libraries that import others on first use, which two threads can do at once."""

import subprocess
import sys

import pytest

SCRIPT = """
import microveil.release.protect  # before NumPy, as the command line does
import os, sys, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import polars as pl

def use_at_once():
    sys.setswitchinterval(1e-6)
    together = threading.Barrier(8)
    def use(_):
        together.wait()
        pl.Series("x", np.arange(3))
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))

for _ in range(200):
    process = os.fork()
    if not process:
        try:
            use_at_once()
        except BaseException as error:
            print(type(error).__name__, flush=True)
        os._exit(0)
    os.waitpid(process, 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="each cold process is a fork")
def test_threads_find_polars_ready() -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)  # noqa: S603
    assert done.stdout == ""
