"""Attack the mechanism with fixed noise scales, on the clusters of a table and its neighbours."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from microveil.core.random_words import open_words
from microveil.lab.audit.distinguishers import ALL, Distinguisher, halves, lower_bound
from microveil.lab.audit.models import Published
from microveil.lab.audit.target import AuditTarget
from microveil.lab.audit.targets import Targets, neighbour, random_neighbour, worst_neighbour
from microveil.release.guarantees import level_1_bound, level_2_bound
from microveil.types import Progress

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
        The attack's lower bound. Above `exact` the mechanism is broken.
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


Distinguishers = dict[tuple[str, Literal[1, 2]], list[Distinguisher]]


def plan_attacks(targets: Targets, random: np.random.Generator) -> Distinguishers:
    """Choose the neighbours to tell apart, for every attribute and for all together."""
    attacks: Distinguishers = {}
    levels: tuple[Literal[1, 2], ...] = (1, 2)
    for level in levels:
        fixed = level == 1
        attacked = [t for t in targets if fixed or not t.settings.chosen_from_data]
        telling = {t.settings.name: t.telling_records(fixed=fixed) for t in attacked}
        for target in attacked:
            worst = worst_neighbour([target], telling[target.settings.name], fixed=fixed)
            suspects = target.suspects() if fixed else ()
            chosen = [worst, *(neighbour([target], (suspect,)) for suspect in suspects)]
            attacks[target.settings.name, level] = [Distinguisher([target], one) for one in chosen]
        if len(attacked) < len(targets):
            continue
        everyone = [record for records in telling.values() for record in records]
        neighbours = [worst_neighbour(targets, everyone, fixed=fixed)]
        neighbours += [
            random_neighbour(targets, random, fixed=fixed) for _ in range(_RANDOM_NEIGHBOURS)
        ]
        attacks[ALL, level] = [Distinguisher(targets, one) for one in neighbours]
    return attacks


def sample(
    attacks: Distinguishers,
    runs: int,
    until: float | None,
    seed: int | None,
    progress: Progress | None,
) -> tuple[int, set[str]]:
    """Run the mechanism in batches until the runs are done or the time is up."""
    done = 0
    off_grid: set[str] = set()
    every = [attack for chosen in attacks.values() for attack in chosen]
    targets = list(dict.fromkeys(target for attack in every for target in attack.targets))
    batch = max(1, min(runs, _VALUES_PER_BATCH // max(target.cells for target in targets)))
    with ThreadPoolExecutor() as threads:
        while done < runs and (not done or not until or time.monotonic() < until):
            count, at = min(batch, runs - done), done

            def here(target: AuditTarget[Any], count: int = count, at: int = at) -> Published:
                source = open_words(seed, f"here {target.settings.name} {at}")
                return target.run(target.summary, count, source)

            seen = dict(zip(targets, threads.map(here, targets), strict=True))

            def add(number: int, at: int = at, seen: Any = seen) -> None:  # noqa: ANN401
                attack = every[number]
                source = open_words(seed, f"there {number} {at}")
                attack.sample([seen[target] for target in attack.targets], source)

            list(threads.map(add, range(len(every))))
            off_grid |= {t.settings.name for t in targets if t.is_off_grid(seen[t])}
            done += count
            if progress:
                progress("attacking", done, runs)
    return done, off_grid


def findings_of(attacks: Distinguishers, persons: int, doubt: float) -> tuple[Finding, ...]:
    """Bound the loss from below, attribute by attribute and level by level."""
    return tuple(
        _finding(level, chosen, persons, name, doubt) for (name, level), chosen in attacks.items()
    )


def _finding(
    level: Literal[1, 2], attacks: list[Distinguisher], persons: int, name: str, doubt: float
) -> Finding:
    targets = attacks[0].targets
    bounds = [
        level_1_bound(t.settings) if level == 1 else level_2_bound(t.settings) for t in targets
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
        found=lower_bound([halves(attack.samples) for attack in attacks], doubt),
    )
