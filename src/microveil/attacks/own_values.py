"""Own values: a row that carries several masked values of one person gives the person away.

Exchange moves masked values within a joint cluster. A value that one person alone has there can be
told by its rank, so that an attacker who knows everybody's values sees where a person's own values
went. If they meet in one row more often than independent exchange puts them there, whole tuples
have survived. The control is exact: t own values that fall independently on m rows meet with the
chance 1 − (1 − 1/m)(1 − 2/m)…(1 − (t − 1)/m).
"""

from collections.abc import Iterator, Mapping

import numpy as np

from microveil.attacks.linked import wilson
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, NotComputed, Sample
from microveil.compare.paired_columns import MISSING
from microveil.compare.pairing import Pair
from microveil.plan.scenarios import Scenario
from microveil.types import Booleans, Integers, Reals

_ID = "linkage.own_values"
_TRIAL = 2_000  # records that are protected anew
_DEVIATIONS = 3.0  # one in 740 releases is beyond them by chance


def own_values_figure(seen: Examined, _: Scenario, asked: Asked) -> Figure | NotComputed | None:
    """Return how often own values surely meet beyond the control; None if none are exchanged.

    Where not everybody can be looked at, on Spark and in large files, some records are protected
    anew by the same plan: whether own values stay together is up to the plan.
    """
    plan = seen.planned
    exchanged = {
        name for group in plan.pooled_groups if group.pooling == "exchange"
        for name in group.attributes
    }  # fmt: skip
    if len(exchanged) < 2:
        return None
    pair, joint, sample = seen.everyone, seen.joint, None
    if pair is None:
        trial = seen.trial(plan, _TRIAL, np.random.default_rng(asked.seed))
        if trial is None:
            return NotComputed((_ID,), "too_few_to_protect_anew")
        pair, joint = trial.given, trial.joint
        sample = Sample(trial.records, seen.records, anew=1.0)
    rows, among = _where_own_values_went(pair, exchanged, joint)
    rate, control, people = own_values_met(rows, among)
    if not people:
        return None
    least = wilson(rate, people, _DEVIATIONS)[0]  # of few people chance alone reunites some
    gain = max(0.0, (least - control) / (1 - control)) if control < 1 else 0.0
    facts = {"rate": rate, "control": control, "eligible": people}
    return Figure(_ID, None, gain, facts, sample)


def own_values_met(rows: Integers, among: Integers) -> tuple[float, float, int]:
    """Return how often own values meet in a row, the control, and how many people have several.

    Parameters
    ----------
    rows
        People × attributes: the row that a person's own value went to; −1 where it is not theirs
        alone.
    among
        People × attributes: how many rows it could have gone to.

    Examples
    --------
    >>> rows, among = np.array([[0, 0], [1, 0], [2, -1]]), np.full((3, 2), 4)
    >>> own_values_met(rows, among)
    (0.5, 0.25, 2)
    """
    own = rows >= 0
    several = own.sum(axis=1) > 1
    if not several.any():
        return 0.0, 0.0, 0
    ordered = np.sort(rows[several], axis=1)
    met = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    most = np.where(own, among, 0)[several].max(axis=1)
    apart, number = np.ones(len(most)), own[several].sum(axis=1)
    for taken in range(1, int(number.max())):
        apart *= np.where(number > taken, np.maximum(0.0, 1 - taken / most), 1.0)
    return float(met.mean()), float(1 - apart.mean()), int(several.sum())


def _where_own_values_went(
    pair: Pair, exchanged: set[str], joint: Mapping[str, Integers]
) -> tuple[Integers, Integers]:
    columns = [
        _went(own, released, labels)
        for name, own, released in _columns(pair)
        for names, labels in joint.items()
        if name in exchanged and name in names.split(", ")
    ]
    rows, among = zip(*columns, strict=True) if columns else ((), ())
    empty = np.zeros((len(pair.released), 0), dtype=np.int64)
    return np.column_stack([empty, *rows]), np.column_stack([empty, *among])


def _columns(pair: Pair) -> Iterator[tuple[str, Reals, Reals]]:
    """Give for each attribute everybody's own masked value, told by its rank, and the released.

    Exchange does not change which masked values there are, and masked values rise with the
    original ones, but for noise where they are not put in order.
    """
    for name, values, released in zip(pair.numeric, pair.matched.T, pair.released.T, strict=True):
        yield name, _by_rank(values, released), released
    for attribute in pair.categorical:
        codes = attribute.original[pair.positions]
        yield attribute.name, codes.astype(np.float64), attribute.released.astype(np.float64)


def _by_rank(values: Reals, released: Reals) -> Reals:
    own = np.full(len(values), np.nan)
    present = np.flatnonzero(~np.isnan(values))
    order = present[np.argsort(values[present], kind="stable")]
    masked = np.sort(released[~np.isnan(released)])
    if len(masked) == len(order):
        own[order] = masked
    return own


def _went(own: Reals, released: Reals, label: Integers) -> tuple[Integers, Integers]:
    """Return to which row everybody's own value went, where nobody else in the cluster has it."""
    sizes = np.bincount(label)[label]
    values = np.unique(np.concatenate([own, released]), return_inverse=True)[1]
    codes, there = values[: len(own)], values[len(own) :]
    width = int(values.max()) + 1
    mine, held = label * width + codes, label * width + there
    place, counts = np.unique(held, return_counts=True)
    at = np.minimum(np.searchsorted(place, mine), len(place) - 1)
    row_of = np.empty(len(place), dtype=np.int64)
    row_of[np.searchsorted(place, held)] = np.arange(len(held))
    alone = (place[at] == mine) & (counts[at] == 1) & _present(own)
    return np.where(alone, row_of[at], -1), sizes


def _present(own: Reals) -> Booleans:
    present: Booleans = ~np.isnan(own) & (own != MISSING)
    return present
