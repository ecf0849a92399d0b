"""What a claim is, and how it is judged."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from microveil.lab.paper.curves import Curves
from microveil.lab.paper.diagnosis import Diagnosis

ClaimVerdict = Literal["holds", "differs", "does not hold"]

_HOLDS, _FAILS = 0.9, 0.5


@dataclass(frozen=True)
class Case:
    """One situation a claim speaks of.

    `met` runs from 0 (the contrary) to 1 (as claimed); where many curves or values of k are looked
    at it is their share, and 0.5 also stands for a smaller effect in this direction. None is
    a figure shown for comparison only.
    """

    dataset: str
    figure: str
    met: float | None
    epsilon: float | None = None


@dataclass(frozen=True)
class Evidence:
    """What reasons look at."""

    curves: Curves
    diagnosis: Diagnosis


Judge = Callable[[Curves], Sequence[Case]]
Reason = Callable[[Evidence], str]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, and how it is put to the test.

    `figure` says in words what the cases' figures are, `reason` why ours differ, if they do.
    """

    section: str
    quotation: str
    criterion: str
    figure: str
    judge: Judge
    about_sse: bool = False
    reason: Reason | None = None


def judge_claim(cases: Iterable[Case]) -> ClaimVerdict:
    """Judge a claim: it holds if it is met in nine of ten cases, and not if in less than half.

    Examples
    --------
    >>> judge_claim([Case("Census", "1", met=1.0), Case("Wine Quality", "0", met=0.0)])
    'differs'
    """
    met = float(np.mean([case.met for case in cases if case.met is not None]))
    if met >= _HOLDS:
        return "holds"
    return "differs" if met >= _FAILS else "does not hold"


def measured(cases: Sequence[Case]) -> str:
    """Write figures in one line: data sets separated by semicolons, ε by strokes.

    Examples
    --------
    >>> measured([Case("Census", "0.9", 1.0, 0.01), Case("Census", "0.8", 1.0, 1.0)])
    'Census 0.9 | 0.8 (ε = 0.01 | 1)'
    """
    parts = []
    for dataset, group in groupby(cases, key=lambda case: case.dataset):
        listed = list(group)
        figures = " | ".join(case.figure for case in listed)
        epsilons = " | ".join(f"{case.epsilon:g}" for case in listed if case.epsilon is not None)
        parts.append(f"{dataset} {figures}" + (f" (ε = {epsilons})" if epsilons else ""))
    return "; ".join(parts)
