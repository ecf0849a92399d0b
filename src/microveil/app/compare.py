"""How often each value occurs, before and after: what the charts of a release draw."""

from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from microveil.release.release import Release

BEFORE, AFTER = "original", "release"
_BINS = 24
_MOST_CATEGORIES = 15
_OTHERS = "(others)"

Scale = Literal["numbers", "dates", "categories"]


class Comparison(NamedTuple):
    """One attribute before and after: shares of the records that have a value.

    `shares` has the columns table, share and, for categories, category; otherwise start and end.
    """

    attribute: str
    scale: Scale
    shares: pl.DataFrame


def compare(original: pl.DataFrame, release: Release) -> list[Comparison]:
    """Compare every attribute that was masked or derived, in the order of the release."""
    changed = {*release.plan.confidential, *release.plan.derived}
    names = [name for name in release.data.columns if name in changed]
    return [_compare(name, original[name], release.data[name]) for name in names]


def _compare(name: str, before: pl.Series, after: pl.Series) -> Comparison:
    columns = [before.drop_nulls(), after.drop_nulls()]
    if before.dtype.is_numeric():
        return Comparison(name, "numbers", _histograms(*columns))
    if before.dtype == pl.Time:
        hours = [column.to_physical() / 3_600e9 for column in columns]
        return Comparison(name, "numbers", _histograms(*hours))
    if before.dtype.is_temporal():
        days = [column.cast(pl.Datetime("us")) for column in columns]
        shares = _histograms(*(column.to_physical() for column in days))
        ends = pl.col("start", "end").cast(pl.Int64).cast(pl.Datetime("us"))
        return Comparison(name, "dates", shares.with_columns(ends))
    return Comparison(name, "categories", _frequencies(*columns))


def _histograms(before: pl.Series, after: pl.Series) -> pl.DataFrame:
    """Count in bins of one width over all but the outermost hundredth of the original values.

    What lies outside is counted in the outermost bins.
    """
    numbers = [column.cast(pl.Float64).to_numpy() for column in (before, after)]
    low, high = (float(x) for x in np.quantile(numbers[0], [0.005, 0.995]))
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    counts = [np.histogram(column.clip(low, high), edges)[0] for column in numbers]
    parts = [
        pl.DataFrame({"start": edges[:-1], "end": edges[1:], "share": count / len(column)})
        for count, column in zip(counts, numbers, strict=True)
    ]
    return _stacked(*parts)


def _frequencies(before: pl.Series, after: pl.Series) -> pl.DataFrame:
    """Count categories; beyond the most frequent ones, together."""
    texts = [column.cast(pl.String).alias("category") for column in (before, after)]
    frequent = texts[0].value_counts(sort=True)["category"][:_MOST_CATEGORIES]
    parts = []
    for text in texts:
        named = pl.when(text.is_in(frequent.implode())).then(text).otherwise(pl.lit(_OTHERS))
        counts = pl.select(category=named).group_by("category").len("share")
        parts.append(counts.with_columns(pl.col("share") / len(text)).sort("category"))
    return _stacked(*parts)


def _stacked(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    named = [(before, BEFORE), (after, AFTER)]
    return pl.concat([part.with_columns(table=pl.lit(name)) for part, name in named])
