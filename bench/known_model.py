"""Attacks on exchange by someone who has its model, and knows all else but the draws.

`python -m bench.known_model` releases one half of Census and then the other, with noise of the
recommended plan at ε = 1, among 10, 25, 50 and 100. A minute.

He knows everybody's values, the joint clusters and the model's parameters exactly, and picks a
person's row by them. To guess one number of a person he knows all others, and whose values are in
which joint cluster: he pairs the values of the cluster with its people by what the correlations R
let him expect. Beside it: the same with correlations that he learns from the released rows, and
by the set of values alone. The control is the same guess about people outside the release, by the
joint cluster that is nearest to them.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bench.paper import load_with_domains
from microveil import Plan, protect
from microveil.attacks.inference import CLOSE
from microveil.core.joint import cluster_points
from microveil.core.mdav import standardise
from microveil.core.pooling import JointClusters, block_of, collect_clusters
from microveil.core.random_words import SeededWords
from microveil.core.related_exchange import RelatedExchange
from microveil.core.relation_model import RowValues, fit_relations, normal_quantiles
from microveil.lab.paper.datasets import CENSUS
from microveil.types import Integers, Reals

CROWDS = (10, 25, 50, 100)
DRAWS = 20
_RIDGE = 0.1  # R can be nearly singular: taken as it is he gains half as much


class Gained(NamedTuple):
    """What is gained over the control on average, and for the worst attribute."""

    mean: float
    worst: float


class Released(NamedTuple):
    """People, their masked values, and what became of these."""

    people: Reals
    masked: Reals
    clusters: JointClusters
    exchange: RelatedExchange

    @classmethod
    def of(cls, people: Reals, masked: Reals, k: int) -> "Released":
        """Fit the model that `people` are released by."""
        label, _ = cluster_points(standardise(people), k, SeededWords(1))
        clusters = collect_clusters(label)
        columns = [RowValues(column, None) for column in masked.T]
        read = [lambda one=one: one for one in columns]
        exchange = RelatedExchange.fit(clusters, [], read, block_of(k), SeededWords(2))
        return cls(people, masked, clusters, exchange)

    @property
    def correlations(self) -> Reals:
        """What the model knows."""
        model = self.exchange.parts[0].model
        assert model is not None  # noqa: S101 - of so many people there is one
        found: Reals = model.loadings @ model.loadings.T
        return found

    def rows(self, seed: int) -> Reals:
        """Draw a release, row by row in the order of people."""
        rows = np.empty_like(self.masked)
        read = [lambda one=one: RowValues(one, None) for one in self.masked.T]
        for place, giver in self.exchange.draw([], read, SeededWords(seed)):
            rows[:, place] = self.masked[giver, place]
        return rows

    def members(self) -> list[Integers]:
        """Return who is in each joint cluster."""
        return np.split(self.clusters.order, self.clusters.ends[:-1])


def places(values: Reals, among: Reals) -> Reals:
    """Return normal scores of numbers by their rank among those of a joint cluster."""
    ordered, size = np.sort(among, axis=0), len(among)
    scores = np.empty_like(values)
    for a, column in enumerate(values.T):
        below, upto = (np.searchsorted(ordered[:, a], column, side) for side in ("left", "right"))
        rank = np.clip((below + upto) / 2 / size, 0.5 / size, 1 - 0.5 / size)
        scores[:, a] = normal_quantiles()[(rank * 2**16).astype(np.int64)]
    return scores


def inverted(correlations: Reals) -> Reals:
    """Return the inverse of correlations, a little ridge added."""
    ridged = correlations + _RIDGE * np.eye(len(correlations))
    return np.asarray(np.linalg.inv(ridged), dtype=np.float64)


def picked(released: Released, releases: Iterable[Reals]) -> float:
    """Pick for everybody the row of the joint cluster that the model says is likeliest."""
    inverse, right = inverted(released.correlations), []
    for rows in releases:
        for crowd in released.members():
            own = places(released.people[crowd], released.people[crowd])
            shown = places(rows[crowd], rows[crowd])
            away: Reals = own[:, np.newaxis] - shown
            squares = np.einsum("ija,ab,ijb->ij", away, inverse, away)
            right.append(np.argmin(squares, axis=1) == np.arange(len(crowd)))
    return float(np.mean(np.concatenate(right)))


def guessed(released: Released, others: Reals, correlations: Reals | None) -> tuple[Reals, Reals]:
    """Guess each number of people and of others from all their other ones; return rates."""
    scale, crowds = released.people.std(axis=0), released.members()
    reach = CLOSE * scale
    centres = np.array([released.people[crowd].mean(axis=0) for crowd in crowds]) / scale
    right = np.zeros((2, released.people.shape[1]))
    for a in range(len(reach)):
        known = np.arange(len(reach)) != a
        away = others[:, np.newaxis, known] / scale[known] - centres[:, known]
        nearest = np.argmin(np.sum(away**2, axis=2), axis=1)
        for number, crowd in enumerate(crowds):
            values = released.masked[crowd]
            near = others[nearest == number]
            for group, tried in enumerate((released.people[crowd], near)):
                weights = likely(tried, released.people[crowd], values, a, correlations)
                close = np.abs(values[:, a, np.newaxis] - values[:, a]) <= reach[a]
                guess = values[np.argmax(weights @ close, axis=1), a]
                right[group, a] += np.sum(np.abs(guess - tried[:, a]) <= reach[a])
    return right[0] / len(released.people), right[1] / len(others)


def likely(tried: Reals, crowd: Reals, values: Reals, secret: int, r: Reals | None) -> Reals:
    """Return how likely values of a joint cluster are those of people: people × values."""
    if r is None:
        return np.ones((len(tried), len(values)))
    precision = inverted(r)
    slopes = -precision[:, secret] / precision[secret, secret]
    slopes[secret] = 0.0
    there = places(values, values)[:, secret]

    def of(people: Reals) -> Reals:
        expected = places(people, values) @ slopes
        found: Reals = np.exp(
            -0.5 * (there - expected[:, np.newaxis]) ** 2 * precision[secret, secret]
        )
        return found

    wanted = of(crowd).sum(axis=0)
    found: Reals = of(tried) / np.maximum(wanted, 1e-12)
    return found


def gained(people: Reals, masked: Reals, k: int, seed: int = 1) -> dict[str, Gained]:
    """Return what is gained by the model, by what rows tell of it, and by sets of values alone."""
    order = np.random.default_rng(seed).permutation(len(people))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    rates: dict[str, list[tuple[Reals, Reals]]] = {}
    for own, other in (halves, halves[::-1]):
        released = Released.of(people[own], masked[own], k)
        rows = released.rows(seed)[released.clusters.order]
        columns = [RowValues(column, None) for column in rows.T]
        learned = fit_relations([], columns, released.clusters.ends, block_of(k))
        assert learned is not None  # noqa: S101 - there is a model of the people too
        known = {
            "model": released.correlations, "rows": learned.loadings @ learned.loadings.T,
            "set": None,
        }  # fmt: skip
        for name, r in known.items():
            rates.setdefault(name, []).append(guessed(released, people[other], r))
    found = {}
    for name, both in rates.items():
        rate, control = np.mean(both, axis=0)
        gain = np.maximum((rate - control) / (1 - control), 0)
        found[name] = Gained(float(gain.mean()), float(gain.max()))
    return found


def main() -> None:
    """Print what is picked and gained."""
    table, roles = load_with_domains(CENSUS)
    people = table.to_numpy().astype(np.float64)
    plan = Plan(epsilon=1.0, anonymity=0, attributes=roles)
    masked = protect(table, plan, seed=1, keep_order=True).data.to_numpy().astype(np.float64)
    for k in CROWDS:
        released = Released.of(people, masked, k)
        chance = len(released.clusters.size) / len(people)
        found = picked(released, map(released.rows, range(DRAWS)))
        print(f"{k}: picks {found:.2%} of rows, chance {chance:.2%}")
        for name, gain in gained(people, masked, k).items():
            print(f"  by {name:<6} gains {gain.mean:.1%} on average, {gain.worst:.1%} at worst",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
