"""Which sampling weights may be published: those whose every value ten persons or more share.

Clusters then stay within the records of one weight, so that knowing it does not help to pick a row.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from microveil.core.attribute import CROWD
from microveil.plan.propose.columns import ColumnProfile, Proposal, as_amount, can_weigh
from microveil.plan.propose.crowd import crowd_of
from microveil.plan.settings import RECOMMENDED
from microveil.types import Integers

_FEWEST_IN_A_CLUSTER = 3
_WHY = "sampling weights, each shared by ten persons or more"
_MASKED = "sampling weights, some of few persons"
_REMARK = "masked: published, they would point to people"
_FURTHER = "further sampling weights"


def settle_weights(
    looks: Mapping[str, ColumnProfile], proposals: dict[str, Proposal], persons: Integers
) -> tuple[dict[str, Proposal], tuple[str, ...]]:
    """Publish or mask sampling weights, of which the first is the plan's.

    Parameters
    ----------
    looks, proposals
        Columns, and what was proposed for them one by one.
    persons
        The number of each record's person, or unit.

    Returns
    -------
    :
        The proposals, and those columns that clusters have to stay within.
    """
    weights = [name for name, p in proposals.items() if p.weighs]
    first = next((name for name in weights if can_weigh(looks[name])), None)
    settled, strata = dict(proposals), list[str]()
    for name in weights:
        others = [n for n, p in settled.items() if p.masked]
        stratum = _joint([looks[n] for n in (*strata, name)])
        if _is_shared(stratum, [looks[n] for n in others], persons):
            role = "sampling_weight" if name == first else "kept"
            settled[name] = replace(
                proposals[name], settings={"role": role}, why=_WHY if name == first else _FURTHER
            )
            strata.append(name)
        else:
            settled[name] = _masked(looks[name], plans=name == first)
    return settled, tuple(strata)


def _masked(look: ColumnProfile, *, plans: bool) -> Proposal:
    proposal = as_amount(look)
    weight = {"sampling_weight": True} if plans else {}
    return replace(
        proposal,
        settings=proposal.settings | weight,
        why=_MASKED if plans else _FURTHER,
        remark=_REMARK,
    )


def _joint(looks: Sequence[ColumnProfile]) -> Integers:
    """Return the number of each record's combination of values."""
    frame = pl.DataFrame([look.column.alias(f"{n}") for n, look in enumerate(looks)])
    ranks = frame.select(pl.struct(pl.all()).rank("dense")).to_series()
    return ranks.cast(pl.Int64).to_numpy()


def _is_shared(stratum: Integers, masked: Sequence[ColumnProfile], persons: Integers) -> bool:
    """Whether clusters of persons can stay within the records of equal weights."""
    if len(np.unique(np.stack([stratum, persons]), axis=1)[0]) > len(np.unique(persons)):
        return False  # some person is in two strata
    crowd = max(CROWD, crowd_of(len(np.unique(persons))))
    if min(_persons_in(stratum, persons)) < crowd:
        return False
    least = max(RECOMMENDED["k"], _FEWEST_IN_A_CLUSTER)
    return all(
        min(_persons_in(stratum[there], persons[there]), default=least) >= least
        for there in (look.plain.is_not_null().to_numpy() for look in masked)
    )


def _persons_in(stratum: Integers, persons: Integers) -> Iterator[int]:
    """Count the different persons in each stratum."""
    pairs = np.unique(np.stack([stratum, persons]), axis=1)
    yield from np.unique(pairs[0], return_counts=True)[1].tolist()
