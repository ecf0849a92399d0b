"""Forked processes, which have none of their parent's threads."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
import polars as pl
from microveil import MicroveilError, Plan, protect
from microveil.formats import forked

forked._PATIENCE = 0.5
table = pl.DataFrame({"x": range(40)})
plan = Plan.published(epsilon=1, attributes={"x": "confidential"})

def in_a_child():
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    try:
        protect(table, plan)
    except MicroveilError as error:
        print(error, flush=True)
        os._exit(1)
    os._exit(0)

print(in_a_child(), flush=True)
protect(table, plan)
print(in_a_child(), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks after threads are Linux's custom")
def test_a_forked_process_works_or_says_why_not() -> None:
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    first, message, second = done.stdout.splitlines()
    assert (first, second) == ("0", "1")
    assert message.startswith("this process was forked after Polars had started threads")
