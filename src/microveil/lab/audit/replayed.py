"""The exact privacy loss of synthetic releases of a table, run by run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from microveil.core.budget import PrivacyBudget, rho_within
from microveil.core.random_words import open_words
from microveil.core.synthesis.cells import AnyCells, Codes
from microveil.core.synthesis.coded_records import CodedRecords
from microveil.core.synthesis.replay import replayed_loss
from microveil.engines.coded_local import codes_of_records
from microveil.errors import DataError, PlanError
from microveil.formats import load_table
from microveil.lab.audit.line import open_read
from microveil.plan.plan import Plan
from microveil.release.synthesise import SyntheticPlan, resolve_synthetic
from microveil.shown import Shown
from microveil.types import Integers, Progress, UserTable

_SUPPORT = 2_000
_ERRORS = 6  # standard errors: a false alarm in one of 10^8 audits
_ROUNDING = 1e-9

Neighbours = tuple[CodedRecords, CodedRecords]


@dataclass(frozen=True, repr=False)
class Replay(Shown):
    """The outcome of an audit of synthetic releases. It is computed from the data: keep it private.

    Attributes
    ----------
    losses
        The privacy loss of each run: the logarithm of how much likelier its noisy counts are with
        one of two neighbours than with the other.
    epsilon, delta
        What the plan promises.
    rho
        The bound on the mean of the losses, and half of that on their variance; None where δ = 0,
        and no loss may exceed ε.
    """

    losses: tuple[float, ...]
    epsilon: float
    delta: float
    rho: float | None

    @property
    def largest(self) -> float:
        """The largest loss, whichever neighbour is likelier."""
        return float(np.abs(self.losses).max())

    @property
    def mean(self) -> float:
        """The mean loss."""
        return float(np.mean(self.losses))

    @property
    def variance(self) -> float:
        """The variance of the loss."""
        return float(np.var(self.losses))

    @property
    def broken(self) -> bool:
        """Whether losses are larger than the plan promises, beyond chance."""
        if self.rho is None:
            return self.largest > self.epsilon * (1 + _ROUNDING)
        runs = len(self.losses)
        highest_mean = self.rho + _ERRORS * sqrt(2 * self.rho / runs)
        highest_variance = (2 * self.rho + self.rho**2) * (1 + _ERRORS * sqrt(2 / runs))
        return self.mean > highest_mean or self.variance > highest_variance

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per run."""
        return pl.DataFrame({"loss": self.losses})


def replay(
    data: UserTable,
    plan: Plan,
    *,
    runs: int = 100,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Replay:
    """Attack synthetic releases of a table: the exact privacy loss of each, on a neighbour.

    A release is made, the same noisy counts are forced on a neighbour, and the logarithms of how
    much likelier each count was are added up: no attacker can do better. Neighbours lack all
    records of a person drawn at random, or have some more, with the rarest or most extreme values.

    Parameters
    ----------
    data
        A table in memory, or the path of a file that fits in memory.
    plan
        A plan with ``release="synthetic"``.
    runs
        Number of releases.
    seed
        Makes the noise repeatable, for experiments.
    progress
        Called after every run.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Confidential, Plan
    >>> age = Confidential(kind="integer", lower=0, upper=99)
    >>> made = {"release": "synthetic", "missing": "drop", "attributes": {"age": age}}
    >>> plan = Plan(epsilon=1, delta=0, **made)
    >>> found = replay(pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]}), plan, runs=5, seed=1)
    >>> found.broken, found.largest <= 1
    (False, True)
    """
    if plan.release != "synthetic":
        raise PlanError(
            'replay is for plans with release = "synthetic"; use audit for this one',
            setting="release",
        )
    table = load_table(data, **plan.reading)
    if plan.unit is not None:
        raise PlanError(
            "the audit replays single records, not units; audit the plan without unit, on one "
            "record of each unit",
            setting="unit",
        )
    opened = open_read(table)
    resolved = resolve_synthetic(plan, opened)
    columns, rows = codes_of_records(opened.source, resolved.attributes, plan.missing == "drop")
    codes = [np.asarray(column)[rows] for column in columns]
    if len(codes[0]) < plan.records_per_person + 1:
        raise DataError("an audit needs more records than one person has")
    random = np.random.default_rng(seed)
    losses = []
    for run, pair in zip(range(runs), _neighbours(codes, resolved, random), strict=False):
        words = open_words(None if seed is None else seed + run, "audit")
        made = _release_of(pair, resolved, int(random.integers(2**31)))
        losses.append(replayed_loss(made, plan.epsilon, plan.delta, words))
        if progress:
            progress("replaying", run + 1, runs)
    rho = None if plan.delta == 0 else float(rho_within(plan.epsilon, plan.delta))
    return Replay(tuple(losses), plan.epsilon, plan.delta, rho)


def _release_of(
    pair: Neighbours, resolved: SyntheticPlan, seed: int
) -> Callable[[PrivacyBudget, int], object]:
    def run(budget: PrivacyBudget, which: int) -> object:
        return resolved.mechanism(budget, seed, support=_SUPPORT).learn(pair[which])

    return run


def _neighbours(
    codes: Sequence[Codes], resolved: SyntheticPlan, random: np.random.Generator
) -> Iterator[Neighbours]:
    """Make pairs of neighbours without end: each kind in turn, and either table first."""
    whole, most = CodedRecords(codes), resolved.plan.records_per_person
    extremes = [
        [np.full(most, place) for place in _extreme(column, one.cells)]
        for column, one in zip(codes, resolved.attributes, strict=True)
    ]
    turn = 0
    while True:
        if turn % 2:
            gone = random.choice(len(codes[0]), most, replace=False)
            other = CodedRecords([np.delete(column, gone) for column in codes])
        else:
            last = [ends[turn // 2 % len(ends)] for ends in extremes]
            other = CodedRecords(
                [np.append(column, more).astype(column.dtype) for column, more in
                 zip(codes, last, strict=True)]
            )  # fmt: skip
        yield (whole, other) if turn // 2 % 2 else (other, whole)
        turn += 1


def _extreme(column: Codes, cells: AnyCells) -> Integers:
    """Return the first and the last cell, and the rarest one."""
    known = cells.cell_of_code
    counts = np.bincount(column, minlength=len(known))
    return np.array([0, len(known) - 1, int(counts.argmin())])
