"""Linkability: what two sources know of a person leads to the same released row."""

import numpy as np

from microveil.attacks.subject import Controlled, Scene, Subject, drawn_groups, nearest_to
from microveil.types import Integers, Reals


def linkability_by_parts(subject: Subject, seed: int) -> Controlled | None:
    """Link what two sources know of a person: both lead to the same released row.

    The attributes are parted in two at random, and the nearest rows by each part looked for. Giomi
    and others (2022), with one neighbour. None with a single attribute.
    """
    scene = subject.half(seed)
    order = np.random.default_rng(seed).permutation(scene.rows.shape[1])
    if len(order) < 2:
        return None
    parts = order[: len(order) // 2], order[len(order) // 2 :]
    groups = drawn_groups(scene, seed)
    rate, control = (_linkable(scene, group, parts) for group in groups)
    return Controlled(rate, control, len(groups[0]), len(groups[1]))


def _linkable(scene: Scene, group: Reals, parts: tuple[Integers, Integers]) -> float:
    one, two = (
        nearest_to(scene.space.place(group, part), scene.space.place(scene.rows, part))
        for part in parts
    )
    same = (one & two).sum(axis=1) / one.sum(axis=1) / two.sum(axis=1)
    return float(same.mean())
