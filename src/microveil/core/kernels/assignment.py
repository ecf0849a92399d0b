"""Compiled loops of the linkage attacks, imported only when they are run.

Person i may be given row `candidates[i, j]` of the release. Of one attribute, `labels` number the
masked values of the rows and `places` the values of people; tables have a row for every place and a
column for every masked value.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.kernels.compiled import compiled
from microveil.types import Integers, Reals

Odds = NDArray[np.float32]


@compiled()
def score(
    odds: Odds, places: Integers, labels: Integers, candidates: NDArray[Any], out: Odds
) -> None:
    """Add the log-odds of one attribute to the score of every person and candidate row."""
    for i in range(len(candidates)):
        row = odds[places[i]]
        for j in range(candidates.shape[1]):
            out[i, j] += row[labels[candidates[i, j]]]


@compiled()
def match_softly(
    scores: Odds, candidates: NDArray[Any], rows: int, rounds: int, everybody: bool
) -> None:
    """Turn scores into chances of matches: a person has one row, a row one person at most."""
    people, width = candidates.shape
    for i in range(people):
        best = scores[i].max()
        for j in range(width):
            scores[i, j] = np.exp(scores[i, j] - best)
    total, free = np.empty(rows), np.empty(rows, np.float32)
    for _ in range(rounds):
        total[:] = 0.0
        for i in range(people):
            for j in range(width):
                total[candidates[i, j]] += scores[i, j]
        for row in range(rows):
            free[row] = 1 / np.maximum(total[row], 1e-30 if everybody else 1.0)
        for i in range(people):
            own = np.float32(0.0)
            for j in range(width):
                scores[i, j] *= free[candidates[i, j]]
                own += scores[i, j]
            share = np.float32(1 / np.maximum(own, 1e-30))
            for j in range(width):
                scores[i, j] *= share


@compiled(fastmath={"reassoc", "contract"})
def match_all_softly(scores: Odds, rounds: int, everybody: bool) -> None:
    """Do as `match_softly` does where every person may be given any row, in this order."""
    people, rows = scores.shape
    for i in range(people):
        best = scores[i].max()
        for j in range(rows):
            scores[i, j] = np.exp(scores[i, j] - best)
    least = np.float32(1e-30 if everybody else 1.0)
    total, free = np.empty(rows, np.float32), np.empty(rows, np.float32)
    for _ in range(rounds):
        total[:] = 0.0
        for i in range(people):
            for j in range(rows):
                total[j] += scores[i, j]
        for j in range(rows):
            free[j] = 1 / max(total[j], least)
        for i in range(people):
            own = np.float32(0.0)
            for j in range(rows):
                scores[i, j] *= free[j]
                own += scores[i, j]
            share = np.float32(1 / np.maximum(own, 1e-30))
            for j in range(rows):
                scores[i, j] *= share


@compiled()
def learn(
    chances: Odds, places: Integers, labels: Integers, candidates: NDArray[Any], counts: Reals
) -> None:
    """Count by place and masked value of one attribute who has been matched with what."""
    for i in range(len(candidates)):
        row = counts[places[i]]
        for j in range(candidates.shape[1]):
            row[labels[candidates[i, j]]] += chances[i, j]


@compiled()
def assign(candidates: Integers, values: Odds, rows: int, step: float, outside: float) -> Integers:
    """Give people rows one to one by auction; −1 to those who give up.

    Everybody bids for the best of their candidate rows at current prices (Bertsekas 1979), and
    gives up once it costs more than `outside`. The total is within `step` per person of the best.
    """
    people, width = candidates.shape
    price, owner = np.zeros(rows), np.full(rows, -1)
    given, queue = np.full(people, -1), np.arange(people)
    head, waiting = 0, people
    while waiting > 0:
        i = queue[head]
        head, waiting = (head + 1) % people, waiting - 1
        best, second, wanted = -np.inf, values[i].max() - outside, -1
        for j in range(width):
            net = values[i, j] - price[candidates[i, j]]
            if net > best:
                best, second, wanted = net, max(second, best), candidates[i, j]
            elif net > second:
                second = net
        if best < second:
            continue
        price[wanted] += best - second + step
        loser, owner[wanted], given[i] = owner[wanted], i, wanted
        if loser >= 0:
            given[loser] = -1
            queue[(head + waiting) % people] = loser
            waiting += 1
    return given
