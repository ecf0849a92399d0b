"""Linkage: how many people's records someone finds in a release who knows their original values.

Three intruders, from the simplest to the strongest. All of them see the released values in random
row order and know original values of people; none knows which row is whose. Chance is 1/n: one row
picked at random out of n.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.grid import Integers, Reals
from microveil.errors import DataError

if TYPE_CHECKING:
    from scipy.spatial import KDTree

Booleans = NDArray[np.bool_]
Weights = NDArray[np.float32]

EXACT = 6_000_000
"""Pairs of a person and a row up to which all of them are weighed against each other."""

MOST_PEOPLE = 10_000
"""People attacked at once past `EXACT`, drawn at random; all rows take part."""

CANDIDATES = 50
"""Nearest rows that each person may be given past `EXACT`."""

_TIE = 1 + 1e-9  # distances this close are equal: they differ by rounding alone
_ROUGH = 5.0  # how far from the nearest a rough search may end, as a multiple
_TIES_AT_ONCE = 10_000


@dataclass(frozen=True)
class Linked:
    """What an intruder found.

    Attributes
    ----------
    id
        Of the measure.
    intruder
        Whom it models, in one sentence.
    share
        Share of the people attacked whose own record was picked. Where the pick is one of several
        equal records, it is the expected share: 1 in the number of them.
    low, high
        Hold the share among all people known with 95% confidence (Wilson); equal to `share` where
        all of them were attacked.
    attacked, known, records
        People attacked, people whose values the intruder knows, and records released.
    """

    id: str
    intruder: str
    share: float
    low: float
    high: float
    attacked: int
    known: int
    records: int

    @property
    def chance(self) -> float:
        """The share of people found by picking rows at random."""
        return 1 / self.records


@dataclass(frozen=True, eq=False)
class _Scene:
    """What an intruder sees: people known, and rows in random order; `own` is what is sought."""

    people: Reals
    rows: Reals
    own: Integers
    nominal: Booleans


def nearest(
    original: Reals,
    masked: Reals,
    *,
    nominal: Sequence[int] = (),
    known: Sequence[int] | None = None,
    people: float | Booleans = 1.0,
    sample: int | None = 10_000,
    seed: int = 0,
) -> Linked:
    """Link every person to the nearest released record.

    Distances are Euclidean over attributes divided by their standard deviations in the original.
    Two nominal categories are at squared distance 1, and so are a missing and a present value; a
    missing number lies at the mean besides. A person whose nearest distance is attained by t
    records, their own among them, counts 1/t. By chance 1 in n are linked.

    Parameters
    ----------
    original, masked
        Records × attributes, row i of both of the same person; NaN where a value is missing.
    nominal
        Columns that hold codes of categories without an order. Ordinal ones are numbers.
    known
        Columns the intruder knows; all by default.
    people
        People the intruder knows: a share, drawn at random, or true for each one known. All rows
        are released.
    sample
        How many of them to attack, drawn at random; None for all.
    seed
        Of what is drawn at random.

    Examples
    --------
    >>> original = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> nearest(original, np.array([[1.0], [3.0], [8.5], [8.5]])).share
    0.625
    """
    if sample is not None and sample < 1:
        raise DataError(f"sample must be 1 or more, or None for everybody, got {sample}")
    random = np.random.default_rng(seed)
    scene = _scene(original, masked, nominal, known, people, random)
    points, rows = _points(scene)
    attacked: Integers = np.arange(len(points))
    if sample is not None and sample < len(points):
        attacked = np.sort(random.choice(len(points), sample, replace=False))
    chances = _chance_of_own(points[attacked], rows[scene.own[attacked]], rows)
    return _linked(
        "linkage.nearest",
        "Someone who knows people's original values and takes the nearest released record for "
        "each of them.",
        float(chances.mean()),
        len(attacked),
        len(points),
        len(rows),
    )


def one_to_one(
    original: Reals,
    masked: Reals,
    *,
    nominal: Sequence[int] = (),
    known: Sequence[int] | None = None,
    people: float | Booleans = 1.0,
    seed: int = 0,
) -> Linked:
    """Assign people to released records one to one, at the least total distance.

    Distances and parameters are those of `nearest`. The assignment is the best there is up to
    `EXACT` pairs of a person and a row. Past that `MOST_PEOPLE` are attacked at most, and each may
    get one of the `CANDIDATES` nearest rows or none. By chance 1 in n are linked.

    Examples
    --------
    >>> original = np.array([[1.0], [2.0], [8.0], [9.0]])
    >>> nearest(original, np.array([[0.0], [1.2], [6.0], [8.1]])).share
    0.5
    >>> one_to_one(original, np.array([[0.0], [1.2], [6.0], [8.1]])).share
    1.0
    """
    random = np.random.default_rng(seed)
    scene = _scene(original, masked, nominal, known, people, random)
    scene, all_known = _at_most(scene, random)
    points, rows = _points(scene)
    if _is_small(scene):
        from scipy.spatial.distance import cdist

        match = _cheapest(cdist(points, rows))
    else:
        away, candidates = _nearest_rows(points, rows)
        match = _auction(candidates, -away.astype(np.float32), len(rows))
    return _linked(
        "linkage.one_to_one",
        "Someone who knows people's original values and gives each of them a released record of "
        "their own, at the least total distance.",
        _expected_share(scene, match),
        len(points),
        all_known,
        len(rows),
    )


def structure(
    original: Reals,
    masked: Reals,
    *,
    nominal: Sequence[int] = (),
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
    >>> random = np.random.default_rng(1)
    >>> original = random.normal(size=(200, 6))
    >>> clusters = original.argsort(axis=0).argsort(axis=0) // 5
    >>> noise = random.normal(size=(40, 6))
    >>> masked = np.take_along_axis(noise, clusters, axis=0) + clusters / 20
    >>> nearest(original, masked).share < 0.2 < 0.9 < structure(original, masked).share
    True
    """
    random = np.random.default_rng(seed)
    scene = _scene(original, masked, nominal, known, people, random)
    scene, all_known = _at_most(scene, random)
    match = _solve(scene)
    return _linked(
        "linkage.structure",
        "Someone who knows people's original values and works out from who shares masked values "
        "with whom which record is whose.",
        _expected_share(scene, match),
        len(scene.people),
        all_known,
        len(scene.rows),
    )


def _scene(
    original: Reals,
    masked: Reals,
    nominal: Sequence[int],
    known: Sequence[int] | None,
    people: float | Booleans,
    random: np.random.Generator,
) -> _Scene:
    """Check the arguments, choose who and what is known, and shuffle the rows."""
    if original.ndim != 2 or original.shape != masked.shape or not original.size:
        raise DataError(
            "original and masked must be tables of the same people and attributes, found "
            f"{original.shape} and {masked.shape}"
        )
    records, attributes = original.shape
    columns = np.arange(attributes) if known is None else np.unique(np.array(known, dtype=np.int64))
    for chosen, word in ((columns, "known"), (np.array(nominal, dtype=np.int64), "nominal")):
        outside = (chosen < 0).any() or (chosen >= attributes).any()
        if outside or (word == "known" and not len(columns)):
            raise DataError(
                f"{word} must be columns from 0 to {attributes - 1}, got {chosen.tolist()}"
            )
    order = random.permutation(records)
    own = np.empty(records, dtype=np.int64)
    own[order] = np.arange(records)
    chosen = _known_people(people, records, random)
    return _Scene(
        people=original[np.ix_(chosen, columns)].astype(np.float64),
        rows=masked[np.ix_(order, columns)].astype(np.float64),
        own=own[chosen],
        nominal=np.isin(columns, np.array(nominal, dtype=np.int64)),
    )


def _known_people(people: float | Booleans, records: int, random: np.random.Generator) -> Integers:
    if isinstance(people, np.ndarray):
        chosen = np.flatnonzero(people)
        if people.shape != (records,) or people.dtype != np.bool_ or not len(chosen):
            raise DataError(f"people must be true for some of the {records:,} records, or a share")
        return chosen
    if not 0 < people <= 1:
        raise DataError(f"people must be a share above 0 and up to 1, got {people}")
    number = max(1, round(people * records))
    return np.sort(random.choice(records, number, replace=False))


def _is_small(scene: _Scene) -> bool:
    return len(scene.people) * len(scene.rows) <= EXACT


def _at_most(scene: _Scene, random: np.random.Generator) -> tuple[_Scene, int]:
    known = len(scene.people)
    if known <= MOST_PEOPLE or _is_small(scene):
        return scene, known
    chosen = np.sort(random.choice(known, MOST_PEOPLE, replace=False))
    return replace(scene, people=scene.people[chosen], own=scene.own[chosen]), known


def _linked(
    id_: str, intruder: str, share: float, attacked: int, known: int, records: int
) -> Linked:
    low, high = (share, share) if attacked == known else _interval(share, attacked)
    return Linked(id_, intruder, share, low, high, attacked, known, records)


def _interval(share: float, sampled: int) -> tuple[float, float]:
    """Wilson's 95% interval, which still says something when no sampled person was linked."""
    z = 1.96
    centre = share + z**2 / (2 * sampled)
    margin = z * np.sqrt(share * (1 - share) / sampled + z**2 / (4 * sampled**2))
    width = 1 + z**2 / sampled
    low, high = float((centre - margin) / width), float((centre + margin) / width)
    return min(share, max(0.0, low)), max(share, min(1.0, high))


def _points(scene: _Scene) -> tuple[Reals, Reals]:
    """Place people and rows in a space with the distances of `nearest`."""
    people, rows = [], []
    for values, masked, nominal in zip(scene.people.T, scene.rows.T, scene.nominal, strict=True):
        absent, masked_absent = np.isnan(values), np.isnan(masked)
        if nominal:
            categories = np.unique(np.concatenate([values[~absent], masked[~masked_absent]]))
            people.append((values[:, np.newaxis] == categories) / np.sqrt(2))
            rows.append((masked[:, np.newaxis] == categories) / np.sqrt(2))
        else:
            mean, deviation = _mean_and_deviation(values[~absent])
            people.append(np.where(absent, mean, values)[:, np.newaxis] / deviation)
            rows.append(np.where(masked_absent, mean, masked)[:, np.newaxis] / deviation)
        if absent.any() or masked_absent.any():
            apart = 1 / np.sqrt(2) if nominal else 1.0
            people.append(absent[:, np.newaxis] * apart)
            rows.append(masked_absent[:, np.newaxis] * apart)
    return np.hstack(people), np.hstack(rows)


def _mean_and_deviation(values: Reals) -> tuple[float, float]:
    if not len(values) or values.min() == values.max():
        return (float(values[0]) if len(values) else 0.0), 1.0
    return float(values.mean()), float(values.std(ddof=1))


def _chance_of_own(points: Reals, own: Reals, rows: Reals) -> Reals:
    """1/t where a person's own row is among the t nearest, 0 where it is not."""
    from scipy.spatial import KDTree

    places, counts = np.unique(rows, axis=0, return_counts=True)
    tree = KDTree(places)
    away = np.linalg.norm(points - own, axis=1)
    rough, _ = tree.query(points, eps=_ROUGH)
    left = np.flatnonzero(away <= rough * _TIE)  # for all others something nearer was found
    distances, _ = tree.query(points[left])
    left = left[away[left] <= distances * _TIE]
    chances = np.zeros(len(points))
    chances[left] = 1 / _rows_within(tree, counts, points[left], away[left] * _TIE)
    return chances


def _rows_within(tree: "KDTree", counts: Integers, points: Reals, reach: Reals) -> Reals:
    """Count the rows within reach of each point."""
    totals = np.empty(len(points))
    for first in range(0, len(points), _TIES_AT_ONCE):
        part = slice(first, first + _TIES_AT_ONCE)
        found = tree.query_ball_point(points[part], reach[part])
        totals[part] = [counts[places].sum() for places in found]
    return totals


def _nearest_rows(points: Reals, rows: Reals) -> tuple[Reals, Integers]:
    from scipy.spatial import KDTree

    away, found = KDTree(rows).query(points, min(CANDIDATES, len(rows)), eps=1.0)
    return away, found


def _auction(candidates: Integers, values: Weights, rows: int) -> Integers:
    from microveil.core.kernels import linkage as kernels

    spread = float(np.mean(values.max(axis=1) - values.min(axis=1))) or 1.0
    return kernels.assign(candidates, values, rows, spread / 100, 5 * spread)


def _cheapest(costs: NDArray[Any]) -> Integers:
    from scipy.optimize import linear_sum_assignment

    match: Integers = linear_sum_assignment(costs)[1]
    return match


def _expected_share(scene: _Scene, match: Integers) -> float:
    """Share of people matched with their own row, on average over ties.

    Equal rows could be swapped, and so could people with equal values, without any intruder
    noticing: of a person class P and a row class C, each match of the two is right with the chance
    that two people of P and C drawn at random belong together.
    """
    person, persons = _classes(scene.people)
    row, rows = _classes(scene.rows)
    matched = match >= 0
    width = len(rows)
    guesses = person[matched] * width + row[match[matched]]
    truths, counts = np.unique(person * width + row[scene.own], return_counts=True)
    at = np.minimum(np.searchsorted(truths, guesses), len(truths) - 1)
    right = np.where(truths[at] == guesses, counts[at], 0)
    chances = right / persons[guesses // width] / rows[guesses % width]
    return float(chances.sum() / len(match))


def _classes(table: Reals) -> tuple[Integers, Integers]:
    """Give equal rows the same number, missing values being equal; return classes and sizes."""
    label = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        values, codes = np.unique(column, return_inverse=True)
        _, label = np.unique(label * len(values) + codes, return_inverse=True)
    return label, np.bincount(label)


_ROUNDS = 24
_FIRST_REACH = 0.2  # of all ranks: how far off a guess by rank may be
_BACKGROUND = 0.05  # chance of anything else, so that no single attribute rules out a match
_BALANCING = 15
_LOOK_AGAIN = 6  # rounds with the same candidates


@dataclass(eq=False)
class _Attribute:
    """One attribute to an intruder: places of people, masked values of rows, and what is learnt.

    `density` has, by place and masked value, how much likelier people of a place are to have it
    than others. It is learnt where masked values are shared.
    """

    places: Integers
    labels: Integers
    density: Reals
    smooth: bool
    shared: bool

    def odds(self) -> Weights:
        """Log-odds of a match by place and masked value."""
        odds: Weights = np.log((1 - _BACKGROUND) * self.density + _BACKGROUND).astype(np.float32)
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
    known = len(table) - 1
    middles = (np.arange(known) + 0.5) / known
    kernel = np.exp(-0.5 * ((middles[:, np.newaxis] - middles) / reach) ** 2)
    kernel /= kernel.sum(axis=0)
    return np.vstack([kernel @ table[:-1], table[-1:]])


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


def _solve(scene: _Scene) -> Integers:
    """Give each person a row, or −1 where that is not worth it."""
    from microveil.core.kernels import linkage as kernels

    columns = zip(scene.people.T, scene.rows.T, scene.nominal, strict=True)
    attributes = [_attribute(*column) for column in columns]
    people, rows = len(scene.people), len(scene.rows)
    candidates: Integers = np.broadcast_to(np.arange(rows), (people, rows))
    for turn in range(_ROUNDS):
        if not _is_small(scene) and turn % _LOOK_AGAIN == 0:
            candidates = _likely_rows(attributes)
        scores = np.zeros(candidates.shape, dtype=np.float32)
        for attribute in attributes:
            kernels.score(attribute.odds(), attribute.places, attribute.labels, candidates, scores)
        if turn == _ROUNDS - 1:
            break
        kernels.match_softly(scores, candidates, rows, _BALANCING, people == rows)
        progress = min(1.0, 1.25 * turn / _ROUNDS)
        for attribute in (a for a in attributes if a.shared):
            counts = np.zeros_like(attribute.density)
            kernels.learn(scores, attribute.places, attribute.labels, candidates, counts)
            finest = 0.5 / (len(counts) - 1)
            attribute.learn(counts, _FIRST_REACH * (finest / _FIRST_REACH) ** progress)
    return _cheapest(-scores) if _is_small(scene) else _auction(candidates, scores, rows)


def _likely_rows(attributes: Sequence[_Attribute]) -> Integers:
    """Return for each person the rows whose masked values are thought to lie nearest."""
    places = [attribute.middles[attribute.places] for attribute in attributes]
    guesses = [attribute.guesses()[attribute.labels] for attribute in attributes]
    return _nearest_rows(np.column_stack(places), np.column_stack(guesses))[1]
