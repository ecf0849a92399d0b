"""Where records stand in the space of a group of attributes, missing values included."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Plan
from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.joint import coordinates, place_records
from microveil.core.pooling import Present
from microveil.engines.memory import memory_table
from microveil.release.resolve import resolve
from microveil.types import Integers, Reals

PRESENT = np.array([True, False, True, True, False])


def attributes() -> dict[str, AttributeSettings]:
    """One attribute of every kind, of which three records are present."""
    table = pl.DataFrame({"age": [1, 2, 3], "school": list("abc"), "job": list("xyz")})
    plan = Plan.published(
        epsilon=1.0,
        method="DP-UM",
        k=3,
        attributes={
            "age": Confidential(lower=0, upper=10),
            "school": Confidential(kind="ordinal", categories=["a", "b", "c"]),
            "job": Confidential(kind="nominal", taxonomy={"one": ["x", "y"], "two": ["z"]}),
        },
    )
    return {found.name: found for found in resolve(plan, memory_table(table)).attributes}


def squared_distances(points: Reals) -> Reals:
    squares: Reals = np.sum((points[:, np.newaxis] - points) ** 2, axis=2)
    return squares


def test_a_missing_number_is_at_the_mean() -> None:
    place = coordinates(np.array([10, 20, 60]), attributes()["age"], PRESENT)
    deviation = np.sqrt(1400 / 3)
    expected = np.array([-20, 0, -10, 30, 0]) / deviation
    assert place[:, 0] == pytest.approx(expected)
    # As many coordinates, and the same ones, as if the others had not been there.
    present = coordinates(np.array([10, 20, 60]), attributes()["age"])
    np.testing.assert_array_equal(place[PRESENT], present)


def test_a_missing_category_is_a_category_of_its_own() -> None:
    codes = np.array([0, 2, 1])
    ordinal = squared_distances(coordinates(codes, attributes()["school"], PRESENT))
    step = 1.5  # squared distance of neighbouring ranks: their variance is 2/3
    z = {0: step, 2: step, 3: 0.0}  # squared distances from the middle
    assert ordinal[1, 4] == 0
    assert [ordinal[1, i] for i in z] == pytest.approx([1 + away for away in z.values()])
    assert ordinal[0, 2] == pytest.approx(4 * step)
    nominal = squared_distances(coordinates(codes, attributes()["job"], PRESENT))
    assert nominal[1, 4] == 0
    assert nominal[1, [0, 2, 3]] == pytest.approx([1, 1, 1])
    assert nominal[0, 3] == pytest.approx(0.5)  # x and y are in one group
    job = attributes()["job"]
    assert isinstance(job, CategorySettings)
    plain = replace(job, paths=())
    assert squared_distances(coordinates(codes, plain, PRESENT))[1, 0] == pytest.approx(1)


def test_all_columns_in_one_table() -> None:
    codes, everyone = np.array([0, 2, 1]), np.ones(3, dtype=np.bool_)
    group = tuple(attributes().values())

    def read(present: Present) -> Reals:
        def column(_: AttributeSettings) -> tuple[Integers, Present]:
            return codes, present

        return place_records(group, len(present), column)

    for present in (PRESENT, everyone):
        expected = np.column_stack([coordinates(codes, one, present) for one in group])
        np.testing.assert_array_equal(read(present), expected)
    assert read(everyone).shape[1] == 1 + 1 + 5
