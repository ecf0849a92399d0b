"""Attack our own releases and their mechanism, and say what an attacker can really tell."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from microveil.core.mask import publish_centroids
from microveil.core.noise import open_words
from microveil.errors import DataError, PlanError
from microveil.formats import load_table
from microveil.lab.audit.as_run import AsRun, judge, open_neighbour, tell_apart
from microveil.lab.audit.category_targets import CategoryMechanism, CategoryTarget, mask_counts
from microveil.lab.audit.checks import Check, look
from microveil.lab.audit.fixed_scales import Finding, findings_of, plan_attacks, sample
from microveil.lab.audit.line import Line, never_shown, open_engine
from microveil.lab.audit.number_targets import Mechanism, NumericTarget
from microveil.lab.audit.released import Narrowed, Pinned, narrowed, pinned
from microveil.lab.audit.targets import AnyTarget, open_targets
from microveil.plan.plan import Plan
from microveil.release.choose_k import resolve_and_choose
from microveil.shown import Shown
from microveil.types import Progress

__all__ = ["AsRun", "Audit", "Check", "Finding", "audit"]

ALARM = 0.05
"""The probability, at most, that an audit calls broken what is as it should be."""

_FEWEST_RUNS = 100
_FEWEST_RELEASES = 20


@dataclass(frozen=True, repr=False)
class Audit(Shown):
    """The outcome of an audit. It is a function of the data: private.

    An audit of what is as it should be calls it broken with probability 5% at most, as far as the
    large-sample p-values of its checks hold: half for all lower bounds together, half for all
    checks.

    Attributes
    ----------
    runs, releases
        How often the mechanism ran on each table, and how often the whole line.
    findings
        What attacks on the mechanism found, with noise scales fixed.
    as_run
        What attacks on releases of the table and of a neighbour found, noise scales recomputed.
    checks
        What releases were searched for.
    off_grid
        Attributes published with bits below the noise grid.
    doubt
        The probability, at most, that a lower bound is too high; of all together half of 5%.
    released, narrowed
        What the informed adversary learns of numbers and of categories.
    pooled
        Attributes whose masked values the plan pools, which were attacked before that.
    """

    runs: int
    releases: int
    findings: tuple[Finding, ...]
    as_run: tuple[AsRun, ...]
    checks: tuple[Check, ...]
    off_grid: tuple[str, ...]
    doubt: float
    released: tuple[Pinned, ...] = ()
    narrowed: tuple[Narrowed, ...] = ()
    pooled: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether more was found than is claimed, or anything that releases must not show."""
        found = [one.broken for part in (self.findings, self.as_run, self.checks) for one in part]
        return bool(self.off_grid) or any(found)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per attack on the mechanism."""
        return pl.DataFrame([asdict(f) | {"broken": f.broken} for f in self.findings])

    @property
    def reading(self) -> str:
        """Return the outcome in a paragraph for people."""
        from microveil.lab.audit.audit_words import in_words

        return in_words(self)


def audit(
    data: Any,  # noqa: ANN401 - a table of the user's kind
    plan: Plan,
    *,
    runs: int = 10_000,
    releases: int | None = None,
    seconds: float | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    mechanism: Mechanism = publish_centroids,
    category_mechanism: CategoryMechanism = mask_counts,
) -> Audit:
    """Attack what `protect` does with this table, and bound its loss from below.

    **The whole line** releases the table many times, and also a neighbour: the one that releases
    should tell apart best, with clusters and noise scales computed anew from it. The loss found is
    that *as run*. DP and DP-UM claim to bound it; iDP does not, since its scales follow the data.
    The releases are also compared with draws from what they should be, by arithmetic of its own,
    and searched for noise that is missing, too small, repeated or shared, and for fewer than k
    records alike.

    **The mechanism** runs many more times on the clusters of the table and of neighbours: the
    worst one that the exact probabilities tell of, and random ones. Noise scales, and which
    clusters of categories are released as they are, are fixed as computed from the table:
    individual differential privacy counts them as part of the mechanism. Where the data decided
    where clusters begin and end, only fixed clusters are attacked: nothing is claimed of others.

    Masked values are attacked before they are pooled, which shows an adversary more: with joint
    clusters fixed, pooling is a random function of masked values.

    An event that tells two tables apart is chosen on one half of the runs, or on draws from what
    releases should be, and its probabilities are bounded on the other half, or on the releases.

    A second adversary, who knows all records but one, looks at one table of masked values.

    Parameters
    ----------
    data
        As for `protect`.
    plan
        As for `protect`.
    runs
        How often the mechanism runs on each table. More runs bring the bound nearer to the truth.
    releases
        How often the whole line runs on the table and on its neighbour. By default once for every
        25 runs, but from 20 to 400 times.
    seconds
        Stop after about so many seconds with what was done by then.
    seed
        For experiments: repeatable noise, also of the releases. Without one these take their noise
        from the operating system, as `protect` does.
    progress
        Called after every release and every batch of runs.
    mechanism
        What is attacked, from cluster summaries to published values.
    category_mechanism
        The same for categories, from counts to numbers of categories.

    Examples
    --------
    >>> from microveil.plan.sample import people, people_plan
    >>> outcome = audit(people(100), people_plan(), runs=200, releases=20, seed=1)
    >>> outcome.broken
    False
    """
    if releases is None:
        releases = min(max(runs // 25, _FEWEST_RELEASES), 400)
    if runs < _FEWEST_RUNS or releases < _FEWEST_RELEASES:
        raise DataError(
            f"an audit needs at least {_FEWEST_RUNS} runs and {_FEWEST_RELEASES} releases, "
            f"got {runs} and {releases}"
        )
    for setting in ("unit", "within"):
        if getattr(plan, setting):
            raise PlanError(
                "the audit attacks one record among all of a table, and not units and strata; "
                "audit the plan without them on one record of each unit, or on one stratum",
                setting=setting,
            )
    started, random = time.monotonic(), np.random.default_rng(seed)
    pooled = tuple(name for group in plan.pooled_groups for name in group.attributes)
    plan = plan.replace(anonymity=0, groups=(), together=())
    table = load_table(data, **plan.reading)
    engine = open_engine(table)
    targets = open_targets(engine, resolve_and_choose(plan, engine), mechanism, category_mechanism)
    here = Line(table, plan, targets)
    there = open_neighbour(here)
    lines = [here] if there is None else [here, there]
    shared = None if seconds is None else started + seconds / 2
    released = _release(lines, releases, shared, seed, random, progress)
    attacks = plan_attacks(targets, random)
    until = None if seconds is None else started + seconds
    done, off_grid = sample(attacks, runs, until, seed, progress)
    told = {} if there is None else tell_apart(here, there, random)
    doubt = ALARM / 2 / (len(attacks) + len(told) + 1)
    seen = [tuple(line.seen().values()) for line in lines]
    pinned_down, left = _look_at_release(targets, seed)
    return Audit(
        runs=done,
        releases=released,
        findings=findings_of(attacks, plan.records_per_person, doubt),
        as_run=judge(told, targets, plan, doubt),
        checks=(*look(seen, ALARM / 2, random), *never_shown(lines)),
        off_grid=tuple(sorted(off_grid.union(*(line.off_grid for line in lines)))),
        released=pinned_down,
        narrowed=left,
        doubt=doubt,
        pooled=pooled,
    )


def _release(
    lines: Sequence[Line],
    releases: int,
    until: float | None,
    seed: int | None,
    random: np.random.Generator,
    progress: Progress | None,
) -> int:
    """Release every table until the releases are done or the time is up."""
    done = 0
    while done < releases and (done < _FEWEST_RELEASES or not until or time.monotonic() < until):
        for number, line in enumerate(lines):
            line.observe(_seed_of(seed, number, done), random)
        done += 1
        if progress:
            progress("releasing", done, releases)
    return done


def _seed_of(seed: int | None, table: int, number: int) -> int | None:
    """Return a seed of its own for every release, where they are to be repeatable."""
    return (
        None if seed is None else int(np.random.default_rng([seed, table, number]).integers(2**62))
    )


def _look_at_release(
    targets: Sequence[AnyTarget], seed: int | None
) -> tuple[tuple[Pinned, ...], tuple[Narrowed, ...]]:
    """Let the informed adversary look at one release of what is clustered."""
    clustered = [t for t in targets if t.clustered]
    words = partial(open_words, seed, "as released")
    return (
        tuple(pinned(t, t.release(words())) for t in clustered if isinstance(t, NumericTarget)),
        tuple(narrowed(t, t.release(words())) for t in clustered if isinstance(t, CategoryTarget)),
    )
