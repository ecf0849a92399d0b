"""Pieces of TOML text: values with comments, and trees that keep their order."""

from collections.abc import Iterable, Mapping

import tomlkit
from tomlkit.items import InlineTable, Item


def commented(value: object, comment: str) -> Item:
    """Return a value with a comment behind it."""
    item = tomlkit.item(value)
    item.comment(comment)
    item.trivia.comment_ws = "  "
    return item


def texts(values: Iterable[str]) -> Item:
    """Write a list of text; tomlkit itself takes time in the square of its length.

    Examples
    --------
    >>> texts(["a", "b"]).as_string()
    '["a", "b"]'
    """
    return tomlkit.value(f"[{', '.join(tomlkit.string(value).as_string() for value in values)}]")


def inline(tree: Mapping[str, object]) -> InlineTable:
    """Write a tree in one line, since tables of their own would come after all lists.

    Examples
    --------
    >>> inline({"services": {"health": ["nurse"]}, "crafts": ["builder"]}).as_string()
    '{services = {health = ["nurse"]}, crafts = ["builder"]}'
    """
    table = tomlkit.inline_table()
    for name, below in tree.items():
        table.append(name, inline(below) if isinstance(below, Mapping) else tomlkit.item(below))
    return table
