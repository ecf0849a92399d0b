"""Attack our own mechanism, and say what an attacker can really tell."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from rich.console import Group, RenderableType

from microveil.accounting import held_loss, reclustered_loss
from microveil.audit.attacks import Attack, Mechanism, lower_bound, run
from microveil.audit.released import Pinned, pinned
from microveil.audit.targets import (
    Target,
    open_targets,
    random_neighbour,
    telling_records,
    worst_neighbour,
)
from microveil.engines.memory import MemoryEngine
from microveil.errors import DataError
from microveil.formats import load
from microveil.levels import formed_again_bound, held_bound
from microveil.mechanism import mask
from microveil.noise import open_words
from microveil.plan import Plan
from microveil.prepare import prepare
from microveil.protect import Progress

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
        The loss of this very table, by the closed form; for all attributes together that of the
        worst neighbour attacked.
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
        """Whether the attack found more than there should be to find."""
        return self.found > self.exact * (1 + 1e-9)


@dataclass(frozen=True)
class Audit:
    """The outcome of an audit. It is a function of the data: private."""

    runs: int
    findings: tuple[Finding, ...]
    off_grid: tuple[str, ...]
    released: tuple[Pinned, ...] = field(default=())

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
        from microveil.audit.reading import in_words

        return in_words(self)

    def __rich__(self) -> RenderableType:
        from microveil.audit.reading import tables

        return Group(*tables(self), self.reading)


def audit(
    data: Any,  # noqa: ANN401 - a table of the user's kind
    plan: Plan,
    *,
    runs: int = 10_000,
    seconds: float | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    mechanism: Mechanism = mask,
) -> Audit:
    """Attack the mechanism on this table and bound its loss from below.

    The mechanism runs many times on the table and on neighbours: the worst one by the closed form,
    and random ones. An event that tells them apart is chosen on one half of the runs, and its
    probabilities are bounded on the other half. Noise scales are held as computed from the table:
    individual differential privacy counts them as part of the mechanism. Where the data decided
    where clusters begin and end, only clusters held are attacked: nothing is claimed of others. A
    second adversary, who knows all records but one, looks at one released table.

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

    Examples
    --------
    >>> from microveil.sample import people, people_plan
    >>> outcome = audit(people(200), people_plan(), runs=200, seed=1)
    >>> outcome.broken
    False
    """
    if runs < 100:
        raise DataError(f"an audit needs at least 100 runs, got {runs}")
    engine = MemoryEngine(load(data).data)
    settled = prepare(plan, engine)
    targets = open_targets(engine, settled)
    attacks = _plan_attacks(targets, np.random.default_rng(seed))
    done, off_grid = _sample(targets, attacks, mechanism, runs, seconds, seed, progress)
    findings = tuple(
        _finding(name, level, chosen, targets, plan) for (name, level), chosen in attacks.items()
    )
    clustered = [t for t in targets if t.masking.method.clustered]
    released = tuple(
        pinned(t, mechanism(t.summary, t.scales, t.masking, open_words(seed, "as released")))
        for t in clustered
    )
    return Audit(done, findings, tuple(sorted(off_grid)), released)


Key = tuple[str, Literal[1, 2]]


def _plan_attacks(
    targets: Sequence[Target], random: np.random.Generator
) -> dict[Key, list[Attack]]:
    attacks: dict[Key, list[Attack]] = {}
    chosen = any(target.masking.chosen_from_data for target in targets)
    levels: tuple[Literal[1, 2], ...] = (1,) if chosen else (1, 2)
    for level in levels:
        held = level == 1
        telling = {t.masking.name: telling_records(t, held=held) for t in targets}
        for target in targets:
            worst = worst_neighbour([target], telling[target.masking.name], held=held)
            attacks[target.masking.name, level] = [Attack([target], worst)]
        everyone = [record for records in telling.values() for record in records]
        neighbours = [worst_neighbour(targets, everyone, held=held)]
        neighbours += [
            random_neighbour(targets, random, held=held) for _ in range(_RANDOM_NEIGHBOURS)
        ]
        attacks[ALL, level] = [Attack(targets, neighbour) for neighbour in neighbours]
    return attacks


def _sample(
    targets: Sequence[Target],
    attacks: dict[Key, list[Attack]],
    mechanism: Mechanism,
    runs: int,
    seconds: float | None,
    seed: int | None,
    progress: Progress | None,
) -> tuple[int, set[str]]:
    """Run the mechanism in batches until the runs are done or the time is up."""
    started, done = time.monotonic(), 0
    off_grid: set[str] = set()
    largest = max(len(target.summary) for target in targets)
    batch = max(1, min(runs, _VALUES_PER_BATCH // largest))
    every = [attack for chosen in attacks.values() for attack in chosen]
    with ThreadPoolExecutor() as threads:
        while done < runs and (not done or not seconds or time.monotonic() - started < seconds):
            count, at = min(batch, runs - done), done

            def here(target: Target, count: int = count, at: int = at) -> np.ndarray[Any, Any]:
                source = open_words(seed, f"here {target.masking.name} {at}")
                return run(mechanism, target, target.summary, count, source)

            seen = dict(zip(targets, threads.map(here, targets), strict=True))

            def sample(number: int, at: int = at, seen: Any = seen) -> None:  # noqa: ANN401
                attack = every[number]
                source = open_words(seed, f"there {number} {at}")
                attack.sample([seen[target] for target in attack.targets], mechanism, source)

            list(threads.map(sample, range(len(every))))
            off_grid |= {t.masking.name for t in targets if _is_off_grid(t, seen[t])}
            done += count
            if progress:
                progress("attacking", done, runs)
    return done, off_grid


def _is_off_grid(target: Target, published: np.ndarray[Any, Any]) -> bool:
    """Whether published values have bits below the grid, which tell of floating-point noise."""
    masking = target.masking
    if masking.kind == "integer" or masking.decimals is not None:
        return False
    inside = (published > masking.published_lower) & (published < masking.published_upper)
    units = (published[inside] - masking.grid.origin) / masking.grid.step
    return bool(np.any(units != np.rint(units)))


def _finding(
    name: str,
    level: Literal[1, 2],
    attacks: list[Attack],
    targets: Sequence[Target],
    plan: Plan,
) -> Finding:
    concerned = attacks[0].targets
    persons = plan.records_per_person
    bounds = [
        held_bound(t.masking) if level == 1 else formed_again_bound(t.masking, persons)
        for t in concerned
    ]
    known = [bound / persons for bound in bounds if bound is not None]
    if name == ALL and len(targets) > 1:
        exact = max(attack.neighbour.loss for attack in attacks)
    else:
        exact_loss = held_loss if level == 1 else reclustered_loss
        t = concerned[0]
        exact = exact_loss(t.masking.method, t.summary, t.masking.domain_units, t.scales)
    return Finding(
        attribute=name,
        level=level,
        claimed=sum(known) if len(known) == len(bounds) else None,
        exact=exact,
        found=lower_bound(attacks),
    )
