"""Own values: a row that carries several masked values of one person gives the person away.

Exchange moves masked values within a joint cluster. A value that one person alone has there can be
told by its rank, so that an attacker who knows everybody's values sees where a person's own values
went. Strong relations bring some of them back into one row without any memory of the person, so the
control is fresh draws of the model that exchange goes by, fitted to people of other joint clusters.
What is beyond it is memory: whole tuples have survived.
"""

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np

from microveil.attacks.linked import wilson
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, NotComputed, Sample
from microveil.compare.paired_columns import MISSING
from microveil.compare.pairing import Pair
from microveil.core.pooling import JointClusters, block_of, collect_clusters
from microveil.core.random_words import SeededWords, WordSource
from microveil.core.related_exchange import ReadRows, RelatedExchange
from microveil.core.relation_model import RowValues, numbers_in_rows
from microveil.engines.layout import kept_values
from microveil.plan.plan import Plan
from microveil.plan.scenarios import Scenario
from microveil.types import Booleans, Integers, Reals

_ID = "linkage.own_values"
_TRIAL = 2_000  # records that are protected anew
_DEVIATIONS = 3.0  # one in 740 releases is beyond them by chance
_FOLDS = 5
_DRAWS = 3


class OwnColumn(NamedTuple):
    """Everybody's own masked values of an attribute, NaN where unknown, and the released ones.

    `nominal` says that numbers are codes of categories that have no order.
    """

    own: Reals
    released: Reals
    nominal: bool


def own_values_figure(seen: Examined, _: Scenario, asked: Asked) -> Figure | NotComputed | None:
    """Return how often own values surely meet beyond the control; None if none are exchanged.

    Where not everybody can be looked at, on Spark and in large files, some records are protected
    anew by the same plan: whether own values stay together is up to the plan.
    """
    plan = seen.planned
    if len(plan.exchanged) < 2:
        return None
    pair, joint, sample = seen.everyone, seen.joint, None
    if pair is None:
        trial = seen.trial(plan, _TRIAL, np.random.default_rng(asked.seed))
        if trial is None:
            return NotComputed((_ID,), "too_few_to_protect_anew")
        pair, joint = trial.given, trial.joint
        sample = Sample(trial.records, seen.records, anew=1.0)
    groups = _groups(pair, plan.exchanged, joint)
    own = [_went(one.own, one.released, label) for found, label in groups for one in found]
    rate, people = own_values_met(_side_by_side(own, pair))
    if not people:
        return None
    kept = _kept_columns(pair, plan)
    drawn = [_drawn_without(groups, kept, SeededWords(number)) for number in range(_DRAWS)]
    control = float(np.mean([own_values_met(_side_by_side(one, pair))[0] for one in drawn]))
    least = wilson(rate, people, _DEVIATIONS)[0]  # of few people chance alone reunites some
    gain = max(0.0, (least - control) / (1 - control)) if control < 1 else 0.0
    sizes = [group.anonymity or plan.anonymity for group in plan.pooled_groups
             if group.pooling == "exchange"]  # fmt: skip
    facts = {"rate": rate, "control": control, "eligible": people, "block": block_of(min(sizes))}
    return Figure(_ID, None, gain, facts, sample)


def own_values_met(rows: Integers) -> tuple[float, int]:
    """Return how often own values meet in a row, and how many people have several.

    Parameters
    ----------
    rows
        People × attributes: the row that a person's own value went to; −1 where it is not theirs
        alone.

    Examples
    --------
    >>> own_values_met(np.array([[0, 0], [1, 0], [2, -1]]))
    (0.5, 2)
    """
    several = (rows >= 0).sum(axis=1) > 1
    if not several.any():
        return 0.0, 0
    ordered = np.sort(rows[several], axis=1)
    met = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return float(met.mean()), int(several.sum())


def _side_by_side(columns: Sequence[Integers], pair: Pair) -> Integers:
    empty = np.zeros((len(pair.released), 0), dtype=np.int64)
    return np.column_stack([empty, *columns])


def _groups(
    pair: Pair, exchanged: Set[str], joint: Mapping[str, Integers]
) -> list[tuple[list[OwnColumn], Integers]]:
    """Return the columns that are exchanged in the same joint clusters, and these."""
    columns = _columns(pair)
    found = [
        ([columns[n] for n in names.split(", ") if n in columns and n in exchanged], label)
        for names, label in joint.items()
    ]
    return [(own, label) for own, label in found if own]


def _columns(pair: Pair) -> dict[str, OwnColumn]:
    """Give for each attribute everybody's own masked value, told by its rank, and the released.

    Exchange does not change which masked values there are, and masked values rise with the
    original ones, but for noise where they are not put in order.
    """
    found = {
        name: OwnColumn(_by_rank(values, released), released, nominal=False)
        for name, values, released in zip(
            pair.numeric, pair.matched.T, pair.released.T, strict=True
        )
    }
    for attribute in pair.categorical:
        own, released = (
            np.where(codes == MISSING, np.nan, codes.astype(np.float64))
            for codes in (attribute.original[pair.positions], attribute.released)
        )
        found[attribute.name] = OwnColumn(own, released, nominal=True)
    return found


def _by_rank(values: Reals, released: Reals) -> Reals:
    own = np.full(len(values), np.nan)
    present = np.flatnonzero(~np.isnan(values))
    order = present[np.argsort(values[present], kind="stable")]
    masked = np.sort(released[~np.isnan(released)])
    if len(masked) == len(order):
        own[order] = masked
    return own


def _kept_columns(pair: Pair, plan: Plan) -> list[RowValues]:
    """Return the kept columns that take part in the model."""
    names = [n for n in plan.kept if n not in plan.within and n in pair.source.columns]
    assert pair.positions is not None  # noqa: S101 - all records are paired
    return [kept_values(pair.source[name][pair.positions], name) for name in names]


def _drawn_without(
    groups: Sequence[tuple[list[OwnColumn], Integers]],
    kept: Sequence[RowValues],
    words: WordSource,
) -> list[Integers]:
    """Exchange everybody's values by models of others; return to which rows own ones went."""
    found = []
    for columns, label in groups:
        own = [_row_values(one) for one in columns]
        drawn = [np.full(len(label), np.nan) for _ in columns]
        block = block_of(int(np.bincount(label).min()))
        for rows, model in _folds(label, own, kept, block, words):
            read = [values.take(rows) for values in own]
            for place, giver in model.draw(_reading(kept, rows), _reading(read), words):
                drawn[place][rows] = columns[place].own[rows][giver]
        found += [_went(one.own, new, label) for one, new in zip(columns, drawn, strict=True)]
    return found


def _row_values(column: OwnColumn) -> RowValues:
    if not column.nominal:
        return numbers_in_rows(column.own)
    missing = np.isnan(column.own)
    last = int(np.nanmax(column.own)) + 1 if not missing.all() else 0
    return RowValues(None, np.where(missing, last, column.own).astype(np.int64))


def _folds(
    label: Integers, own: Sequence[RowValues], kept: Sequence[RowValues], block: int,
    words: WordSource,
) -> list[tuple[Integers, RelatedExchange]]:  # fmt: skip
    """Part joint clusters into folds; return the rows of each, and a model of all others'."""
    clusters = int(label.max()) + 1
    fold = np.argsort(words.words(clusters), kind="stable") % _FOLDS
    found = []
    for number in range(_FOLDS):
        there, others = (np.flatnonzero(mask) for mask in (
            fold[label] == number, fold[label] != number,
        ))  # fmt: skip
        if not len(there) or not len(others):
            continue
        fitted = RelatedExchange.fit(
            _clusters_of(label[others]), _reading(kept, others), _reading(own, others), block,
            words, share=len(others) / len(label),
        )  # fmt: skip
        found.append((there, fitted.elsewhere(_clusters_of(label[there]))))
    return found


def _clusters_of(label: Integers) -> JointClusters:
    return collect_clusters(np.unique(label, return_inverse=True)[1].astype(np.int64))


def _reading(values: Sequence[RowValues], rows: Integers | None = None) -> list[ReadRows]:
    taken = [one if rows is None else one.take(rows) for one in values]
    return [lambda one=one: one for one in taken]  # type: ignore[misc]


def _went(own: Reals, released: Reals, label: Integers) -> Integers:
    """Return to which row everybody's own value went, where nobody else in the cluster has it."""
    values = np.unique(np.concatenate([own, released]), return_inverse=True)[1]
    codes, there = values[: len(own)], values[len(own) :]
    width = int(values.max()) + 1
    mine, held = label * width + codes, label * width + there
    place, counts = np.unique(held, return_counts=True)
    at = np.minimum(np.searchsorted(place, mine), len(place) - 1)
    row_of = np.empty(len(place), dtype=np.int64)
    row_of[np.searchsorted(place, held)] = np.arange(len(held))
    alone: Booleans = (place[at] == mine) & (counts[at] == 1) & ~np.isnan(own)
    return np.where(alone, row_of[at], -1)
