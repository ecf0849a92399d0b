"""Text as HTML. Names and categories may look like markup; none of it gets through."""

from collections.abc import Iterable, Sequence
from html import escape

_COLOURS = {"error": "213, 94, 0", "warning": "230, 159, 0", "note": "0, 114, 178"}
_WORDS = {"error": "Error", "warning": "Warning", "note": "Note"}


def message(kind: str, text: str, about: str | None = None) -> str:
    """Write a message that screen readers announce: an error, a warning or a note.

    Examples
    --------
    >>> "&lt;b&gt;" in message("error", "attribute '<b>'")
    True
    """
    role = "alert" if kind == "error" else "status"
    named = "" if about is None else f' data-about="{escape(about)}"'
    return (
        f'<div role="{role}" class="microveil-{kind}"{named} style="{_box(kind)}">'
        f"<strong>{_WORDS[kind]}:</strong> {escape(text)}</div>"
    )


def notes_box(notes: Sequence[str], about: str = "") -> str:
    """Write warnings: one as it is, several behind their number; nothing of none."""
    if len(notes) < 2:
        return "".join(message("warning", note) for note in notes)
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f'<details role="status" class="microveil-warning" style="{_box("warning")}">'
        f"<summary><strong>{len(notes)} warnings{escape(about)}</strong></summary>"
        f'<ul style="margin: 0.3rem 0">{listed}</ul></details>'
    )


def _box(kind: str) -> str:
    colour = _COLOURS[kind]
    return (
        f"border-left: 0.4rem solid rgb({colour}); background: rgba({colour}, 0.12); "
        "padding: 0.5rem 0.8rem; overflow-wrap: anywhere; white-space: pre-line"
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


def figures(sentences: Iterable[str], rows: Iterable[tuple[str, str]]) -> str:
    """Write sentences, and below them figures with what they are."""
    said = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    body = "".join(
        f'<tr><td>{escape(label)}</td><td style="text-align: right">{escape(value)}</td></tr>'
        for label, value in rows
    )
    return f'<div style="overflow-wrap: anywhere">{said}<table><tbody>{body}</tbody></table></div>'


_GRADES = {
    "good": "0, 114, 178",
    "fair": "230, 159, 0",
    "poor": "213, 94, 0",
    "unknown": "120, 120, 120",
}


def graded(grade: str, answer: str, sentences: Iterable[str]) -> str:
    """Write a grade and what it rests on."""
    return (
        f'<p class="microveil-grade" style="border-left: 0.4rem solid rgb({_GRADES[grade]}); '
        f'padding-left: 0.6rem; font-size: 1.25rem; font-weight: 600">{escape(answer)}</p>'
        f"{items(sentences)}"
    )


def verdict_box(passes: bool | None, sentences: Iterable[str]) -> str:
    """Write whether a release passes, if that is known, and what to change."""
    grade = {True: "good", False: "poor", None: "unknown"}[passes]
    first, *others = map(escape, sentences)
    return (
        '<div role="status" class="microveil-verdict" style="border-left: 0.4rem solid '
        f"rgb({_GRADES[grade]}); background: rgba({_GRADES[grade]}, 0.12); "
        f'padding: 0.5rem 0.8rem; overflow-wrap: anywhere"><strong>{first}</strong>'
        f"{''.join(f'<p>{other}</p>' for other in others)}</div>"
    )


def table_of(rows: Iterable[list[str]], marked: int | None = None) -> str:
    """Write a table under a row of names, with one of its rows marked.

    Examples
    --------
    >>> table_of([["who"], ["Ann"], ["Bob"]], marked=1).count("font-weight")
    1
    """
    names, *others = ([escape(cell) for cell in row] for row in rows)
    head = "".join(f'<th style="text-align: left">{name}</th>' for name in names)
    bold = ' style="font-weight: 700" aria-current="true"'
    body = "".join(
        f"<tr{bold if place == marked else ''}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        for place, cells in enumerate(others)
    )
    return f'<table style="width: 100%"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def chips(parts: Iterable[tuple[str, str]]) -> str:
    """Write short facts side by side, each with what it is about."""
    listed = "".join(
        f'<li><span class="microveil-about">{escape(about)}</span> {escape(fact)}</li>'
        for about, fact in parts
    )
    return f'<ul class="microveil-plan" aria-label="The plan so far">{listed}</ul>'
