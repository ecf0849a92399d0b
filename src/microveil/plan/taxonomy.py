"""A taxonomy: a tree whose leaves are categories, so that near ones stand side by side."""

import csv
import graphlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from microveil.core.attribute import Category
from microveil.errors import FileError, PlanError

Tree = dict[str, Any]
"""Groups by name; a group holds groups, or a list of categories. An empty list is a category."""


def leaf_paths(tree: Mapping[str, Any]) -> dict[Category, tuple[str, ...]]:
    """Return for every category the groups it is in, from the root; in the order of the tree.

    Examples
    --------
    >>> leaf_paths({"health": ["nurse", "doctor"], "craft": {"wood": ["joiner"], "smith": []}})
    {'nurse': ('health',), 'doctor': ('health',), 'joiner': ('craft', 'wood'), 'smith': ('craft',)}
    """
    paths: dict[Category, tuple[str, ...]] = {}
    try:
        _walk(tree, (), paths)
    except RecursionError:
        raise _too_deep() from None
    return paths


def groups_at(tree: Mapping[str, Any], level: int) -> dict[Category, tuple[str, ...]]:
    """Return for every category its group at a level, by its path; 1 is that of the root's groups.

    A category that lies above the level stands for itself.

    Examples
    --------
    >>> groups_at({"health": ["nurse", "doctor"], "craft": {"wood": ["joiner"], "smith": []}}, 2)
    {'nurse': ('health', 'nurse'), 'doctor': ('health', 'doctor'), 'joiner': ('craft', 'wood'), \
'smith': ('craft', 'smith')}
    """
    groups = {leaf: (*path, str(leaf))[:level] for leaf, path in leaf_paths(tree).items()}
    paths = set(groups.values())
    if len({path[-1] for path in paths}) < len(paths):
        raise PlanError(
            f"two groups of the taxonomy have one name at level {level}; give each its own",
            setting="level",
        )
    return groups


def _walk(node: object, path: tuple[str, ...], paths: dict[Category, tuple[str, ...]]) -> None:
    if isinstance(node, Mapping):
        for name, below in node.items():
            _walk(below, (*path, name), paths)
        return
    if not isinstance(node, Sequence) or isinstance(node, str):
        raise _wrong("a taxonomy holds groups (tables) and lists of categories, nothing else")
    leaves, above = (node, path) if node else (path[-1:], path[:-1])
    for leaf in leaves:
        if not isinstance(leaf, Category):
            raise _wrong("a taxonomy's categories must be text or whole numbers")
        if leaf in paths:
            raise _wrong("a category is in the taxonomy twice; remove one")
        paths[leaf] = above


def _wrong(message: str) -> PlanError:
    return PlanError(message, setting="taxonomy")


def _too_deep() -> PlanError:
    return _wrong("a taxonomy's groups are nested too deeply; use fewer levels")


def read_taxonomy(path: str | Path) -> Tree:
    """Read a taxonomy from a CSV file with a header and two columns, parent and child.

    A group without a parent is at the root; an entry without children is a category.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise FileError(f"taxonomy {path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise FileError(f"taxonomy {path}: expected a CSV file in UTF-8") from None
    if len(rows) < 2 or any(len(row) != 2 for row in rows):
        raise FileError(
            f"taxonomy {path}: expected a header and rows of two columns, parent and child"
        )
    children: dict[str, list[str]] = {}
    for parent, child in rows[1:]:
        children.setdefault(parent, []).append(child)
    _check_tree(path, children)
    below = {child for names in children.values() for child in names}
    roots = [name for name in children if name not in below]
    try:
        return {name: tree for root in roots for name, tree in _grow(root, children).items()}
    except RecursionError:
        raise _too_deep() from None


def _grow(name: str, children: Mapping[str, Sequence[str]]) -> Tree:
    """Build the tree at a group; rows without a parent put their child at the root."""
    if name not in children:
        return {name: []}
    inside: Tree = {}
    for child in children[name]:
        inside |= _grow(child, children)
    return inside if not name else {name: inside}


def _check_tree(path: str | Path, children: Mapping[str, Sequence[str]]) -> None:
    everyone = [child for names in children.values() for child in names]
    try:
        graphlib.TopologicalSorter(children).prepare()
    except graphlib.CycleError as error:
        raise FileError(
            f"taxonomy {path}: every category must lead up to a root, found "
            f"{len(error.args[1]) - 1} entries in a circle; remove one of them"
        ) from None
    if len(set(everyone)) < len(everyone):
        raise FileError(
            f"taxonomy {path}: {len(everyone) - len(set(everyone))} entries have a second parent; "
            "keep one of them"
        )
