"""Attribute inference: guess one attribute of a person from all others."""

import numpy as np

from microveil.attacks.subject import Controlled, Scene, Subject, drawn_groups, nearest_to
from microveil.types import Reals

CLOSE = 0.05
"""In standard deviations: a number guessed so well is disclosed."""


def attribute_inference(subject: Subject, seed: int) -> Controlled | None:
    """Guess each attribute from all others, by the nearest released row.

    A number is guessed if it is within 0.05 standard deviations, a category if it is the same.
    Giomi and others (2022). None with a single attribute.
    """
    scene = subject.half(seed)
    attributes = range(scene.rows.shape[1])
    if len(attributes) < 2:
        return None
    people, outside = drawn_groups(scene, seed)
    guessed = [[_inferred(scene, group, a) for a in attributes] for group in (people, outside)]
    rate, control = (float(np.mean(shares)) for shares in guessed)
    return Controlled(rate, control, len(people), len(outside))


def _inferred(scene: Scene, group: Reals, secret: int) -> float:
    others = [a for a in range(group.shape[1]) if a != secret]
    near = nearest_to(scene.space.place(group, others), scene.space.place(scene.rows, others))
    values = group[:, secret, np.newaxis]
    away = np.abs(scene.rows[:, secret] - values)
    reach = 0.0 if secret in scene.nominal else CLOSE * _deviation(scene.people[:, secret])
    right = away <= reach
    known = ~np.isnan(values[:, 0])
    chances = (near & right).sum(axis=1) / near.sum(axis=1)
    return float(chances[known].mean()) if known.any() else 0.0


def _deviation(values: Reals) -> float:
    present = values[~np.isnan(values)]
    return float(present.std()) if len(present) else 0.0
