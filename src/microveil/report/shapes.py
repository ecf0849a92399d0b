"""What charts show of each attribute: counts and a few figures, never the records themselves."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from microveil.core.grid import Integers, Reals
from microveil.engines.dtypes import describe
from microveil.evaluation.compared import MISSING, Categories
from microveil.evaluation.pairing import Pair, complete, deviation, present
from microveil.evaluation.result import duration
from microveil.report.charts import Clock

MOST_BINS = 40
MOST_BARS = 20
MOST_PAIRED = 24
"""More attributes than this make a matrix of correlations unreadable."""

_TAIL = 0.001


@dataclass(frozen=True)
class Shape:
    """An attribute before and after: shares of records, and lines of figures about them.

    Attributes
    ----------
    name
        The attribute.
    edges
        Of the bins of numbers, dates and times, these in milliseconds since 1970; of categories
        empty.
    labels
        Of categories; of numbers empty.
    before, after
        The share of present values in each bin or category; empty if there are none.
    clock
        What kind of dates or times these are, if they are.
    rows
        Figures as people read them: what, before, after.
    outside
        How many values before and after lie outside the bins.
    """

    name: str
    edges: tuple[float, ...]
    labels: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    clock: Clock | None
    rows: tuple[tuple[str, str, str], ...]
    outside: tuple[int, int] = (0, 0)


def shapes(pair: Pair) -> Iterator[Shape]:
    """Describe every attribute that is compared, in their order."""
    categories = {attribute.name: attribute for attribute in pair.categorical}
    for name in pair.attributes:
        if name in categories:
            yield _of_categories(categories[name])
        else:
            column = pair.numeric.index(name)
            yield _of_numbers(pair, name, pair.original[:, column], pair.released[:, column])


def correlations(pair: Pair) -> tuple[tuple[str, ...], Reals, Reals]:
    """Return the names of numeric attributes that vary, and their correlations before and after.

    Of many, those whose correlations change most.
    """
    tables = complete(pair.original), complete(pair.released)
    varies = [a for a in range(len(pair.numeric))
              if all(len(t) > 1 and deviation(t[:, a]) for t in tables)]  # fmt: skip
    if len(varies) < 2:
        return (), np.empty((0, 0)), np.empty((0, 0))
    before, after = (np.atleast_2d(np.corrcoef(table[:, varies], rowvar=False)) for table in tables)
    change = np.abs(after - before).max(axis=0)
    chosen = np.sort(np.argsort(-change, kind="stable")[:MOST_PAIRED])
    names = tuple(pair.numeric[varies[a]] for a in chosen)
    return names, before[np.ix_(chosen, chosen)], after[np.ix_(chosen, chosen)]


def widths(pair: Pair) -> pl.DataFrame:
    """Return how wide the clusters are that records are in: tenth, median and ninth decile.

    In standard deviations of each numeric attribute that was clustered; empty if unknown.
    """
    rows = []
    for name, values in zip(pair.numeric, pair.original.T, strict=True):
        one = deviation(present(values))
        if pair.clusters is None or not one:
            continue
        formed = pair.clusters.filter(attribute=name).drop_nulls(["smallest", "largest"])
        if len(formed):
            width = (formed["largest"] - formed["smallest"]).to_numpy() / one
            of_records = np.repeat(width, formed["records"].to_numpy())
            deciles = np.quantile(of_records, [0.1, 0.5, 0.9], method="inverted_cdf")
            rows.append((name, *map(float, deciles)))
    schema = {"name": pl.String, "low": pl.Float64, "median": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _of_numbers(pair: Pair, name: str, original: Reals, released: Reals) -> Shape:
    clock, length = _clock(pair, name), pair.lengths.get(name)
    columns = [present(original), present(released)]
    edges = _edges(*columns)
    counts = [np.histogram(column, edges)[0] for column in columns] if len(edges) else []
    to_axis = 1.0 if length is None else length / 1_000
    return Shape(
        name=name,
        edges=tuple(float(edge) * to_axis for edge in edges),
        labels=(),
        before=_shares(counts[0], len(columns[0])) if counts else (),
        after=_shares(counts[1], len(columns[1])) if counts else (),
        clock=clock,
        rows=(
            *_number_rows(columns, clock, length),
            _missing(np.isnan(original), np.isnan(released)),
        ),
        outside=tuple(len(c) - int(n.sum()) for c, n in zip(columns, counts, strict=True))  # type: ignore[arg-type]
        if counts
        else (0, 0),
    )


def _of_categories(attribute: Categories) -> Shape:
    kinds = len(attribute.labels)
    counts = [
        np.bincount(codes[codes != MISSING], minlength=kinds)
        for codes in (attribute.original, attribute.released)
    ]
    seen = np.flatnonzero(counts[0] + counts[1])
    common = np.argsort(-(counts[0] + counts[1])[seen], kind="stable")
    if attribute.kind == "nominal" or len(seen) > MOST_BARS:
        seen = seen[common]
    shown, rest = seen[:MOST_BARS], seen[MOST_BARS:]
    labels = [attribute.labels[code] for code in shown]
    bars = [list(count[shown]) for count in counts]
    if len(rest):
        labels.append(f"… {len(rest):,} more categories")
        bars = [[*bar, count[rest].sum()] for bar, count in zip(bars, counts, strict=True)]
    before, after = (
        _shares(np.array(bar), count.sum()) for bar, count in zip(bars, counts, strict=True)
    )
    kept = [f"{np.count_nonzero(count):,}" for count in counts]
    return Shape(
        name=attribute.name,
        edges=(),
        labels=tuple(labels),
        before=before,
        after=after,
        clock=None,
        rows=(
            ("categories that occur", *kept),  # type: ignore[arg-type]
            _missing(attribute.original == MISSING, attribute.released == MISSING),
        ),
    )


def _edges(before: Reals, after: Reals) -> Reals:
    """Cut the range of both into bins: whole numbers if there are few, else of equal width."""
    both = np.concatenate([before, after])
    if not len(before) or not len(after):
        return np.empty(0)
    low, high = np.quantile(both, [_TAIL, 1 - _TAIL], method="inverted_cdf")
    if low == high:
        low, high = both.min(), both.max()
    whole = bool(np.all(before == np.round(before)) and np.all(after == np.round(after)))
    if whole and high - low < MOST_BINS:
        return np.arange(low, high + 2) - 0.5
    if low == high:
        margin = max(abs(low), 1.0) / 2
        return np.array([low - margin, low + margin])
    bins = int(min(MOST_BINS, max(5, np.ceil(2 * min(len(before), len(after)) ** (1 / 3)))))
    if whole:
        step = np.ceil((high - low + 1) / bins)
        edges: Reals = low - 0.5 + step * np.arange(np.ceil((high - low + 1) / step) + 1)
        return edges
    return np.linspace(low, high, bins + 1)


def _shares(counts: Integers, total: int) -> tuple[float, ...]:
    return tuple(float(count) / max(int(total), 1) for count in counts)


def _number_rows(
    columns: list[Reals], clock: Clock | None, length: float | None
) -> Iterator[tuple[str, str, str]]:
    for words, of in (("mean", np.mean), ("median", np.median)):
        yield words, *(_value(float(of(c)), clock) if len(c) else "–" for c in columns)  # type: ignore[misc]
    spread = [deviation(column) if len(column) > 1 else 0.0 for column in columns]
    yield (
        "standard deviation",
        *(  # type: ignore[misc]
            short(one) if length is None else duration(one * length) for one in spread
        ),
    )


def _missing(
    before: np.typing.NDArray[np.bool_], after: np.typing.NDArray[np.bool_]
) -> tuple[str, str, str]:
    return "missing", f"{np.count_nonzero(before):,}", f"{np.count_nonzero(after):,}"


def _value(value: float, clock: Clock | None) -> str:
    if clock is None:
        return short(value)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    if clock == "date":
        return (epoch + timedelta(days=round(value))).date().isoformat()
    moment = epoch + timedelta(microseconds=round(value))
    return f"{moment:%H:%M:%S}" if clock == "time" else f"{moment:%Y-%m-%d %H:%M}"


def short(value: float) -> str:
    """Write a number with about four digits.

    Examples
    --------
    >>> short(0.123456), short(12.3456), short(1234567.8), short(0.0), short(1e-9)
    ('0.1235', '12.35', '1,234,568', '0', '1e-09')
    """
    return f"{value:,.0f}" if 1_000 <= abs(value) < 1e15 else f"{value:.4g}"


def _clock(pair: Pair, name: str) -> Clock | None:
    for frame in (pair.source, pair.table):  # one of them may hold times as text
        clock = describe(frame[name].dtype).clock
        if clock is not None:
            return clock
    return None
