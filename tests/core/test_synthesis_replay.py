"""The exact privacy loss of whole runs on neighbouring tables; a forgotten sensitivity is found."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from microveil.core.budget import PrivacyBudget, Sensitivity, rho_within
from microveil.core.random_words import SeededWords
from microveil.core.synthesis.cells import AnyCells, CategoryCells, NumberCells
from microveil.core.synthesis.coded_records import CodedRecords
from microveil.core.synthesis.mechanism import TableLearner
from microveil.core.synthesis.replay import replayed_loss

AGE = NumberCells("age", 0.0, 99.0, 1.0, missing=True)
WAGES = NumberCells("wages", 0.0, 1e6, 0.01, log=True, atoms=(0.0,))
CELLS: list[AnyCells] = [
    AGE,
    WAGES,
    CategoryCells("sex", 2),
    CategoryCells("region", 4, missing=True),
]
RUNS = 60


def table(n: int = 300) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    age = random.integers(18, 90, n).astype(float)
    wages = np.where(age < 66, random.lognormal(10, 0.5, n), 0.0)
    return [
        AGE.encode(np.where(random.random(n) < 0.05, np.nan, age)),
        WAGES.encode(wages),
        (random.random(n) < 0.4 + 0.2 * (age < 66)).astype(np.uint16),
        random.integers(0, 5, n).astype(np.uint16),
    ]


def run_on(
    tables: Sequence[Sequence[np.ndarray]], seed: int, most: int = 1, predicted: int | None = None
) -> Callable[[PrivacyBudget, int], object]:
    def run(budget: PrivacyBudget, which: int) -> object:
        made = TableLearner(
            CELLS, budget, most=most, predicted=predicted, source=SeededWords(seed, "rows"),
            support=500,
        ).learn(CodedRecords(tables[which]))  # fmt: skip
        assert budget.left == 0
        return made

    return run


def losses(
    epsilon: float, delta: float, *, most: int = 1, predicted: int | None = None, runs: int = RUNS
) -> np.ndarray:
    """Losses for tables that differ in the records of one person, whose values are extreme."""
    whole = table()
    tail = [np.array([AGE.encode(np.array([99.0]))[0]] * most)]
    tail += [np.array([WAGES.encode(np.array([1e6]))[0]] * most)]
    tail += [np.array([code] * most, np.uint16) for code in (1, 3)]
    larger = [np.concatenate([column, last]) for column, last in zip(whole, tail, strict=True)]
    pairs = [(whole, larger), (larger, whole)]
    return np.array([
        replayed_loss(
            run_on(pairs[seed % 2], seed, most, predicted),
            epsilon, delta, SeededWords(seed, "noise"),
        )
        for seed in range(runs)
    ])  # fmt: skip


@pytest.mark.parametrize(("epsilon", "most", "predicted"), [(6.0, 1, None), (6.0, 3, 2)])
def test_pure_loss_is_within_epsilon_in_every_run(
    epsilon: float, most: int, predicted: int | None
) -> None:
    found = losses(epsilon, 0.0, most=most, predicted=predicted, runs=20)
    assert np.abs(found).max() <= epsilon + 1e-9
    assert np.abs(found).max() > epsilon / 4  # so that a sensitivity forgotten would be seen


@pytest.mark.parametrize(("epsilon", "predicted"), [(3.0, None), (0.3, 2)])
def test_gaussian_loss_has_mean_and_variance_within_rho(
    epsilon: float, predicted: int | None
) -> None:
    rho = float(rho_within(epsilon, 1e-5))
    found = losses(epsilon, 1e-5, predicted=predicted)
    # of ρ-zCDP: mean ≤ ρ, variance ≤ 2ρ, each up to six standard errors
    assert found.mean() <= rho + 6 * np.sqrt(2 * rho / len(found))
    assert found.var() <= 2 * rho * (1 + 6 * np.sqrt(2 / len(found)))
    for order in (2.0, 4.0):
        moment = np.exp((order - 1) * found)
        error = moment.std() / np.sqrt(len(found))
        assert moment.mean() - 6 * error <= np.exp(order * (order - 1) * rho)
    assert found.var() > rho / 2  # or a bug could hide


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_finds_a_sensitivity_that_is_too_small(
    delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgets(_: TableLearner, sums: int, length: int = 1) -> Sensitivity:
        return Sensitivity(max(1, sums * length // 4), max(1, sums * length**2 // 9))

    monkeypatch.setattr(TableLearner, "_moves", forgets)
    found = losses(3.0, delta, runs=RUNS if delta else 20)
    if delta == 0:
        assert np.abs(found).max() > 3.0
    else:
        rho = float(rho_within(3.0, delta))
        assert found.var() > 2 * rho * (1 + 6 * np.sqrt(2 / len(found)))
