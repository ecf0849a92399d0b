"""Blocks of neighbours, cut as a sample says: of about one size, whatever is tied."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microveil.core.blocks import grow
from microveil.core.joint import Scaling, coordinates, placed_by
from microveil.core.mdav import standardise


def test_blocks_are_about_as_large_as_each_other_also_where_most_records_are_equal() -> None:
    random = np.random.default_rng(1)
    points = random.normal(size=(40_000, 3))
    points[:36_000] = 0
    tree = grow(points[random.choice(40_000, 4_000, replace=False)], 16)
    block = tree.leaf_of(points, random.random(40_000))
    counts = np.bincount(block, minlength=16)
    assert len(counts) == 16
    assert counts.max() < 2 * 40_000 / 16
    spread = [points[block == number].std() for number in range(16)]
    assert np.mean(spread) < points.std()  # neighbours


@given(st.integers(1, 20), st.integers(2, 30), st.randoms())
def test_every_block_has_enough_records(parts: int, least: int, random: object) -> None:
    seed = random.randrange(2**32)  # type: ignore[attr-defined]
    points = np.random.default_rng(seed).integers(0, 3, (200, 2)).astype(float)
    tree = grow(points[::4], parts)
    leaf = tree.leaf_of(points, np.random.default_rng(seed).random(200))
    label = tree.merged(np.bincount(leaf, minlength=tree.leaves), least)
    counts = np.bincount(label[leaf])
    assert tree.leaves == parts
    assert counts.sum() == 200
    assert counts.min() >= min(least, 200)


def test_some_values_are_placed_as_all_are() -> None:
    numeric: Any = None  # whatever is no category
    values = np.array([3.0, 9.0, 4.0, 4.0])
    within = (values - 3) / 6
    scaling = Scaling(3, 9, within.mean(), within.std(), absent=False)
    everyone = np.ones(4, dtype=bool)
    placed = placed_by(values, numeric, everyone, scaling)
    assert np.allclose(placed, standardise(values[:, np.newaxis]))
    assert np.allclose(placed, coordinates(values, numeric, everyone))
