"""Attack our own releases and their mechanism, and measure what an attacker can really tell."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from microveil.core.mask import publish_centroids
from microveil.core.random_words import open_words
from microveil.errors import DataError, PlanError
from microveil.formats import load_table
from microveil.lab.audit.as_run import losses_as_run, open_neighbour, tell_apart
from microveil.lab.audit.audit_result import Audit
from microveil.lab.audit.category_targets import CategoryMechanism, CategoryTarget, mask_counts
from microveil.lab.audit.checks import check_releases
from microveil.lab.audit.fixed_scales import findings_of, plan_attacks, sample
from microveil.lab.audit.line import ReleaseLine, never_shown, open_read
from microveil.lab.audit.number_targets import Mechanism, NumericTarget
from microveil.lab.audit.released import Narrowed, Pinned, narrowed, pinned
from microveil.lab.audit.targets import AnyTarget, open_targets
from microveil.plan.plan import Plan
from microveil.plan.synthetic_checks import require_masked
from microveil.release.choose_k import resolve_and_choose
from microveil.types import Progress

__all__ = ["Audit", "audit"]

ALARM = 0.05
"""The largest probability of a false alarm."""

_FEWEST_RUNS = 100
_FEWEST_RELEASES = 20


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

    **Whole releases.** The table is released many times, and so is the neighbour that releases
    should tell apart best, with clusters and noise scales recomputed from it. The loss found is
    the loss *as run*. DP and DP-UM bound it; iDP does not, since its scales follow the data. The
    releases are also compared with independent draws from what they should be, and searched for
    noise that is missing, too small, repeated or shared, and for masked values shared by fewer than
    k records.

    **The mechanism** runs many more times on the clusters of the table and of its neighbours: the
    worst one by the exact probabilities, and random ones. Noise scales, and the choice of category
    clusters that are released as they are, stay fixed as computed from the table: individual
    differential privacy counts them as part of the mechanism. Where the data decide cluster
    boundaries, only fixed clusters are attacked, because nothing is claimed otherwise.

    Masked values are attacked before pooling, which shows an attacker more: with fixed joint
    clusters, pooling is a random function of masked values.

    An event that tells two tables apart is chosen on one half of the runs, or on draws from what
    releases should be; its probabilities are bounded on the other half, or on the releases.

    A second attacker, who knows all records but one, sees one table of masked values.

    Synthetic releases are audited by `replay`.

    Parameters
    ----------
    data
        As for `protect`.
    plan
        As for `protect`.
    runs
        Number of runs of the mechanism on each table. More runs give a tighter bound.
    releases
        Number of releases of the table and of its neighbour. By default one for every 25 runs, but
        at least 20 and at most 400.
    seconds
        Stop after about this many seconds and report what was done by then.
    seed
        Makes the noise repeatable, for experiments. Without a seed, noise comes from the operating
        system, as in `protect`.
    progress
        Called after every release and every batch of runs.
    mechanism
        The function under attack, from cluster summaries to published values.
    category_mechanism
        The same for categories, from counts to category codes.

    Examples
    --------
    >>> from microveil.plan.sample import people, people_plan
    >>> outcome = audit(people(100), people_plan(), runs=200, releases=20, seed=1)
    >>> outcome.broken
    False
    """
    require_masked(plan, "audit")
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
                "the audit attacks single records, not units or strata; audit the plan without "
                "this setting, on one record of each unit or on one stratum",
                setting=setting,
            )
    started, random = time.monotonic(), np.random.default_rng(seed)
    pooled = tuple(name for group in plan.pooled_groups for name in group.attributes)
    plan = plan.replace(anonymity=0, groups=())
    table = load_table(data, **plan.reading)
    opened = open_read(table)
    targets = open_targets(opened, resolve_and_choose(plan, opened), mechanism, category_mechanism)
    here = ReleaseLine(table, plan, targets)
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
        as_run=losses_as_run(told, targets, plan, doubt),
        checks=(*check_releases(seen, ALARM / 2, random), *never_shown(lines)),
        off_grid=tuple(sorted(off_grid.union(*(line.off_grid for line in lines)))),
        released=pinned_down,
        narrowed=left,
        doubt=doubt,
        pooled=pooled,
    )


def _release(
    lines: Sequence[ReleaseLine],
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
    """Show one release of what is clustered to the informed attacker."""
    clustered = [t for t in targets if t.clustered]
    words = partial(open_words, seed, "as released")
    return (
        tuple(pinned(t, t.release(words())) for t in clustered if isinstance(t, NumericTarget)),
        tuple(narrowed(t, t.release(words())) for t in clustered if isinstance(t, CategoryTarget)),
    )
