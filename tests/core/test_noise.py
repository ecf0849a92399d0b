"""The sampler against the exact distribution, and against a vetted library's."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from microveil import Confidential, Plan, protect
from microveil.core import random_words
from microveil.core.noise import CUT_OFF, LARGEST_SCALE, add_discrete_laplace
from microveil.core.random_words import SeededWords, SystemWords, random_order
from microveil.types import Integers

DRAWS = 200_000


def draw(scale: int, count: int = DRAWS, seed: int = 7) -> Integers:
    zeros = np.zeros(count, dtype=np.int64)
    return add_discrete_laplace(zeros, np.full(count, scale), SeededWords(seed))


def cells(scale: float) -> Integers:
    """Edges of about forty cells that cover four scales on either side of zero."""
    step = max(1, round(scale / 5))
    edges: Integers = np.arange(-20, 21) * step
    return edges


def p_value(sample: Integers, scale: float) -> float:
    """Chi-square test of a sample against the discrete Laplace distribution of a scale."""
    edges = cells(scale)
    law = stats.dlaplace(1 / scale)
    expected = np.diff(np.concatenate([[0], law.cdf(edges), [1]])) * len(sample)
    observed = np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1)
    wide = expected > 5
    return float(
        stats.chisquare(
            np.append(observed[wide], observed[~wide].sum()),
            np.append(expected[wide], expected[~wide].sum() + 1e-9),
            sum_check=False,
        ).pvalue
    )


@pytest.mark.parametrize("scale", [1, 2, 3, 17, 1000, 2**33 + 5, 2**50])
def test_accepts_the_true_scale_and_rejects_others(scale: int) -> None:
    sample = draw(scale)
    assert p_value(sample, scale) > 1e-4
    assert p_value(sample, scale * 1.3) < 1e-12
    assert p_value(sample, scale * 0.7) < 1e-12


@pytest.mark.parametrize("scale", [1, 5])
def test_zero_is_as_likely_as_it_should_be(scale: int) -> None:
    # P(0) = (e^(1/t) − 1)/(e^(1/t) + 1): a sampler that forgets to reject −0 doubles it.
    zero = np.tanh(1 / (2 * scale))
    count = int(np.count_nonzero(draw(scale) == 0))
    assert stats.binomtest(count, DRAWS, zero).pvalue > 1e-4


def test_system_words_give_the_same_distribution() -> None:
    zeros = np.zeros(DRAWS, dtype=np.int64)
    sample = add_discrete_laplace(zeros, np.full(DRAWS, 50), SystemWords())
    assert p_value(sample, 50) > 1e-6
    assert p_value(sample, 65) < 1e-12


def test_agrees_with_opendp() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    count, scale = 20_000, 20
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = space >> dp.m.then_laplace(scale=float(scale))
    oracle = np.array(mechanism([0] * count))
    edges = cells(scale)

    def same(ours: Integers) -> float:
        table = [np.bincount(np.searchsorted(edges, x), minlength=42) for x in (ours, oracle)]
        filled = np.array(table)[:, np.sum(table, axis=0) > 10]
        return float(stats.chi2_contingency(filled).pvalue)

    assert same(draw(scale, count)) > 1e-4
    assert same(draw(round(scale * 1.3), count)) < 1e-9
    assert same(draw(round(scale * 0.7), count)) < 1e-9


def test_scales_differ_per_centroid_and_zero_adds_nothing() -> None:
    centroids = np.tile(np.array([10, -20, 30]), 50_000)
    scales = np.tile(np.array([0, 4, 400]), 50_000)
    masked = add_discrete_laplace(centroids, scales, SeededWords(3)) - centroids
    assert np.all(masked[0::3] == 0)
    assert p_value(masked[1::3], 4) > 1e-4
    assert p_value(masked[2::3], 400) > 1e-4


@pytest.mark.parametrize("most", [1, 13, 1000])
def test_how_words_are_cut_does_not_matter(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(1000, 500)
    monkeypatch.setattr(random_words, "_MOST_WORDS", most)
    assert np.array_equal(draw(1000, 500), whole)


def test_seeds_and_purposes_have_streams_of_their_own() -> None:
    def stream(seed: int, purpose: str) -> list[int]:
        words: list[int] = SeededWords(seed, purpose).words(4).tolist()
        return words

    assert stream(1, "age") == stream(1, "age")
    assert stream(1, "age") != stream(1, "wages")
    assert stream(1, "age") != stream(2, "age")


@pytest.mark.parametrize("scale", [2**57, 2**60, LARGEST_SCALE])
def test_results_are_cut_off_instead_of_wrapping_around(scale: int) -> None:
    centre = 2**60
    masked = add_discrete_laplace(np.full(DRAWS, centre), np.full(DRAWS, scale), SeededWords(1))
    assert np.abs(masked).max() <= CUT_OFF
    for cut, distance in ((CUT_OFF, CUT_OFF - centre), (-CUT_OFF, CUT_OFF + centre)):
        beyond = float(np.exp(-distance / scale) / 2)
        count = int(np.count_nonzero(masked == cut))
        assert stats.binomtest(count, DRAWS, beyond).pvalue > 1e-4


def test_low_bits_do_not_tell_values_apart() -> None:
    # Noise added in floating point leaves bits below the grid that depend on the value.
    plan = Plan.published(
        epsilon=1.0, method="DP", attributes={"x": Confidential(lower=0, upper=1)}
    )
    step = 2.0**-40
    for value in (0.0, 1.0, 1 / 3):
        table = pl.DataFrame({"x": [value] * 1000})
        masked = protect(table, plan, seed=1, keep_order=True).data["x"].to_numpy()
        assert np.all(masked / step == np.rint(masked / step))


def test_random_order_is_a_permutation_without_favourites() -> None:
    assert sorted(random_order(1000, SystemWords()).tolist()) == list(range(1000))
    firsts = np.bincount([random_order(5, SystemWords())[0] for _ in range(5000)], minlength=5)
    assert stats.chisquare(firsts).pvalue > 1e-6
