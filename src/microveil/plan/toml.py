"""Pieces of TOML text: values with comments, trees that keep their order, lines of keys."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import tomlkit
from tomlkit.items import InlineTable, Item

_MINUTE = timedelta(minutes=1)


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


def as_toml(bound: object) -> object:
    """Return a bound as TOML can hold it: a time whose offset has seconds as text.

    Examples
    --------
    >>> from datetime import timezone
    >>> as_toml(datetime(1890, 1, 1, tzinfo=timezone(timedelta(minutes=53, seconds=28))))
    '1890-01-01T00:00:00+00:53:28'
    """
    if isinstance(bound, datetime) and (bound.utcoffset() or _MINUTE) % _MINUTE:
        return bound.isoformat()
    return bound


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


_KEY = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_HEADER = re.compile(rf"\s*\[\[?\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*\]")
_SETTING = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")
_LONG_TEXT = re.compile(r"\"\"\"|'''")


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    r"""Return the first line of every table and key of TOML text that can be read.

    Examples
    --------
    >>> key_lines('epsilon = 1\n[attributes."a.b"]\nrole = "kept"')
    {('epsilon',): 1, ('attributes', 'a.b'): 2, ('attributes', 'a.b', 'role'): 3}
    """
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    inside_text = False
    for number, line in enumerate(text.splitlines(), start=1):
        header, setting = _HEADER.match(line), _SETTING.match(line)
        if header and not inside_text:
            table = _path(header.group(1))
            lines.setdefault(table, number)
        elif setting and not inside_text:
            lines.setdefault((*table, *_path(setting.group(1))), number)
        inside_text ^= len(_LONG_TEXT.findall(line)) % 2 == 1
    return lines


def _path(key: str) -> tuple[str, ...]:
    """Split a dotted key, of which parts may stand in quotes."""
    path, below = [], tomllib.loads(f"{key} = 0")
    while isinstance(below, dict):
        ((name, below),) = below.items()
        path.append(name)
    return tuple(path)
