"""Uses in words: an estimate from the original beside that from the release, and models."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

from microveil.compare.figures import Figure
from microveil.measures.use_figures import ESTIMATE, USES
from microveil.show.words.numbers import percent


class UseRow(NamedTuple):
    """One estimate or score, as numbers: of the release None where it has none."""

    use: str
    group: str
    original: float
    low: float | None
    high: float | None
    released: float | None
    released_low: float | None
    released_high: float | None
    moved: float


def use_rows(figures: Iterable[Figure]) -> Iterator[UseRow]:
    """Return what was computed for every use, group by group."""
    for figure in figures:
        if figure.measure in USES:
            group = str(figure.facts["group" if figure.measure == ESTIMATE else "score"])
            original = _number_in(figure, "original")
            assert original is not None  # noqa: S101 - every use has one
            yield UseRow(
                str(figure.facts["use"]),
                group,
                original,
                _number_in(figure, "original_low"),
                _number_in(figure, "original_high"),
                _number_in(figure, "released"),
                _number_in(figure, "released_low"),
                _number_in(figure, "released_high"),
                figure.value,
            )


def _number_in(figure: Figure, fact: str) -> float | None:
    value = figure.facts.get(fact)
    return float(value) if isinstance(value, float) else None


def by_use(figures: Iterable[Figure]) -> Iterator[tuple[str, list[UseRow]]]:
    """Group what was computed by use, in the order of the plan."""
    rows = sorted(use_rows(figures), key=lambda row: row.use)
    order = list(dict.fromkeys(row.use for row in use_rows(figures)))
    found = {use: list(of_use) for use, of_use in groupby(rows, lambda row: row.use)}
    yield from ((use, found[use]) for use in order)


def estimate_in_words(figure: Figure) -> str:
    """Say what an estimate was, and what it is."""
    (row,) = use_rows([figure])
    before = _with_interval(row.original, row.low, row.high)
    if row.released is None:
        return f"{before} in the original, and the release has too few records to tell"
    after = _with_interval(row.released, row.released_low, row.released_high)
    inside = row.low is not None and row.high is not None and row.low <= row.released <= row.high
    where = "within" if inside else "outside"
    return f"{before} in the original, {after} in the release, {_change(row)} {where} the interval"


def _change(row: UseRow) -> str:
    change = (row.released or 0.0) - row.original
    if not change:
        return "unchanged and"
    if not row.original:
        return f"{number(abs(change))} {'higher' if change > 0 else 'lower'},"
    size = percent(abs(change / row.original))
    return f"{size} {'higher' if change > 0 else 'lower'},"


def _with_interval(value: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return number(value)
    return f"{number(value)} ({number(low)} to {number(high)})"


def number(value: float) -> str:
    """Write a number of any size with the digits that people read.

    Examples
    --------
    >>> number(2647081.4), number(119.762), number(0.061234), number(-0.0)
    ('2,647,081', '119.8', '0.06123', '0')
    """
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value + 0.0:.4g}"


def model_in_words(figure: Figure) -> str:
    """Say how well a model does that is trained on the original, and on the release.

    Examples
    --------
    >>> facts = {"use": "predict died", "score": "AUC", "original": 0.7361, "released": 0.7342}
    >>> model_in_words(Figure("use.model", "predict died", 0.0019, facts))
    'model on original 0.736, on release 0.734 (AUC on records that neither was trained on)'
    """
    (row,) = use_rows([figure])
    return (
        f"model on original {row.original:.3f}, on release {row.released:.3f} ({row.group} on "
        "records that neither was trained on)"
    )
