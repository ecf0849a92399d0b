"""Text as HTML. Names and categories may look like markup; none of it gets through."""

from collections.abc import Iterable
from html import escape

_COLOURS = {"error": "213, 94, 0", "warning": "230, 159, 0", "note": "0, 114, 178"}
_WORDS = {"error": "Error", "warning": "Warning", "note": "Note"}


def message(kind: str, text: str) -> str:
    """Write a message that screen readers announce: an error, a warning or a note.

    Examples
    --------
    >>> "&lt;b&gt;" in message("error", "attribute '<b>'")
    True
    """
    colour, role = _COLOURS[kind], "alert" if kind == "error" else "status"
    return (
        f'<div role="{role}" class="microveil-{kind}" style="border-left: 0.4rem solid '
        f"rgb({colour}); background: rgba({colour}, 0.12); padding: 0.5rem 0.8rem; "
        'overflow-wrap: anywhere">'
        f"<strong>{_WORDS[kind]}:</strong> {escape(text)}</div>"
    )


def items(texts: Iterable[str]) -> str:
    """Write a list."""
    listed = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<ul style="overflow-wrap: anywhere">{listed}</ul>'


def readings(rows: Iterable[tuple[str, str, str]]) -> str:
    """Write figures, each with what it is about and its reading."""
    listed = "".join(
        f"<dt><strong>{escape(measure)}</strong> {escape(about)}</dt>"
        f'<dd style="margin: 0 0 0.6rem 1rem">{escape(reading)}</dd>'
        for measure, about, reading in rows
    )
    return f'<dl style="overflow-wrap: anywhere">{listed}</dl>'
