"""Measures of a release that is too large to be looked at as a whole.

Some records are drawn at random: what they were beside what they are. Figures of utility are those
of the drawn records. People are looked for among *all* released records, never among the drawn
ones alone: without their rivals they would be found far too often. What is shared with others is
counted in all records too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from microveil.attacks.known import proved
from microveil.attacks.linkage import Linked
from microveil.attacks.risk_figures import cluster_figures, disclosure_figures, linkage_figure
from microveil.compare.figures import LINKAGE, Figure, Items, NotComputed
from microveil.compare.pairing import Pair
from microveil.engines.beside import Beside
from microveil.engines.classes import Classes
from microveil.errors import DataError
from microveil.judge.glance import ONE_TO_ONE, Glance
from microveil.judge.verdict import by_structure
from microveil.measures.category_figures import category_figures, unchanged_figures
from microveil.measures.distances import Scale
from microveil.measures.distributions_and_errors import (
    distribution_figures,
    error_figures,
    propensity_figures,
)
from microveil.measures.rule_figures import rule_figures
from microveil.measures.unit_figures import stratum_figures, unit_figures
from microveil.plan.scenarios import Scenario

SAMPLED = 100_000
"""Records that are drawn from a table that is too large to be looked at as a whole."""

_NO_PLAN = (
    "in tables of this size people can be looked for only by the plan of the release; give its "
    "private detail (--detail FILE, detail=)"
)
_OF_ALL = "utility.pmse_ratio", "utility.interval_overlap"
_NOT_OF_FEWER = "it depends on the number of records, so that of drawn ones would be another"
_GROUPS = 10
_T = 2.262  # Student's t with as many groups less one, for 95%


@dataclass(frozen=True)
class Measured:
    """How values are compared one by one: as `evaluate` was asked to."""

    scale: Scale
    rank_percent: float
    deviations: float

    def figures(self, pair: Pair) -> Items:
        """Measure two tables by their distributions and, if possible, record by record."""
        yield from distribution_figures(pair)
        yield from category_figures(pair)
        yield from propensity_figures(pair)
        yield from unit_figures(pair)
        yield from stratum_figures(pair)
        yield from rule_figures(pair)
        yield from cluster_figures(pair)
        if pair.positions is not None:
            yield from error_figures(pair, self.scale)
            yield from unchanged_figures(pair)
            yield from disclosure_figures(
                pair, rank_percent=self.rank_percent, deviations=self.deviations
            )


def figures_of_sample(
    pair: Pair, measured: Measured, records: int, random: np.random.Generator
) -> Items:
    """Measure drawn records, and say how far off the figures of all records may be.

    The drawn records are parted at random into ten groups that are measured as well: how much the
    groups differ tells how much samples differ (the method of random groups).
    """
    parts = np.array_split(random.permutation(len(pair.released)), _GROUPS)
    groups = [_values(measured.figures(pair.some(np.sort(part)))) for part in parts]
    for item in measured.figures(pair):
        if isinstance(item, NotComputed):
            yield item
            continue
        if item.measure in _OF_ALL:
            yield NotComputed((item.measure,), _NOT_OF_FEWER, item.attribute)
            continue
        of_groups = [group[key] for group in groups if (key := _key(item)) in group]
        if len(set(of_groups)) == 1 == len(set(of_groups) | {item.value}):
            yield item  # it does not depend on what was drawn
        else:
            said = _drawn(item, of_groups, pair, records)
            yield replace(item, reading=f"{item.reading} ({said})")


def _values(items: Items) -> dict[tuple[str, str | None], float]:
    return {_key(item): item.value for item in items if isinstance(item, Figure)}


def _key(figure: Figure) -> tuple[str, str | None]:
    return figure.measure, figure.attribute


def _drawn(figure: Figure, of_groups: Sequence[float], pair: Pair, records: int) -> str:
    drawn = f"from a sample of {len(pair.released):,} of {records:,} records"
    if len(of_groups) < _GROUPS:
        return drawn
    margin = _T * float(np.std(of_groups, ddof=1)) / np.sqrt(_GROUPS)
    least = 0.0 if min(of_groups) >= 0 else -np.inf
    low, high = max(least, figure.value - margin), figure.value + margin
    return f"{drawn}; with 95% confidence {low:.3g} to {high:.3g}"


@dataclass(frozen=True, eq=False)
class Attacks:
    """Attacks on a release of which some people were drawn."""

    look: Glance | None
    sample: int | None
    random: np.random.Generator

    def nearest(self, scenario: Scenario) -> Linked:
        """Link people to the nearest of all released records."""
        assert self.look is not None  # noqa: S101 - what was kept is known from the plan
        return self.look.nearest(scenario, self.sample or self.look.looked_at)

    def figures(self, scenario: Scenario) -> Items:
        """Look for people as three intruders would."""
        if self.look is None:
            yield NotComputed(LINKAGE, _NO_PLAN, scenario_label(scenario))
            return
        bound = proved(self.look.plan, scenario)
        fewer = min(ONE_TO_ONE, self.sample or ONE_TO_ONE)
        for linked in (self.nearest(scenario), self.look.one_to_one(scenario, fewer)):
            yield linkage_figure(linked, scenario, bound)
        found = by_structure(self.look, scenario, self.random)
        if found is None:
            reason = "the plan does not fit the few records it would be tried on"
            yield NotComputed(("linkage.structure",), reason, scenario_label(scenario))
        else:
            yield linkage_figure(found, scenario, bound)


def classes_of(beside: Beside, names: Sequence[str]) -> Classes:
    """Count the released records that share these columns."""
    alone, smallest, records = beside.class_sizes(tuple(names))
    return Classes(alone / records, smallest, records)


def scenario_label(scenario: Scenario) -> str | None:
    """Return what figures of a scenario are about."""
    return None if scenario == Scenario() else scenario.label


def check_target(target: Any) -> str | None:  # noqa: ANN401 - a name, or classes of any kind
    """Refuse classes that are not a column, of which some records cannot be drawn."""
    if target is None or isinstance(target, str):
        return target
    raise DataError(
        "target must be the name of a column where the table is too large to be looked at as a "
        "whole; add the classes to the original as a column"
    )


def notes_on(beside: Beside, drawn: int) -> Iterator[str]:
    """Say what the figures are of."""
    left_out = beside.originals - beside.records
    if left_out:
        yield f"{left_out:,} of {beside.originals:,} original records are not in the release."
    yield (
        f"The tables are too large to be looked at as a whole: {drawn:,} of {beside.records:,} "
        "records were drawn at random. People among them were looked for among all released "
        "records, so that linkage is neither too high nor too low but for chance; one to one, "
        "those drawn are assigned without the others, which may find a little more or less than "
        "assigning everybody. Records that share values are counted in the whole release."
    )
