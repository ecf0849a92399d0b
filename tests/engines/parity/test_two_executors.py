"""A cluster of two executors: speculative attempts, and an executor that dies while it pools."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from microveil import MicroveilError
from microveil.engines.spark.connection import check_installed
from tests.engines.parity import two_executors
from tests.engines.parity.two_executors import RECORDS

pytestmark = pytest.mark.xdist_group("two executors")  # which are started once

Findings = dict[str, Any]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Findings]:
    """What was seen on such a cluster, which is started once."""
    try:
        check_installed()
    except MicroveilError as error:
        pytest.skip(str(error))
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("PYSPARK", "SPARK"))}
    folder = tmp_path_factory.mktemp("cluster")
    run = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, two_executors.__file__, str(folder)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    findings: dict[str, Findings] = json.loads(run.stdout.splitlines()[-1])
    return findings


def test_noise_is_drawn_once_although_an_attempt_is_speculative(
    found: dict[str, Findings],
) -> None:
    one = found["slow"]
    assert len(drawn_by(one, 0)) == 2
    assert_one_attempt_each(one)
    masked = np.array(one["data"]["x"])[np.argsort(one["data"]["n"])].reshape(-1, 4)
    assert (masked == masked[:, :1]).all()  # a value for each cluster of four


def test_permutations_are_drawn_once_although_an_executor_dies(
    found: dict[str, Findings],
) -> None:
    one = found["dead"]
    assert len(drawn_by(one, 1)) > 1
    assert_one_attempt_each(one)
    five = [30 * (number // 5 * 5 + 2) for number in range(RECORDS)]
    for name in "xy":
        assert sorted(one["data"][name]) == five
    assert one["data"]["x"] != one["data"]["y"]


def drawn_by(one: Findings, task: int) -> list[set[tuple[int, float]]]:
    return [{tuple(pair) for pair in drawn} for number, drawn in one["attempts"] if number == task]


def assert_one_attempt_each(one: Findings) -> None:
    """What was written is what one attempt at each task has drawn, and every record is there."""
    written = [tuple(pair) for pair in one["written"]]
    assert len(set(written)) == len(written) > 0
    tasks = {number for number, _ in one["attempts"]}
    left = set(written)
    for number in tasks:
        attempts = [drawn for drawn in drawn_by(one, number) if drawn]
        kept = [drawn for drawn in attempts if drawn <= left]
        assert len(kept) == bool(attempts)
        left -= set().union(*kept)
    assert not left
    assert sorted(one["data"]["n"]) == list(range(RECORDS))
