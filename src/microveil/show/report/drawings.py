"""The charts of a report, each with a caption and a text alternative."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from microveil.attacks.attack_rows import GAINS
from microveil.compare.asked import NARROW
from microveil.compare.pairing import Pair
from microveil.judge.evaluated import Evaluation
from microveil.show.charts.distributions import bars, distribution
from microveil.show.charts.histograms import Shares
from microveil.show.charts.overviews import amounts, heat_map, spans
from microveil.show.charts.use_chart import described, use_chart
from microveil.show.report.variable_labels import VariableLabels
from microveil.show.shapes import BeforeAndAfter, Shape, correlation_matrices, shapes, widths
from microveil.show.words.numbers import deviations
from microveil.show.words.readings import label_of, reading
from microveil.show.words.use_words import UseRow, by_use, number

if TYPE_CHECKING:
    import altair as alt

MOST = 100
"""So many attributes are drawn; a page with many more would be slow to open."""

_CAPTIONED = (
    "utility.means",
    "utility.variances",
    "utility.unchanged",
    "utility.total_variation",
)
_TRAINED = ("learning.f_measure_original", "learning.f_measure")


@dataclass(frozen=True)
class Drawing:
    """A chart's place in the page."""

    number: int | None
    title: str
    caption: str
    rows: BeforeAndAfter = ()


class Drawings:
    """Collects charts as a page needs them."""

    def __init__(self, evaluation: Evaluation, labels: VariableLabels) -> None:
        self.charts: list[alt.LayerChart] = []
        self._evaluation, self._labels = evaluation, labels

    def distributions(self, pair: Pair) -> tuple[list[Drawing], str]:
        """Draw every attribute before and after; say how many were left out."""
        drawn = [self._distribution(s) for s in shapes(pair.only(pair.attributes[:MOST]))]
        left = len(pair.attributes) - MOST
        return drawn, f" The first {MOST} are drawn, {left:,} more are not." if left > 0 else ""

    def uses(self) -> list[Drawing]:
        """Draw what the release is used for, from the original and from the release."""
        return [self._use(use, rows) for use, rows in by_use(self._evaluation.figures)]

    def matrices(self, pair: Pair) -> list[Drawing]:
        """Draw correlations before and after, and their change."""
        names, before, after = correlation_matrices(pair)
        if not names:
            return []
        change = after - before
        largest = float(np.abs(change).max())
        i, j = np.unravel_index(int(np.abs(change).argmax()), change.shape)
        told = (
            f"The correlation of {names[i]} and {names[j]} changes most: "
            f"{_signed(before[i, j])} before, {_signed(after[i, j])} after."
        )
        drawn = []
        for title, values, limit, caption in (
            ("Before", before, 1.0, _strongest(names, before)),
            ("After", after, 1.0, _strongest(names, after)),
            ("Change", change, max(0.1, largest), told),
        ):
            chart = heat_map(names, values.tolist(), limit=limit, description=f"{title}. {caption}")
            drawn.append(self._add(chart, title, caption))
        return drawn

    def _gains(self) -> list[Drawing]:
        """Draw what attacks gain over their control, with intervals."""
        figures = [f for f in self._evaluation.figures if f.measure in GAINS][:MOST]
        samples = [f.sample for f in figures]
        if not figures or not all(samples):
            return []
        about = [f", {self._labels.name(f.attribute)}" if f.attribute else "" for f in figures]
        names = [f"{label_of(f)}{of}" for f, of in zip(figures, about, strict=True)]
        low, high = ([getattr(s, end) or 0.0 for s in samples] for end in ("low", "high"))
        caption = (
            "Share of what was left to find that attacks find of people in a release, over what "
            "they find of people outside it. Bars are 95% intervals, which hold at once."
        )
        values = [f.value for f in figures]
        chart = spans(names, low, values, high, title="gain over control", description=caption)
        return [self._add(chart, "Gains over the control", caption)]

    def overviews(self, pair: Pair) -> list[Drawing]:
        """Draw errors, cluster widths and what can be learnt, as far as they are known."""
        return [*self._errors(), *self._gains(), *self._widths(pair), *self._learning()]

    def _add(
        self,
        chart: "alt.LayerChart",
        title: str,
        caption: str,
        rows: BeforeAndAfter = (),
    ) -> Drawing:
        self.charts.append(chart)
        return Drawing(len(self.charts) - 1, title, caption, rows)

    def _use(self, use: str, found: list[UseRow]) -> Drawing:
        groups = tuple(row.group for row in found)
        labelled = _apart(tuple(self._labels.group(use, group) for group in groups), groups)
        rows = [row._replace(group=told) for row, told in zip(found, labelled, strict=True)]
        caption = f"{described(use, rows)}{self._labels.legend(use)}"
        table = tuple(
            (row.group or "all records", number(row.original), _or_none(row.released))
            for row in rows
        )
        return self._add(use_chart(use, rows), use, caption, table)

    def _distribution(self, shape: Shape) -> Drawing:
        shares, rows = shape
        caption, title = self._caption(shares), self._labels.name(shares.name)
        if not shares.before:
            return Drawing(None, title, caption or "Nothing to draw.", rows)
        values = tuple(self._labels.value(shares.name, label) for label in shares.labels)
        shares = replace(shares, labels=_apart(values, shares.labels))
        told = f"{title} before and after. {caption} " + " ".join(
            f"{what.capitalize()}: {before} before, {after} after." for what, before, after in rows
        )
        return self._add(distribution(shares, description=told), title, caption, rows)

    def _caption(self, shares: Shares) -> str:
        readings = [
            reading(f)
            for f in self._evaluation.figures
            if f.attribute == shares.name and f.measure in _CAPTIONED
        ]
        text = "; ".join(readings)
        text = f"{text[:1].upper()}{text[1:]}." if text else ""
        return f"{text} {shares.note}".strip()

    def _errors(self) -> list[Drawing]:
        figures = [f for f in self._evaluation.figures if f.measure == "utility.sse_sst"]
        if not figures:
            return []
        names = [self._labels.name(str(f.attribute)) for f in figures]
        errors = [float(np.sqrt(f.value)) for f in figures]
        most = int(np.argmax(errors))
        caption = (
            f"Root mean square error of masked values. It is largest for {names[most]}: "
            f"{deviations(errors[most])}."
        )
        chart = amounts(names, errors, title="standard deviations", description=caption)
        return [self._add(chart, "Error of each attribute", caption)]

    def _widths(self, pair: Pair) -> list[Drawing]:
        known = widths(pair)
        if known.is_empty():
            return []
        narrowest = known.sort("median").row(0)
        caption = (
            "How closely an attacker who knows all other records learns a value. Bars show the "
            "middle 80% of records, marks the median. The smallest median is that of "
            f"{narrowest[0]}: {deviations(narrowest[2])}. Clusters below {NARROW} are "
            "narrow."
        )
        columns = (known[column].to_list() for column in known.columns)
        chart = spans(*columns, title="standard deviations", description=caption)
        return [self._add(chart, "Width of clusters", caption)]

    def _learning(self) -> list[Drawing]:
        learnt = {
            measure: {
                f.attribute or "": f.value for f in self._evaluation.figures if f.measure == measure
            }
            for measure in _TRAINED
        }
        classes = [c for c in learnt[_TRAINED[0]] if c in learnt[_TRAINED[1]]]
        if not classes:
            return []
        before, after = ([learnt[measure][c] for c in classes] for measure in _TRAINED)
        caption = (
            "F-measure of a model on original records that it has not seen; 1 is perfect. The mean "
            f"over classes is {np.mean(before):.2f} when trained on the original and "
            f"{np.mean(after):.2f} when trained on the release."
        )
        chart = bars(
            classes, before, after, title="F-measure", description=caption, format=".1f",
            series=("original", "release"),
        )  # fmt: skip
        return [self._add(chart, "Learning", caption)]


def _apart(labels: tuple[str, ...], codes: tuple[str, ...]) -> tuple[str, ...]:
    """Keep values apart that have one label."""
    return tuple(
        f"{label} ({code})" if labels.count(label) > 1 else label
        for label, code in zip(labels, codes, strict=True)
    )


def _strongest(names: tuple[str, ...], values: "np.typing.NDArray[np.float64]") -> str:
    apart = np.abs(values - np.diag(np.diag(values)))
    i, j = np.unravel_index(int(apart.argmax()), apart.shape)
    return (
        f"The strongest correlation is between {names[i]} and {names[j]}: {_signed(values[i, j])}."
    )


def _or_none(released: float | None) -> str:
    return "too few" if released is None else number(released)


def _signed(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")
