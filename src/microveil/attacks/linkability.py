"""Linkability: what two sources know of a person leads to the same released row."""

import numpy as np

from microveil.attacks.inference import share_of_people
from microveil.attacks.subject import Controlled, Scene, Subject
from microveil.types import Integers, Reals

_PARTINGS = 3


def linkability_by_parts(subject: Subject, seed: int) -> Controlled | None:
    """Link what two sources know of a person: both lead to the same released row.

    The attributes are parted in two at random, three times, and the nearest rows by each part
    looked for, in releases of both halves. Giomi and others (2022), with one neighbour. None with a
    single attribute.
    """
    scenes = subject.halves(seed)
    attributes = scenes[0].rows.shape[1]
    if attributes < 2:
        return None
    random = np.random.default_rng(seed)
    orders = [random.permutation(attributes) for _ in range(_PARTINGS)]
    shares = []
    for of in (0, 1):
        groups = [(scene, scene.groups[of]) for scene in scenes]
        linked = [np.mean([_linkable(scene, group.values, order) for order in orders], axis=0)
                  for scene, group in groups]  # fmt: skip
        owners = np.concatenate([group.owner for _, group in groups])
        shares.append(share_of_people(np.concatenate(linked), owners))
    (rate, tried), (control, tried_control) = shares
    return Controlled(rate, control, tried, tried_control)


def _linkable(scene: Scene, values: Reals, order: Integers) -> Reals:
    one, two = (scene.nearest(values, part) for part in np.array_split(order, 2))
    same: Reals = (one & two).sum(axis=1) / one.sum(axis=1) / two.sum(axis=1)
    return same
