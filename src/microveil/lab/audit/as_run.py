"""Tell a table from a neighbour by their releases, with everything computed anew from each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from microveil.engines.dtypes import column_like
from microveil.lab.audit.checks import Observed
from microveil.lab.audit.distinguishers import ALL, Samples, halves, lower_bound
from microveil.lab.audit.line import ReleaseLine, most_telling
from microveil.lab.audit.models import CERTAIN, CategoryModel, Model, Published
from microveil.lab.audit.number_targets import NumericTarget
from microveil.lab.audit.target import AuditTarget
from microveil.plan.plan import Plan
from microveil.release.guarantees import level_2_bound
from microveil.types import Reals, UserTable

_DRAWS = 1_000


@dataclass(frozen=True)
class AsRun:
    """How well releases tell a table from a neighbour, by one attribute or all together.

    Attributes
    ----------
    claimed
        What one record may lose as run: the certificate's bound at level 2 under DP and DP-UM. None
        under iDP, which is with noise scales fixed, while these are computed anew from each table.
    epsilon
        What one record may lose by the plan.
    found
        The attack's lower bound of what it loses. Above `claimed` something is broken.
    told_apart
        The share of releases whose table was guessed rightly.
    """

    attribute: str
    claimed: float | None
    epsilon: float
    found: float
    told_apart: float

    @property
    def broken(self) -> bool:
        """Whether more was found than is claimed."""
        return self.claimed is not None and self.found > self.claimed * (1 + 1e-9)

    @property
    def beyond_epsilon(self) -> bool:
        """Whether more than epsilon is lost, which nothing promises to rule out."""
        return self.claimed is None and self.found > self.epsilon

    @property
    def allowed(self) -> float:
        """The largest share of right guesses that a loss of epsilon allows."""
        return float(1 / (1 + np.exp(-self.epsilon)))


def is_attacked(target: AuditTarget[Any]) -> bool:
    """Whether releases of a table and of a neighbour can be compared by this attribute.

    Numbers always can. Categories can where there are as many clusters on every neighbour.
    """
    return isinstance(target, NumericTarget) or not target.settings.chosen_from_data


def open_neighbour(here: ReleaseLine) -> ReleaseLine | None:
    """Open the neighbour that releases tell apart best; None where nothing is attacked."""
    targets = [target for target in here.targets if is_attacked(target)]
    if not targets:
        return None
    record, values = _telling_change(targets)
    positions = here.release(seed=0).detail.positions
    assert positions is not None  # noqa: S101 - they are known in memory
    there = here.of_neighbour(_change(here.table.data, int(positions[record]), values))
    for one, other in zip(here.targets, there.targets, strict=True):
        if not is_attacked(one):
            continue
        if one.settings.chosen_from_data:
            here.compare_with(there, one.settings.name)
            there.compare_with(here, one.settings.name)
        elif _comparable(one.own_model, other.own_model):
            name, telling = one.settings.name, one.own_model.divergence(other.own_model)
            both = np.intersect1d(here.readers[name].clusters, there.readers[name].clusters)
            here.watched[name] = there.watched[name] = most_telling(both, telling)
    return there


def _telling_change(targets: Sequence[AuditTarget[Any]]) -> tuple[int, dict[str, Any]]:
    """Return the record, and its new values, whose change tells most with scales computed anew.

    Tried are the records that tell most of some attribute, and for each the most telling values.
    """
    best, record, values = -1.0, 0, dict[str, Any]()
    for candidate in dict.fromkeys(r for t in targets for r in t.telling_records(fixed=False)):
        changed = [target for target in targets if target.position(candidate) is not None]
        changes = {target.settings.name: _most_telling(target, candidate) for target in changed}
        total = sum(telling for telling, _ in changes.values())
        if total > best:
            best, record = total, candidate
            values = {name: value for name, (_, value) in changes.items()}
    return record, values


def _most_telling(target: AuditTarget[Any], record: int) -> tuple[float, Any]:
    """Return how well the most telling value of a record tells, and the value itself."""
    told = [(_telling(target, record, units), value) for units, value in target.new_values]
    return max(told, key=lambda one: one[0])


def _telling(target: AuditTarget[Any], record: int, steps: int) -> float:
    """Return how well a new value of a record tells; as well as can be where clusters move."""
    if target.settings.chosen_from_data:
        there = target.with_value(record, steps)
        if not np.array_equal(there.sizes, target.sizes):
            return CERTAIN
        model = there.own_model
    else:
        model = target.model(target.changed(record, steps, fixed=False))
    return float(target.own_model.divergence(model).sum())


def _change(data: UserTable, row: int, values: dict[str, Any]) -> UserTable:
    """Return the table with other values in one row."""
    frame = nw.from_native(data, eager_only=True)
    changed = frame[row : row + 1]
    changed = changed.with_columns(
        *(column_like(changed[name], pl.Series([value])) for name, value in values.items())
    )
    return nw.concat([frame[:row], changed, frame[row + 1 :]]).to_native()


@dataclass(frozen=True, eq=False)
class Told:
    """How much likelier releases are of the first table than of the second: logarithms.

    `expected` are those of draws from what both should publish, on which the attack is chosen; None
    where the data decide on clusters, so that it is chosen on one half of the releases.
    """

    expected: Samples | None
    seen: Samples


def tell_apart(
    here: ReleaseLine, there: ReleaseLine, random: np.random.Generator
) -> dict[str, Told]:
    """Compare releases of two tables, attribute by attribute.

    What is compared are the masked values of clusters in rank order, not which rows share them:
    that is level 3, and noise does not hide it.
    """
    ours, theirs = here.seen(), there.seen()
    told = {name: Told(None, (ratios, -there.ratios(name))) for name, ratios in here.compared()}
    attacked = {t.settings.name for t in here.targets if is_attacked(t)} - told.keys()
    told |= {
        name: _compare(one, theirs[name], random)
        for name, one in ours.items()
        if name in attacked and name in theirs and _comparable(one.model, theirs[name].model)
    }
    return {t.settings.name: told[t.settings.name] for t in here.targets if t.settings.name in told}


def _comparable(one: Model, other: Model) -> bool:
    """Whether two tables publish the same categories: their list may be read from the data."""
    if isinstance(one, CategoryModel) and isinstance(other, CategoryModel):
        return one.settings.categories == other.settings.categories
    return True


def _compare(one: Observed, other: Observed, random: np.random.Generator) -> Told:
    clusters = one.clusters

    def ratios(published: Published) -> Reals:
        here, there = (s.model.log_likelihood(published, clusters) for s in (one, other))
        totals: Reals = (here - there).sum(axis=1, keepdims=True).T
        return totals

    drawn = [s.model.draw(_DRAWS, clusters, random) for s in (one, other)]
    return Told(
        (ratios(drawn[0]), ratios(drawn[1])), (ratios(one.published), ratios(other.published))
    )


def losses_as_run(
    told: dict[str, Told], targets: Sequence[AuditTarget[Any]], plan: Plan, doubt: float
) -> tuple[AsRun, ...]:
    """Bound the loss of every attribute, and of all together if all are attacked."""
    settings = {t.settings.name: t.settings for t in targets}
    persons = plan.records_per_person
    claims = {
        name: level_2_bound(one) if not one.method.promise.fixes_scales else None
        for name, one in settings.items()
    }

    def bound(attribute: str, names: Sequence[str]) -> AsRun:
        seen = _add_up([told[name].seen for name in names])
        drawn = [e for name in names if (e := told[name].expected) is not None]
        chosen, tried = (_add_up(drawn), seen) if len(drawn) == len(names) else halves(seen)
        known = [claim for name in names if (claim := claims[name]) is not None]
        return AsRun(
            attribute=attribute,
            claimed=sum(known) / persons if len(known) == len(names) else None,
            epsilon=sum(settings[name].epsilon for name in names) / persons,
            found=lower_bound([(chosen, tried)], doubt),
            told_apart=_told_apart(chosen, tried),
        )

    together = [bound(ALL, list(told))] if len(told) == len(targets) else []
    return (*(bound(name, [name]) for name in told), *together)


def _add_up(attributes: Sequence[Samples]) -> Samples:
    """Add up over attributes, which are masked independently."""
    here, there = zip(*attributes, strict=True)
    return np.sum(here, axis=0), np.sum(there, axis=0)


def _told_apart(chosen_on: Samples, tried_on: Samples) -> float:
    """Share of releases whose table is guessed by a threshold that is chosen on other ones."""
    here, there = (np.sort(sample[0]) for sample in chosen_on)
    middle = np.concatenate([here, there, [0.0]])
    right = (len(here) - np.searchsorted(here, middle)) / len(here)
    right += np.searchsorted(there, middle) / len(there)
    best = middle[right == right.max()]
    threshold = best[np.argmin(np.abs(best))]
    return float(np.mean([_right(tried_on[0] - threshold), _right(threshold - tried_on[1])]))


def _right(ratios: Reals) -> float:
    """Share of ratios above 0, of which half where they are 0."""
    return float(np.mean((np.sign(ratios) + 1) / 2))
