"""The numbers in docs/explanation/guarantees.md, computed again."""

from pathlib import Path

import numpy as np
import pytest

from microveil.core.accounting import noise_scales, reclustered_loss
from microveil.core.choices import GuaranteeName, MethodName
from microveil.core.clusters import cluster_sizes, summarise
from microveil.core.methods import METHODS
from microveil.core.sensitivity import DomainSteps

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "explanation" / "guarantees.md").read_text(encoding="utf-8")
UNIT = 2**30  # grid steps in one unit of the example: what rounding adds is out of sight
VALUES = np.array([1, 2, 3, 5, 6, 8, 9, 12, 14, 20]) * UNIT
DOMAIN = DomainSteps(0, 40 * UNIT)


@pytest.mark.parametrize(
    ("label", "name", "guarantee"),
    [
        ("`DP-UM`", "DP-UM", "fixed-clusters"),
        ("`iDP-LS`", "iDP-LS", "fixed-clusters"),
        ("`iDP-CBLS`", "iDP-CBLS", "fixed-clusters"),
        ("`iDP-CBLS`, re-clustered", "iDP-CBLS", "re-clustered"),
    ],
)
def test_the_worked_example(label: str, name: MethodName, guarantee: GuaranteeName) -> None:
    method, summary = METHODS[name], summarise(VALUES, cluster_sizes(10, 3))
    scales = noise_scales(method, summary, DOMAIN, 1.0, guarantee)
    starts = tuple(f"| {label} | {digit}" for digit in range(10))
    row = next(line for line in PAGE.splitlines() if line.startswith(starts))
    _, _, printed_scales, printed_loss, _ = (cell.strip() for cell in row.split("|"))
    assert [float(x) for x in printed_scales.split(",")] == pytest.approx(scales / UNIT, rel=5e-4)
    loss = reclustered_loss(method, summary, DOMAIN, scales)
    assert float(printed_loss) == pytest.approx(loss, rel=5e-4)


def test_the_worst_neighbour_of_the_worked_example() -> None:
    moved = np.sort(np.where(VALUES == UNIT, 25 * UNIT, VALUES))
    centroids = summarise(moved, cluster_sizes(10, 3)).winsorised_mean() / UNIT
    assert centroids.tolist() == [3, 8, 17]
    assert "centroids become 3, 8 and 17" in PAGE


def test_the_counterexample_to_scales_that_are_recomputed() -> None:
    """Equal centroids, but one table gets no noise: with recomputed scales there is no bound."""
    here, there = (
        summarise(np.array(values) * UNIT, np.array([3])) for values in ([20, 20, 20], [20, 20, 30])
    )
    method = METHODS["iDP-CBLS"]
    centroids = [method.centroid(table, 0)[0] / UNIT for table in (here, there)]
    scales = [noise_scales(method, table, DOMAIN, 1.0) for table in (here, there)]
    assert centroids == [20, 20]
    assert scales[0][0] == 0
    assert reclustered_loss(method, here, DOMAIN, scales[0]) == 0
    assert scales[1][0] / UNIT == pytest.approx(10)
    for line in (
        "20  20  20      centroid 20,   Δ = 0,",
        "20  20  30      centroid 20,   Δ = 30/3 = 10,",
    ):
        assert line in PAGE
