"""Attack our own mechanism, and say what an attacker can really tell."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import polars as pl
from rich.console import Group, RenderableType

from microveil.auditing.attacks import Attack, lower_bound
from microveil.auditing.base import Published, Target
from microveil.auditing.categories import CategoryMechanism, CategoryTarget, mask_counts
from microveil.auditing.numbers import Mechanism, NumericTarget
from microveil.auditing.released import Narrowed, Pinned, narrowed, pinned
from microveil.auditing.targets import (
    AnyTarget,
    Targets,
    neighbour,
    open_targets,
    random_neighbour,
    worst_neighbour,
)
from microveil.core.mask import publish_centroids
from microveil.core.noise import open_words
from microveil.engines.memory import MemoryEngine
from microveil.errors import DataError
from microveil.formats import load
from microveil.plan.plan import Plan
from microveil.release.choose_k import resolve_and_choose
from microveil.release.guarantees import level_1_bound, level_2_bound
from microveil.release.protect import Progress

ALL = "all together"

_VALUES_PER_BATCH = 500_000
_RANDOM_NEIGHBOURS = 2


@dataclass(frozen=True)
class Finding:
    """What an attack found of one attribute, or of all together, at one level.

    Attributes
    ----------
    claimed
        The data-free bound the certificate states, per record; None where it states none.
    exact
        The loss of this very table. For a number it is that of the closed form; for categories,
        and for all attributes together, that of the worst neighbour attacked.
    found
        The attack's lower bound, with 95% confidence. Above `exact` the mechanism is broken.
    """

    attribute: str
    level: Literal[1, 2]
    claimed: float | None
    exact: float
    found: float

    @property
    def broken(self) -> bool:
        """Whether more was found than there should be to find, or is lost than is claimed."""
        claimed = float("inf") if self.claimed is None else self.claimed
        return self.found > self.exact * (1 + 1e-9) or self.exact > claimed * (1 + 1e-9)


@dataclass(frozen=True)
class Audit:
    """The outcome of an audit. It is a function of the data: private.

    `released` and `narrowed` say what the informed adversary learns of numbers and of categories,
    and `joint` of which attributes this was not measured.
    """

    runs: int
    findings: tuple[Finding, ...]
    off_grid: tuple[str, ...]
    released: tuple[Pinned, ...] = ()
    narrowed: tuple[Narrowed, ...] = ()
    joint: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether anything is wrong with the mechanism."""
        return bool(self.off_grid) or any(finding.broken for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per attack."""
        return pl.DataFrame([asdict(f) | {"broken": f.broken} for f in self.findings])

    @property
    def reading(self) -> str:
        """Return the outcome in a paragraph for people."""
        from microveil.auditing.reading import in_words

        return in_words(self)

    def __rich__(self) -> RenderableType:
        from microveil.auditing.reading import tables

        return Group(*tables(self), self.reading)


def audit(
    data: Any,  # noqa: ANN401 - a table of the user's kind
    plan: Plan,
    *,
    runs: int = 10_000,
    seconds: float | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    mechanism: Mechanism = publish_centroids,
    category_mechanism: CategoryMechanism = mask_counts,
) -> Audit:
    """Attack the mechanism on this table and bound its loss from below.

    The mechanism runs many times on the table and on neighbours: the worst one that the exact
    probabilities tell of, and random ones. An event that tells them apart is chosen on one half of
    the runs, and its probabilities are bounded on the other half. Noise scales, and which clusters
    of categories are released as they are, are held as computed from the table: individual
    differential privacy counts them as part of the mechanism. Where the data decided where clusters
    begin and end, as in joint clusters, only clusters held are attacked: nothing is claimed of
    others. A second adversary, who knows all records but one, looks at one released table. Of
    joint clusters that is not measured: a value there is not bounded by those of the clusters
    beside it.

    Parameters
    ----------
    data
        As for `protect`.
    plan
        As for `protect`.
    runs
        How often the mechanism runs on each table. More runs bring the bound nearer to the truth.
    seconds
        Stop after so many seconds with the runs done by then.
    seed
        For experiments: repeatable noise.
    progress
        Called after every batch of runs.
    mechanism
        What is attacked, from cluster summaries to published values.
    category_mechanism
        The same for categories, from counts to numbers of categories.

    Examples
    --------
    >>> from microveil.plan.sample import people, people_plan
    >>> outcome = audit(people(200), people_plan(), runs=200, seed=1)
    >>> outcome.broken
    False
    """
    if runs < 100:
        raise DataError(f"an audit needs at least 100 runs, got {runs}")
    engine = MemoryEngine(load(data, verbatim=plan.verbatim).data)
    resolved = resolve_and_choose(plan, engine)
    targets = open_targets(engine, resolved, mechanism, category_mechanism)
    attacks = _plan_attacks(targets, np.random.default_rng(seed))
    done, off_grid = _sample(attacks, runs, seconds, seed, progress)
    findings = tuple(
        _finding(level, chosen, plan.records_per_person, name)
        for (name, level), chosen in attacks.items()
    )
    released, left = _look_at_release(targets, seed)
    joint = tuple(target.settings.name for target in targets if target.joint is not None)
    return Audit(done, findings, tuple(sorted(off_grid)), released, left, joint)


Key = tuple[str, Literal[1, 2]]


def _plan_attacks(targets: Targets, random: np.random.Generator) -> dict[Key, list[Attack]]:
    attacks: dict[Key, list[Attack]] = {}
    levels: tuple[Literal[1, 2], ...] = (1, 2)
    for level in levels:
        fixed = level == 1
        attacked = [t for t in targets if fixed or not t.settings.chosen_from_data]
        telling = {t.settings.name: t.telling_records(fixed=fixed) for t in attacked}
        for target in attacked:
            worst = worst_neighbour([target], telling[target.settings.name], fixed=fixed)
            suspects = target.suspects() if fixed else ()
            chosen = [worst, *(neighbour([target], (suspect,)) for suspect in suspects)]
            attacks[target.settings.name, level] = [Attack([target], one) for one in chosen]
        if len(attacked) < len(targets):
            continue
        everyone = [record for records in telling.values() for record in records]
        neighbours = [worst_neighbour(targets, everyone, fixed=fixed)]
        neighbours += [
            random_neighbour(targets, random, fixed=fixed) for _ in range(_RANDOM_NEIGHBOURS)
        ]
        attacks[ALL, level] = [Attack(targets, one) for one in neighbours]
    return attacks


def _sample(
    attacks: dict[Key, list[Attack]],
    runs: int,
    seconds: float | None,
    seed: int | None,
    progress: Progress | None,
) -> tuple[int, set[str]]:
    """Run the mechanism in batches until the runs are done or the time is up."""
    started, done = time.monotonic(), 0
    off_grid: set[str] = set()
    every = [attack for chosen in attacks.values() for attack in chosen]
    targets = list(dict.fromkeys(target for attack in every for target in attack.targets))
    batch = max(1, min(runs, _VALUES_PER_BATCH // max(target.cells for target in targets)))
    with ThreadPoolExecutor() as threads:
        while done < runs and (not done or not seconds or time.monotonic() - started < seconds):
            count, at = min(batch, runs - done), done

            def here(target: Target[Any], count: int = count, at: int = at) -> Published:
                source = open_words(seed, f"here {target.settings.name} {at}")
                return target.run(target.summary, count, source)

            seen = dict(zip(targets, threads.map(here, targets), strict=True))

            def sample(number: int, at: int = at, seen: Any = seen) -> None:  # noqa: ANN401
                attack = every[number]
                source = open_words(seed, f"there {number} {at}")
                attack.sample([seen[target] for target in attack.targets], source)

            list(threads.map(sample, range(len(every))))
            off_grid |= {t.settings.name for t in targets if t.is_off_grid(seen[t])}
            done += count
            if progress:
                progress("attacking", done, runs)
    return done, off_grid


def _look_at_release(
    targets: Sequence[AnyTarget], seed: int | None
) -> tuple[tuple[Pinned, ...], tuple[Narrowed, ...]]:
    """Let the informed adversary look at one release of what is clustered by itself."""
    clustered = [t for t in targets if t.clustered and t.joint is None]
    words = partial(open_words, seed, "as released")
    return (
        tuple(pinned(t, t.release(words())) for t in clustered if isinstance(t, NumericTarget)),
        tuple(narrowed(t, t.release(words())) for t in clustered if isinstance(t, CategoryTarget)),
    )


def _finding(level: Literal[1, 2], attacks: list[Attack], persons: int, name: str) -> Finding:
    targets = attacks[0].targets
    bounds = [
        level_1_bound(t.settings) if level == 1 else level_2_bound(t.settings, persons)
        for t in targets
    ]
    known = [bound / persons for bound in bounds if bound is not None]
    exact = targets[0].closed_form(fixed=level == 1) if len(targets) == 1 else None
    if exact is None:
        exact = max(attack.loss for attack in attacks)
    return Finding(
        attribute=name,
        level=level,
        claimed=sum(known) if len(known) == len(bounds) else None,
        exact=exact,
        found=lower_bound(attacks),
    )
