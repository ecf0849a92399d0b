from pathlib import Path
from typing import Any

import numpy as np
import pytest

from microveil import Confidential, FileError, Plan, PlanError
from microveil.core.joint import category_places
from microveil.plan.taxonomy import leaf_paths, read_taxonomy

ROWS = """parent,child
work,health
work,craft
health,nurse
health,doctor
craft,smith
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_and_a_nested_table_mean_the_same(tmp_path: Path) -> None:
    tree = read_taxonomy(written(tmp_path, ROWS))
    assert leaf_paths(tree) == leaf_paths(
        {"work": {"health": ["nurse", "doctor"], "craft": ["smith"]}}
    )


def test_rows_without_a_parent_stand_at_the_root(tmp_path: Path) -> None:
    tree = read_taxonomy(written(tmp_path, "parent,child\n,a\nb,c\n"))
    assert leaf_paths(tree) == {"a": (), "c": ("b",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parent,child\na,b\nb,c\nc,a\n", "found 3 entries in a circle"),
        ("parent,child\na,c\nb,c\n", "1 entries have a second parent"),
        ("parent,child\n", "expected a header and rows of two columns"),
        ("parent,child\na,b,c\n", "expected a header and rows of two columns"),
    ],
)
def test_a_file_that_is_no_tree(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        Confidential(kind="nominal", taxonomy=str(written(tmp_path, text)))


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_taxonomy(tmp_path / "none.csv")


def test_a_plan_finds_its_taxonomy_beside_it_and_keeps_it(tmp_path: Path) -> None:
    written(tmp_path, ROWS)
    (tmp_path / "plan.toml").write_text(
        'epsilon = 1\n[attributes.job]\nrole = "confidential"\nkind = "nominal"\n'
        'taxonomy = "jobs.csv"\n'
    )
    plan = Plan.read(tmp_path / "plan.toml")
    assert plan.confidential["job"].declared_categories == ("nurse", "doctor", "smith")
    assert Plan.from_toml(plan.to_toml()) == plan


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"taxonomy": {"a": ["x"], "b": ["x"]}}, "is in the taxonomy twice"),
        ({"taxonomy": {"a": ["x"]}}, "categories must be two or more, got 1"),
        ({"taxonomy": {"a": ["x", "y"]}, "categories": ["x", "y", "z"]}, "found 1 that are in one"),
        ({"taxonomy": {"a": 3}}, "holds groups .tables. and lists of categories"),
        ({"taxonomy": {"a": [1.5, 2.5]}}, "must be text or whole numbers"),
        ({"taxonomy": {"a": ["x", "y"]}, "kind": "ordinal"}, "no taxonomy"),
    ],
)  # fmt: skip
def test_a_wrong_taxonomy_is_one_clear_message(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Confidential(**{"kind": "nominal", **settings})


def test_distances_are_the_share_of_levels_that_differ() -> None:
    paths = (("a", "b"), ("a", "b"), ("a", "c"), ("d",))
    places = category_places(("w", "x", "y", "z"), paths)
    squares = np.sum((places[:, np.newaxis] - places) ** 2, axis=2)
    expected = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [2, 2, 0, 3], [3, 3, 3, 0]]) / 3
    np.testing.assert_allclose(squares, expected, atol=1e-12)


def test_without_a_taxonomy_categories_are_one_apart() -> None:
    places = category_places(("x", "y", "z"), ())
    squares = np.sum((places[:, np.newaxis] - places) ** 2, axis=2)
    np.testing.assert_allclose(squares, 1 - np.eye(3), atol=1e-12)
