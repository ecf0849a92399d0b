"""Inference by joint cluster: guess whose crowd a person is in, and take its likeliest value.

Exchange leaves every value in its joint cluster. The attacker knows which rows form one, and all
of a person's attributes but one. He weighs the joint clusters by how well their values fit what he
knows, learns on the release how the secret attribute depends on the others, and pairs the values
in a joint cluster with its people by that. The guess is the value, or the number within reach of
most, that is likeliest over all joint clusters. Where nothing was pooled, every row is a joint
cluster by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from microveil.attacks.inference import inferred, reach_of
from microveil.attacks.sight import Scores
from microveil.attacks.subject import Controlled, Scene, Subject
from microveil.types import Booleans, Integers, Reals

_WIDTH, _NARROWEST = 0.3, 0.02  # of a kernel, in deviations within the joint cluster and in all
_ANYTHING = 1e-4  # likelihood of what a joint cluster does not have
_CROWDS, _CANDIDATES = 5, 40  # joint clusters and values that are weighed for a person
_MOST_CATEGORIES = 30  # of an attribute, that others are predicted from
_AT_ONCE = 4_000_000


def by_joint_cluster(subject: Subject, seed: int) -> dict[int, Controlled]:
    """Guess each attribute from all others, by the joint cluster they lead to; one for each."""
    return inferred(subject, seed, _guesses)


def _guesses(scene: Scene, values: Reals) -> Reals:
    right = np.zeros((len(values), len(scene.secrets)))
    for labels, secrets in _labellings(scene):
        crowds = _Crowds.of(scene, labels)
        few = max(16, _AT_ONCE // scene.rows.size)
        for first in range(0, len(values), few):
            part = slice(first, first + few)
            for secret, guess in crowds.guessed(values[part], secrets):
                close = np.abs(guess - values[part, secret]) <= reach_of(scene, secret)
                right[part, scene.secrets.index(secret)] = close
    return right


def _labellings(scene: Scene) -> Iterator[tuple[Integers, list[int]]]:
    """Give the joint clusters, and which secrets were exchanged in them."""
    ways, of = np.unique(scene.joint[:, scene.secrets], axis=1, return_inverse=True)
    for way in range(ways.shape[1]):
        yield ways[:, way], [a for a, own in zip(scene.secrets, of.ravel(), strict=True)
                             if own == way]  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Crowds:
    """Rows in the order of their joint clusters.

    `start` and `size` say where these are, `members` the same as a table that ends in −1.
    """

    scene: Scene
    rows: Reals
    start: Integers
    size: Integers
    members: Integers

    @classmethod
    def of(cls, scene: Scene, labels: Integers) -> "_Crowds":
        order = np.argsort(labels, kind="stable")
        _, start, size = np.unique(labels[order], return_index=True, return_counts=True)
        place = np.arange(size.max())
        members = np.where(place < size[:, np.newaxis], start[:, np.newaxis] + place, -1)
        return cls(scene, scene.rows[order], start, size, members)

    @cached_property
    def relations(self) -> "_Relations":
        return _Relations.of(self.rows, self.scene)

    @cached_property
    def pairings(self) -> dict[int, tuple["_Pairing", Reals]]:
        """How likely secrets are people's, and how many of the joint cluster want each of them."""
        found = {secret: self.relations.of_secret(secret) for secret in self.scene.secrets}
        return {secret: (pairing, self._wanted(pairing)) for secret, pairing in found.items()}

    def guessed(self, values: Reals, secrets: list[int]) -> Iterator[tuple[int, Reals]]:
        """Guess these secrets of people."""
        fits = [self._fit(values[:, a], a) for a in range(values.shape[1])]
        together = np.sum(fits, axis=0)
        known = self.relations.seen(values)
        for secret in secrets:
            yield secret, self._guess(together - fits[secret], known, secret)

    def _fit(self, values: Reals, attribute: int) -> Scores:
        """Return how likely a value is in every joint cluster, as logarithms: people × clusters."""
        rows = self.rows[:, attribute]
        if attribute in self.scene.nominal:
            found = self._share(values[:, np.newaxis] == rows)
        else:
            mean, one = self.scene.space.mean[attribute], self.scene.space.deviation[attribute]
            found = self._density((values - mean) / one, (rows - mean) / one)
        absent = np.isnan(values)
        if absent.any():
            found[absent] = self._share(np.isnan(rows)[np.newaxis])
        fit: Scores = np.log(found + np.float32(_ANYTHING))
        return fit

    def _share(self, which: Booleans | Scores) -> Scores:
        total = np.add.reduceat(which, self.start, axis=1, dtype=np.float32)
        return (total / self.size).astype(np.float32)

    def _density(self, values: Reals, rows: Reals) -> Scores:
        present = np.nan_to_num(rows)
        mean, square = (np.add.reduceat(each, self.start) / self.size
                        for each in (present, present**2))  # fmt: skip
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        width = np.maximum(_NARROWEST, _WIDTH * spread).repeat(self.size).astype(np.float32)
        away = values[:, np.newaxis].astype(np.float32) - rows.astype(np.float32)
        return self._share(np.nan_to_num(np.exp(-0.5 * (away / width) ** 2) / width))

    def _guess(self, fit: Scores, known: Reals, secret: int) -> Reals:
        """Return the likeliest value of every person."""
        crowds = np.argsort(-fit, axis=1)[:, :_CROWDS]
        fit = np.take_along_axis(fit, crowds, axis=1)
        trust = np.exp(fit - fit[:, :1])
        pairing, wanted = self.pairings[secret]
        held = self.members[crowds]
        people = np.arange(len(known))[:, np.newaxis, np.newaxis]
        likely = np.where(held >= 0, pairing.likely(pairing.expected(known), people, held), 0.0)
        likely /= np.maximum(wanted[held], 1e-12)
        likely /= np.maximum(likely.sum(axis=2, keepdims=True), 1e-30)
        weights = (likely * trust[:, :, np.newaxis]).reshape(len(known), -1)
        rows = held.reshape(len(known), -1)
        best = np.argsort(-weights, axis=1)[:, :_CANDIDATES]
        weights, rows = (np.take_along_axis(each, best, axis=1) for each in (weights, rows))
        return _heaviest(self.rows[rows, secret], weights, reach_of(self.scene, secret))

    def _wanted(self, pairing: "_Pairing") -> Reals:
        """Return how likely the value of every row is for all rows of its joint cluster."""
        there = self.members >= 0
        people, held = self.members[:, np.newaxis, :], self.members[:, :, np.newaxis]
        likely = pairing.likely(pairing.expected(self.relations.rows), people, held)
        wanted = np.where(there[:, np.newaxis, :], likely, 0.0).sum(axis=2)
        return np.append(wanted[there], 1.0)


def _heaviest(values: Reals, weights: Reals, reach: float) -> Reals:
    """Return of every line the value that has most weight within reach."""
    close = np.abs(values[:, :, np.newaxis] - values[:, np.newaxis, :]) <= reach
    most = np.argmax((close * weights[:, np.newaxis, :]).sum(axis=2), axis=1)
    return np.take_along_axis(values, most[:, np.newaxis], axis=1)[:, 0]


@dataclass(frozen=True, eq=False)
class _Relations:
    """How attributes depend on each other in the release: linear, by all others at once.

    `owns` says which attribute every column of the model is of, `codes` which category.
    """

    scene: Scene
    original: Reals
    owns: Integers
    codes: Reals
    middle: Reals
    scale: Reals
    precision: Reals

    @classmethod
    def of(cls, rows: Reals, scene: Scene) -> "_Relations":
        owns, codes = zip(*_model_columns(rows, scene), strict=True)
        raw = _columns(rows, np.array(owns), np.array(codes))
        middle = np.nanmean(raw, axis=0)
        scale = np.nanstd(raw, axis=0)
        scale[~(scale > 0)] = 1.0
        standard = np.nan_to_num((raw - middle) / scale)
        ridge = np.eye(len(owns)) * (1e-3 + len(owns) / len(rows))
        precision = np.linalg.inv(standard.T @ standard / len(rows) + ridge)
        return cls(scene, rows, np.array(owns), np.array(codes), middle, scale, precision)

    @cached_property
    def rows(self) -> Reals:
        return self.seen(self.original)

    def seen(self, table: Reals) -> Reals:
        """Return records as the model takes them."""
        return np.nan_to_num((_columns(table, self.owns, self.codes) - self.middle) / self.scale)

    def of_secret(self, secret: int) -> "_Pairing":
        """Return how likely values of an attribute are, given all others."""
        own = np.flatnonzero(self.owns == secret)
        within = np.linalg.inv(self.precision[np.ix_(own, own)])
        slopes = -self.precision[:, own] @ within
        slopes[own] = 0.0
        values = self.original[:, secret]
        if secret not in self.scene.nominal:
            values = (values - self.middle[own[0]]) / self.scale[own[0]]
            return _Pairing(slopes, values, None, float(within[0, 0]), self.middle, self.scale)
        place = np.full(len(values), len(own))
        for at, column in enumerate(own):
            place[values == self.codes[column]] = at
        return _Pairing(slopes, values, place, 1.0, self.middle[own], self.scale[own])


def _model_columns(rows: Reals, scene: Scene) -> Iterator[tuple[int, float]]:
    for a in range(rows.shape[1]):
        if a not in scene.nominal:
            yield a, np.nan
            continue
        codes, counts = np.unique(rows[~np.isnan(rows[:, a]), a], return_counts=True)
        frequent = codes[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]]
        yield from ((a, float(code)) for code in frequent)


def _columns(table: Reals, owns: Integers, codes: Reals) -> Reals:
    values = table[:, owns]
    return np.where(np.isnan(codes), values, np.where(np.isnan(values), np.nan, values == codes))


@dataclass(frozen=True, eq=False)
class _Pairing:
    """How likely the secret of rows belongs to people.

    Attributes
    ----------
    slopes
        What all other columns of the model add to the expected secret.
    values, place
        The secret of rows: a number, or the place of a category in the model.
    variance
        Of what is not explained.
    middle, scale
        Share of every category, and its deviation.
    """

    slopes: Reals
    values: Reals
    place: Integers | None
    variance: float
    middle: Reals
    scale: Reals

    def expected(self, known: Reals) -> Reals:
        """Return what to expect of people: a number, or a likelihood for every category."""
        expected: Reals = known @ self.slopes
        if self.place is None:
            return expected[:, 0]
        likely = np.clip(self.middle + self.scale * expected, 0.01, 1.0)
        return np.column_stack([likely, np.full(len(known), 0.01)])

    def likely(self, expected: Reals, people: Integers, rows: Integers) -> Reals:
        """Return how likely the secrets of rows are for people; 0 where one is missing."""
        if self.place is None:
            away = self.values[rows] - expected[people]
            return np.nan_to_num(np.exp(-0.5 * away**2 / self.variance))
        found: Reals = expected[people, self.place[rows]]
        return np.where(np.isnan(self.values[rows]), 0.0, found)
