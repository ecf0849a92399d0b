"""What charts show of each attribute: shares and a few figures, never the records themselves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from microveil.compare.paired_columns import MISSING, Categories, kind_of
from microveil.compare.pairing import Pair, complete, deviation, pair_tables, present
from microveil.engines.dtypes import describe
from microveil.measures.disclosure_risk import quantiles_of_records
from microveil.release.release import Release
from microveil.show.charts.histograms import Clock, Shares, shares_of_categories, shares_of_numbers
from microveil.show.words.numbers import length_of_time
from microveil.types import Reals, UserTable

MOST_PAIRED = 24
"""More attributes than this make a matrix of correlations unreadable."""

BeforeAndAfter = tuple[tuple[str, str, str], ...]
"""Figures as people read them: what, before, after."""


class Shape(NamedTuple):
    """An attribute before and after, and lines of figures about it."""

    shares: Shares
    rows: BeforeAndAfter


def shapes_of_masked(original: UserTable, release: Release) -> list[Shape]:
    """Describe every attribute that was masked or derived, in the order of the release."""
    changed = {*release.plan.confidential, *release.plan.derived}
    released = nw.from_native(release.data, eager_only=True)
    names = [n for n in released.columns if n in changed and kind_of(released[n]) is not None]
    pair = pair_tables(original, release.data, release.detail, release.plan, attributes=names)
    return list(shapes(pair))


def shapes(pair: Pair) -> Iterator[Shape]:
    """Describe every attribute that is compared, in their order."""
    categories = {attribute.name: attribute for attribute in pair.categorical}
    for name in pair.attributes:
        if name in categories:
            yield _of_categories(categories[name])
        else:
            column = pair.numeric.index(name)
            yield _of_numbers(pair, name, pair.original[:, column], pair.released[:, column])


def correlation_matrices(pair: Pair) -> tuple[tuple[str, ...], Reals, Reals]:
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
            deciles = quantiles_of_records(width, formed["records"].to_numpy(), (0.1, 0.5, 0.9))
            rows.append((name, *deciles))
    schema = {"name": pl.String, "low": pl.Float64, "median": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _of_numbers(pair: Pair, name: str, original: Reals, released: Reals) -> Shape:
    clock, length = _clock(pair, name), pair.lengths.get(name)
    columns = [present(original), present(released)]
    milliseconds = 1.0 if length is None else length / 1_000
    missing = _missing(np.isnan(original), np.isnan(released))
    return Shape(
        shares_of_numbers(name, *columns, clock=clock, milliseconds=milliseconds),
        (*_number_rows(columns, clock, length), missing),
    )


def _of_categories(attribute: Categories) -> Shape:
    before, after = (c[c != MISSING] for c in (attribute.original, attribute.released))
    ordered = attribute.kind == "ordinal"
    first, second = (f"{len(np.unique(codes)):,}" for codes in (before, after))
    return Shape(
        shares_of_categories(attribute.name, attribute.labels, before, after, ordered=ordered),
        (
            ("categories that occur", first, second),
            _missing(attribute.original == MISSING, attribute.released == MISSING),
        ),
    )


def _number_rows(
    columns: list[Reals], clock: Clock | None, length: float | None
) -> Iterator[tuple[str, str, str]]:
    for words, of in (("mean", np.mean), ("median", np.median)):
        yield words, *(_value(float(of(c)), clock) if len(c) else "–" for c in columns)  # type: ignore[misc]
    spread = [deviation(column) if len(column) > 1 else 0.0 for column in columns]
    yield (
        "standard deviation",
        *(  # type: ignore[misc]
            short(one) if length is None else length_of_time(one * length) for one in spread
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
        if clock is not None and clock != "duration":  # which is drawn as a number
            return clock
    return None
