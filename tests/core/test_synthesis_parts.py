"""Cells, margins and models of synthetic tables, by hand and by what they must never do."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil.core.budget import ONE_RECORD, PrivacyBudget
from microveil.core.random_words import SeededWords
from microveil.core.synthesis.cells import AnyCells, CategoryCells, NumberCells
from microveil.core.synthesis.coded_records import CodedRecords
from microveil.core.synthesis.copula import GRID, CellScores, estimate_copula, nearest_correlation
from microveil.core.synthesis.margins import Margin, to_totals, tree_counts
from microveil.core.synthesis.mechanism import LearntTable, TableLearner


def test_cells_of_few_values_hold_one_each() -> None:
    cells = NumberCells("rooms", 1.0, 9.0, 1.0, missing=True)
    assert (cells.values, cells.levels, cells.body, cells.size, cells.open) == (9, 2, 16, 17, 9)
    codes = cells.encode(np.array([1.0, 9.0, 100.0, -3.0, 4.4, np.nan]))
    assert codes.tolist() == [0, 8, 8, 0, 3, 16]
    assert cells.coarser(1).cell_of_code[codes].tolist() == [0, 2, 2, 0, 0, 4]
    drawn = cells.coarser(1).decode(np.array([0, 2, 4]), np.array([0.99, 0.99, 0.5]))
    assert drawn[:2].tolist() == [4.0, 9.0]
    assert np.isnan(drawn[2])


def test_atoms_have_cells_of_their_own_at_their_place() -> None:
    cells = NumberCells("wages", 0.0, 1000.0, 0.01, atoms=(0.0, 500.0)).coarser(1)
    assert cells.encode(np.array([0.0, 500.0, 500.01])).tolist() == [4096, 4097, 2048]
    assert cells.order.tolist() == [4, 0, 1, 5, 2, 3]
    assert cells.decode(np.array([4, 5]), np.zeros(2)).tolist() == [0.0, 500.0]


@settings(deadline=None, max_examples=40)
@given(
    lower=st.integers(-1000, 1000),
    values=st.integers(2, 10**6),
    step=st.sampled_from([1.0, 0.5, 0.01]),
    log=st.booleans(),
    depth=st.integers(1, 6),
    within=st.floats(0, 1, exclude_max=True),
)
def test_drawn_values_are_in_the_cell_they_were_drawn_from(
    lower: int, values: int, step: float, log: bool, depth: int, within: float
) -> None:
    cells = NumberCells("x", float(lower), lower + (values - 1) * step, step, log).coarser(depth)
    which = np.arange(cells.open)[:: max(1, cells.open // 16)]
    drawn = cells.decode(which, np.full(len(which), within))
    assert drawn.min() >= cells.lower
    assert drawn.max() <= cells.upper
    found = cells.cell_of_code[cells.encode(drawn)]
    # on a logarithmic scale, values are rounded to steps that may be wider than cells
    assert log or (found == which).all()


def test_sums_are_those_of_the_records() -> None:
    random = np.random.default_rng(0)
    codes = [random.integers(0, size, 500).astype(np.uint16) for size in (3, 5, 2)]
    records = CodedRecords(codes)
    assert records.count() == 500
    assert [c.sum() for c in records.one_way([3, 5, 2])] == [500] * 3
    scores = [random.integers(-9, 9, (size, 2)) for size in (3, 5, 2)]
    rows = np.hstack([table[of_one] for table, of_one in zip(scores, codes, strict=True)])
    assert (records.products(scores) == rows.T @ rows).all()
    bins = [np.array([0, 1, 1]), np.arange(5), np.array([0, 0])]
    table = records.pairs(bins)[0, 1].reshape(2, 5)
    assert table[1, 4] == ((codes[0] > 0) & (codes[1] == 4)).sum()
    parts = records.parts(1, 6)
    assert [part.count() for part in parts] == [*np.bincount(codes[1]), 0]
    assert (parts[2].one_way([3, 2])[0] == np.bincount(codes[0][codes[1] == 2], minlength=3)).all()
    assert parts[2].parts(0, 3)[1].count() == ((codes[0] == 1) & (codes[1] == 2)).sum()


def test_rows_are_moved_to_their_totals() -> None:
    assert to_totals(np.array([[3.0, 1.0, -2.0]]), np.array([2.0])).tolist() == [[2.0, 0.0, 0.0]]


def test_counts_of_a_tree_without_noise_are_themselves() -> None:
    leaves = np.array([5, 0, 7, 1, 9, 0, 0, 3, 2, 2, 2, 2, 0, 0, 0, 8], dtype=float)
    levels = [leaves.reshape(4, 4).sum(axis=1), leaves]
    assert np.allclose(tree_counts(levels, 1e-9, 41.0, 16), leaves)
    assert tree_counts(levels, 1e-9, 33.0, 12)[12:].tolist() == [0.0] * 4


def test_correlations_of_normal_numbers_are_found() -> None:
    """From exact sums of products: r = 0.6 between two numbers, one with a skew distribution."""
    random = np.random.default_rng(1)
    z = random.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 200_000)
    cells = [NumberCells("x", -6, 6, 0.001), NumberCells("y", 0, 400, 0.001)]
    codes = [c.encode(v) for c, v in zip(cells, (z[:, 0], np.exp(z[:, 1])), strict=True)]
    records = CodedRecords(codes)
    margins = [
        Margin(c, counts.astype(float))
        for c, counts in zip(cells, records.one_way([4096, 4096]), strict=True)
    ]
    scores = [CellScores(margin) for margin in margins]
    sums = records.products([one.table for one in scores]) / (GRID**2 * 200_000)
    assert estimate_copula(sums, scores, 0.0)[0, 1] == pytest.approx(0.6, abs=0.02)
    assert abs(estimate_copula(sums, scores, 1.0)[0, 1]) < 0.01  # all of it could be noise


def test_correlations_become_possible_ones() -> None:
    wrong = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1.0]])
    assert np.linalg.eigvalsh(nearest_correlation(wrong))[0] > 0


def learnt(
    records: CodedRecords, cells: list[AnyCells], epsilon: float, predicted: int | None = None
) -> tuple[LearntTable, PrivacyBudget]:
    budget = PrivacyBudget(epsilon, 1e-5, SeededWords(1))
    mechanism = TableLearner(
        cells, budget, most=1, predicted=predicted, source=SeededWords(2), support=5_000
    )
    return mechanism.learn(records), budget


@pytest.mark.parametrize("predicted", [None, 1])
def test_rows_have_the_relations_of_the_records(predicted: int | None) -> None:
    random = np.random.default_rng(3)
    x = random.integers(0, 100, n := 4_000 if predicted is None else 300)
    number = NumberCells("x", 0, 99, 1.0)
    cells: list[AnyCells] = [number, CategoryCells("sex", 2), CategoryCells("of", 3)]
    sex = (x > 60).astype(np.uint16)
    records = CodedRecords([number.encode(x.astype(float)), sex, (x // 34).astype(np.uint16)])
    made, budget = learnt(records, cells, 2.0 if predicted is None else 1.5, predicted)
    assert budget.left == 0
    assert (made.predicted is None) == (predicted is None)
    assert abs(made.records - n) < 100
    rng = np.random.default_rng(4)
    rows = np.hstack([np.array(made.rows(part, part.records, rng)) for part in made.parts])
    assert abs(rows[0].mean() - x.mean()) < 8
    assert np.corrcoef(rows[0], rows[1])[0, 1] > 0.6
    assert np.corrcoef(rows[0], rows[2])[0, 1] > 0.75


@pytest.mark.parametrize("records", [0, 1, 3])
def test_hardly_any_records_give_rows_all_the_same(records: int) -> None:
    cells: list[AnyCells] = [NumberCells("x", 0, 99, 1.0), CategoryCells("sex", 2, missing=True)]
    few = CodedRecords([np.zeros(records, np.uint16)] * 2)
    made, _ = learnt(few, cells, 1.0, predicted=1)
    for part in made.parts:
        assert made.rows(part, 5, np.random.default_rng(0))[0].shape == (5,)


def test_budgets_of_parts_count_once() -> None:
    whole = PrivacyBudget(1.0, 0.0, SeededWords(1))
    whole.counts(np.zeros(1, int), Fraction(1, 4), ONE_RECORD, "first")
    parts = [whole.beside(), whole.beside()]
    for part, share in zip(parts, (Fraction(1, 2), Fraction(3, 4)), strict=True):
        part.counts(np.zeros(1, int), share, ONE_RECORD, "part")
    with pytest.raises(ValueError, match="does not hold"):
        parts[0].counts(np.zeros(1, int), Fraction(1, 2), ONE_RECORD, "too much")
    whole.spend_beside(parts)
    assert whole.left == 0
