"""How often each value occurs, before and after: what the charts of a release draw."""

import narwhals as nw
import polars as pl

from microveil.compare.paired_columns import kind_of
from microveil.compare.pairing import pair_tables
from microveil.release.release import Release
from microveil.show.charts.histograms import Shares
from microveil.show.report.shapes import shapes


def compare(original: pl.DataFrame, release: Release) -> list[Shares]:
    """Compare every attribute that was masked or derived, in the order of the release."""
    changed = {*release.plan.confidential, *release.plan.derived}
    released = nw.from_native(release.data, eager_only=True)
    names = [n for n in released.columns if n in changed and kind_of(released[n]) is not None]
    pair = pair_tables(original, release.data, release.detail, release.plan, attributes=names)
    return [shape.shares for shape in shapes(pair)]
