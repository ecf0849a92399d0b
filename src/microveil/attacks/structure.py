"""Structure linkage: match rows with people by who shares masked values with whom.

Whether the attack gets anywhere hangs on where it starts, so that it is tried more than once where
records are drawn, until it does, and the most successful counts; once where pooling proves what it
finds at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from microveil.attacks.known import known_of, proved
from microveil.attacks.linked import Linked, linkage_figure, linked_share, tried_anew
from microveil.attacks.sight import (
    Blocks,
    Scores,
    Sight,
    at_most,
    auction,
    cheapest,
    expected_share,
    is_small,
    nearest_rows,
    sight_of,
)
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, NotComputed
from microveil.core.methods import METHODS
from microveil.plan.scenarios import Scenario
from microveil.types import Booleans, Integers, Reals

_ID = "linkage.structure"

_TRIAL, _TRIALS = 1_000, 5
_ENOUGH = 0.2  # of the people found: no further trial is needed
_ROUNDS = 24
_FIRST_REACH = 0.2  # of all ranks: how far off a guess by rank may be
_BACKGROUND = 0.05  # chance of anything else, so that no single attribute rules out a match
_BALANCING = 15
_LOOK_AGAIN = 6  # rounds with the same candidates
_IMPOSSIBLE = -60.0  # log-odds of a match that published values rule out


def structure_figure(
    seen: Examined, scenario: Scenario, asked: Asked
) -> Figure | NotComputed | None:
    """Link by shared values; None where a quick look is asked for and nothing can be found."""
    bound = proved(seen.plan, scenario)
    if np.isfinite(asked.most_by_structure) and _finds_nobody(seen, scenario):
        return None
    linked = _linked(seen, scenario, asked, once=bound is not None)
    if linked is None:
        label = None if scenario == Scenario() else scenario.label
        return NotComputed((_ID,), "too_few_to_protect_anew", label)
    return linkage_figure(linked, scenario, bound)


def _finds_nobody(seen: Examined, scenario: Scenario) -> bool:
    """Whether no values are shared, or pooling proves that who shares them says nothing."""
    plan = seen.planned
    clustered = any(METHODS[plan.method_of(name)].clustered for name in plan.confidential)
    names = [name for name in scenario.known or plan.confidential if name in plan.confidential]
    return not clustered or not names or bool(proved(plan, Scenario(known=tuple(names))))


def _linked(seen: Examined, scenario: Scenario, asked: Asked, *, once: bool) -> Linked | None:
    """Link in the release, or in some records protected anew with about its noise."""
    if seen.whole and seen.records <= asked.most_by_structure:
        known = known_of(seen, scenario)
        return structure_linkage(
            *known.tables, **known.given, people=scenario.people, seed=asked.seed
        )
    random, worst = np.random.default_rng(asked.seed), None
    for _ in range(1 if once else _TRIALS):
        found = _trial(seen, scenario, random)
        if found is None or (worst is not None and worst.share > _ENOUGH):
            break
        worst = found if worst is None or found.share > worst.share else worst
    return worst


def _trial(seen: Examined, scenario: Scenario, random: np.random.Generator) -> Linked | None:
    """Protect some records anew, with the noise of the release, and attack them.

    Clusters of fewer records are wider, and so is their noise. Epsilon is multiplied by as much as
    there are fewer records, so that noise is about that of the release or less: otherwise the trial
    would find fewer people than there are to be found. It rather finds more, as the tests show, but
    that is no proof.
    """
    plan, number = seen.planned, min(_TRIAL, seen.drawn)
    times = seen.records / number
    trial = seen.trial(plan.replace(epsilon=plan.epsilon * times), number, random)
    if trial is None:
        return None
    known = known_of(trial, scenario)
    seed = int(random.integers(2**32))
    found = structure_linkage(*known.tables, **known.given, people=scenario.people, seed=seed)
    return tried_anew(found, seen.records, times)


def structure_linkage(
    original: Reals,
    masked: Reals,
    *,
    nominal: Sequence[int] = (),
    exact: Sequence[int] = (),
    known: Sequence[int] | None = None,
    people: float | Booleans = 1.0,
    seed: int = 0,
) -> Linked:
    """Link people by who shares masked values with whom, whatever the noise.

    Rows that share a masked value in some attribute are a cluster of people whose original values
    are near each other. Which ones is not known, so it is learnt: guess by rank, match rows to
    people by all attributes at once, see which people were matched with each masked value, guess
    again from that, and so on, looking ever closer; at the end assign one to one. No noise
    prevents it, since noise changes a shared value for all who share it. By chance 1 in n are
    linked.

    Parameters are those of `nearest`; limits are those of `one_to_one`.

    Examples
    --------
    >>> from microveil.attacks.nearest import nearest_linkage
    >>> random = np.random.default_rng(1)
    >>> original = random.normal(size=(200, 6))
    >>> clusters = original.argsort(axis=0).argsort(axis=0) // 5
    >>> noise = random.normal(size=(40, 6))
    >>> masked = np.take_along_axis(noise, clusters, axis=0) + clusters / 20
    >>> nearest_linkage(original, masked).share < 0.2
    True
    >>> structure_linkage(original, masked).share > 0.9
    True
    """
    random = np.random.default_rng(seed)
    scene = sight_of(original, masked, nominal, exact, known, people, random)
    scene, all_known = at_most(scene, random)
    match = _solve(scene)
    share = expected_share(scene, match)
    return linked_share(_ID, share, len(scene.people), all_known, len(scene.rows))


@dataclass(eq=False)
class _Attribute:
    """One attribute to an attacker: places of people, masked values of rows, and what is learnt.

    `density` has, by place and masked value, how much likelier people of a place are to have it
    than others. It is learnt where masked values are shared.
    """

    places: Integers
    labels: Integers
    density: Reals
    smooth: bool
    shared: bool

    def odds(self) -> Scores:
        """Log-odds of a match by place and masked value."""
        odds: Scores = np.log((1 - _BACKGROUND) * self.density + _BACKGROUND).astype(np.float32)
        return odds

    @property
    def middles(self) -> Reals:
        """Where places lie between 0 and 1; what is missing is in the middle."""
        known = len(self.density) - 1
        return np.append((np.arange(known) + 0.5) / known, 0.5)

    def guesses(self) -> Reals:
        """Where the people of each masked value are thought to lie, on average."""
        among = np.bincount(self.places, minlength=len(self.density))[:, np.newaxis]
        weights = self.density * among
        means: Reals = self.middles @ weights / np.maximum(weights.sum(axis=0), 1e-12)
        return means

    def learn(self, counts: Reals, reach: float) -> None:
        """Estimate densities from who has been matched with what, `reach` places around."""
        among = np.bincount(self.places, minlength=len(counts))[:, np.newaxis].astype(np.float64)
        if self.smooth:
            counts, among = (_smoothed(table, reach) for table in (counts, among))
        counts = counts + 1e-9
        share = among / among.sum() + 1e-12
        self.density = counts / counts.sum(axis=0) / share


def _smoothed(table: Reals, reach: float) -> Reals:
    """Spread what is in a place over those nearby; the last one is for missing values."""
    return np.vstack([_spread(len(table) - 1, reach) @ table[:-1], table[-1:]])


@lru_cache(maxsize=8)
def _spread(known: int, reach: float) -> Reals:
    """How much of each place goes to each; attributes of one round share it."""
    middles = (np.arange(known) + 0.5) / known
    kernel: Reals = np.exp(-0.5 * ((middles[:, np.newaxis] - middles) / reach) ** 2)
    kernel /= kernel.sum(axis=0)
    return kernel


def _attribute(values: Reals, masked: Reals, nominal: bool) -> _Attribute:
    """Guess by rank, or of categories that they stay what they are."""
    released, labels, counts = np.unique(masked, return_inverse=True, return_counts=True)
    absent, none = np.isnan(values), np.isnan(released)
    if nominal:
        categories, codes = np.unique(values[~absent], return_inverse=True)
        density = 0.5 + 0.5 * len(categories) * (categories[:, np.newaxis] == released)
        bins = len(categories)
    else:
        bins = int(np.clip(len(values) // 5, 20, 200))
        _, inverse, sizes = np.unique(values[~absent], return_inverse=True, return_counts=True)
        middle = (np.cumsum(sizes) - sizes / 2)[inverse] / max(1, len(inverse))
        codes = np.minimum((middle * bins).astype(np.int64), bins - 1)
        ranks = (np.cumsum(counts) - counts / 2) / len(masked)
        away = (np.arange(bins)[:, np.newaxis] + 0.5) / bins - ranks
        density = np.exp(-0.5 * (away / (_FIRST_REACH + counts / len(masked))) ** 2)
        density /= density.mean(axis=0)
    places = np.full(len(values), bins, dtype=np.int64)
    places[~absent] = codes
    density = np.vstack([density, np.ones(len(released))])
    density[:, none] = 1.0
    shared = len(released) < len(masked) / 2
    return _Attribute(places, labels, density, not nominal, shared)


def _solve(scene: Sight) -> Integers:
    """Give each person a row, or −1 where that is not worth it."""
    from microveil.core.kernels import assignment as kernels

    columns = zip(scene.people.T, scene.rows.T, scene.nominal, strict=True)
    masked = [c for c, exact in zip(columns, scene.exact, strict=True) if not exact]
    attributes = [_attribute(*column) for column in masked]
    blocks = Blocks(scene.people[:, scene.exact])
    mine, theirs = (blocks.of(table[:, scene.exact]) for table in (scene.people, scene.rows))
    people, rows = len(scene.people), len(scene.rows)
    candidates: Integers = np.broadcast_to(np.arange(rows), (people, rows))
    for turn in range(_ROUNDS):
        if not is_small(scene) and turn % _LOOK_AGAIN == 0:
            candidates = _likely_rows(attributes, mine, theirs)
        scores = np.zeros(candidates.shape, dtype=np.float32)
        scores[mine[:, np.newaxis] != theirs[candidates]] = _IMPOSSIBLE
        for attribute in attributes:
            kernels.score(attribute.odds(), attribute.places, attribute.labels, candidates, scores)
        if turn == _ROUNDS - 1:
            break
        if is_small(scene):
            kernels.match_all_softly(scores, _BALANCING, people == rows)
        else:
            kernels.match_softly(scores, candidates, rows, _BALANCING, people == rows)
        progress = min(1.0, 1.25 * turn / _ROUNDS)
        for attribute in (a for a in attributes if a.shared):
            counts = np.zeros_like(attribute.density)
            kernels.learn(scores, attribute.places, attribute.labels, candidates, counts)
            finest = 0.5 / (len(counts) - 1)
            attribute.learn(counts, _FIRST_REACH * (finest / _FIRST_REACH) ** progress)
    return cheapest(-scores) if is_small(scene) else auction(candidates, scores, rows)


def _likely_rows(attributes: Sequence[_Attribute], mine: Integers, theirs: Integers) -> Integers:
    """Return for each person the rows of their block thought to lie nearest by masked values."""
    apart = 1 + 2 * np.sqrt(len(attributes))  # all else lies between 0 and 1
    places = [attribute.middles[attribute.places] for attribute in attributes]
    guesses = [attribute.guesses()[attribute.labels] for attribute in attributes]
    return nearest_rows(
        np.column_stack([*places, mine * apart]), np.column_stack([*guesses, theirs * apart])
    )[1]
