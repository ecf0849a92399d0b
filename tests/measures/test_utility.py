import itertools
import statistics
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.linear_model import LogisticRegression

from microveil import DataError
from microveil.measures import distances as utility
from microveil.types import Reals

ORIGINAL = np.array([[0.0, 10.0], [2.0, 20.0], [4.0, 60.0]])
MASKED = np.array([[1.0, 10.0], [1.0, 30.0], [4.0, 50.0]])
# Variances 4 and 700. Squared moves: 1, 1, 0 and 0, 100, 100.


def test_mean_sse_by_hand() -> None:
    by_hand = ((1 / 4 + 0) + (1 / 4 + 100 / 700) + (0 + 100 / 700)) / 2**2 / 3
    assert utility.mean_sse(ORIGINAL, MASKED) == pytest.approx(by_hand, rel=1e-14)


def test_mean_sse_as_printed_by_hand() -> None:
    by_hand = (1 / 16 + (1 / 16 + 100 / 490_000) + 100 / 490_000) / 2**2 / 3
    measured = utility.mean_sse(ORIGINAL, MASKED, scale="variance")
    assert measured == pytest.approx(by_hand, rel=1e-14)


def test_a_constant_attribute_counts_nothing_while_it_is_unchanged() -> None:
    constant = np.full((3, 1), 0.1)
    original, masked = np.hstack([ORIGINAL, constant]), np.hstack([MASKED, constant])
    expected = utility.mean_sse(ORIGINAL, MASKED) * 2**2 / 3**2
    assert utility.mean_sse(original, masked) == pytest.approx(expected, rel=1e-14)


def test_a_constant_attribute_that_changed_has_no_scale() -> None:
    original, masked = np.full((3, 1), 0.1), np.array([[0.1], [0.1], [0.2]])
    with pytest.raises(DataError, match=r"attribute 0 .*constant in the original but changed"):
        utility.mean_sse(original, masked)


@pytest.mark.parametrize(
    ("masked", "message"),
    [
        (MASKED[:2], "same records .*found 3 and 2"),
        (MASKED[:, :1], "same attributes, found 2 and 1"),
        (MASKED[:, 0], r"records × attributes .*shape \(3,\)"),
        (np.where(MASKED == 30, np.nan, MASKED), r"numbers within .*, found 1 "),
        (np.where(MASKED == 30, 1e151, MASKED), r"numbers within .*, found 1 "),
        (np.where(MASKED == 30, np.inf, MASKED), r"numbers within .*, found 1 "),
    ],
)
def test_tables_that_do_not_match(masked: Reals, message: str) -> None:
    with pytest.raises(DataError, match=message):
        utility.mean_sse(ORIGINAL, masked)


def test_unknown_scale() -> None:
    with pytest.raises(DataError, match='must be "std" or "variance"'):
        utility.mean_sse(ORIGINAL, MASKED, scale="range")  # type: ignore[arg-type]


def test_sse_sst_by_hand() -> None:
    assert utility.sse_sst(ORIGINAL, MASKED) == pytest.approx([2 / 8, 200 / 1400], rel=1e-14)


def test_il1s_by_hand() -> None:
    by_hand = [(2 / 3) / (2**0.5 * 2), (20 / 3) / (2**0.5 * 700**0.5)]
    assert utility.il1s(ORIGINAL, MASKED) == pytest.approx(by_hand, rel=1e-14)


def test_il1s_of_cells_is_that_of_sdcmicro() -> None:
    """As sdcMicro adds it up, attribute by attribute, divided by the number of cells."""
    deviations = [statistics.stdev(column) for column in ORIGINAL.T.tolist()]
    total = sum(
        abs(x - y) / (2**0.5 * deviations[a])
        for row, masked_row in zip(ORIGINAL.tolist(), MASKED.tolist(), strict=True)
        for a, (x, y) in enumerate(zip(row, masked_row, strict=True))
    )
    assert utility.il1s(ORIGINAL, MASKED).mean() == pytest.approx(total / 6, rel=1e-14)


def test_differences_in_means_and_variances_by_hand() -> None:
    assert utility.mean_differences(ORIGINAL, MASKED) == pytest.approx([0, 0], abs=1e-15)
    assert utility.mean_differences(ORIGINAL, MASKED + 7) == pytest.approx(
        [7 / 2, 7 / 700**0.5], rel=1e-12
    )
    assert utility.variance_differences(ORIGINAL, MASKED) == pytest.approx(
        [3 / 4 - 1, 400 / 700 - 1], rel=1e-12
    )


def test_differences_in_quantiles_by_hand() -> None:
    original = np.arange(101.0)[:, np.newaxis]  # the quantile p is 100·p
    deviation = statistics.stdev(range(101))
    expected = 100 * np.array(utility.QUANTILES) / deviation
    measured = utility.quantile_differences(original, 2 * original)
    assert measured[:, 0] == pytest.approx(expected, rel=1e-12)


tables = st.integers(2, 4).flatmap(
    lambda m: st.tuples(
        arrays(np.float64, (12, m), elements=st.integers(-5, 5).map(float)),
        arrays(np.float64, (9, m), elements=st.integers(-5, 5).map(float)),
    )
)


@given(tables)
def test_correlations_are_those_of_scipy(pair: tuple[Reals, Reals]) -> None:
    original, masked = pair
    assume(all(np.ptp(column) > 0 for table in pair for column in table.T))
    pearson = utility.correlation_differences(original, masked)
    spearman = utility.correlation_differences(original, masked, "spearman")
    for a, b in itertools.combinations(range(original.shape[1]), 2):
        expected = [
            scipy_measure(masked[:, a], masked[:, b]).statistic
            - scipy_measure(original[:, a], original[:, b]).statistic
            for scipy_measure in (scipy.stats.pearsonr, scipy.stats.spearmanr)
        ]
        assert [pearson[a, b], spearman[a, b]] == pytest.approx(expected, abs=1e-12)


def test_correlations_of_one_attribute() -> None:
    assert utility.correlation_differences(ORIGINAL[:, :1], MASKED[:, :1]).tolist() == [[0.0]]


@pytest.mark.parametrize("kind", ["pearson", "spearman"])
@pytest.mark.parametrize("where", ["original", "masked"])
def test_constant_attributes_have_no_correlations(kind: utility.Correlation, where: str) -> None:
    constant = np.column_stack([ORIGINAL[:, 0], np.full(3, 0.1)])
    pair = (constant, MASKED) if where == "original" else (ORIGINAL, constant)
    with pytest.raises(DataError, match=rf"attribute 1 .*constant in {where}"):
        utility.correlation_differences(*pair, kind)


def test_constant_attributes_have_no_variance_to_compare() -> None:
    with pytest.raises(DataError, match=r"attribute 0 .*constant in original"):
        utility.variance_differences(np.ones((3, 1)), ORIGINAL[:, :1])
    with pytest.raises(DataError, match="two records or more"):
        utility.variance_differences(ORIGINAL, MASKED[:1])


RNG = np.random.default_rng(1)
NORMAL, HEAVY, HALF = RNG.normal(size=(80, 3)), RNG.standard_cauchy((80, 3)), RNG.random(80) < 0.5


@pytest.mark.parametrize(
    ("original", "masked"),
    [
        (NORMAL, RNG.normal(0.4, 1.5, size=(60, 3))),
        (NORMAL[:20], NORMAL + 1e-6),
        (HEAVY, RNG.standard_cauchy((60, 3)) * 3 + 1),
        (HEAVY, np.clip(HEAVY + RNG.laplace(0, 5, size=(80, 3)), 0, 20)),
        (NORMAL, np.column_stack([np.where(HALF, 9, NORMAL[:, 0]), NORMAL[:, 1:]])),
        (NORMAL, NORMAL + 8),
    ],
    ids=["near", "nearer", "heavy tails", "cut off", "half apart", "apart"],
)
def test_pmse_against_scikit_learn(original: Reals, masked: Reals) -> None:
    measured = utility.propensity(original, masked)
    stacked = np.vstack([original, masked])
    is_masked = np.repeat([0, 1], [len(original), len(masked)])
    model = LogisticRegression(C=np.inf, solver="newton-cg", tol=1e-10, max_iter=10_000)
    with warnings.catch_warnings(action="ignore"):  # of tables apart, it does not converge
        scores = model.fit(scipy.stats.zscore(stacked), is_masked).predict_proba(
            scipy.stats.zscore(stacked)
        )[:, 1]
    share, total = float(np.mean(is_masked)), len(stacked)
    assert measured.pmse == pytest.approx(np.mean((scores - share) ** 2), abs=1e-6)
    assert measured.expected == pytest.approx(3 * (1 - share) ** 2 * share / total, rel=1e-12)
    assert measured.ratio == pytest.approx(measured.pmse / measured.expected, rel=1e-12)


def test_pmse_ratio_is_near_1_for_records_drawn_anew() -> None:
    rng = np.random.default_rng(2)
    original = rng.normal(size=(300, 4))
    drawn = (original[rng.integers(300, size=200)] for _ in range(200))
    ratios = [utility.propensity(original, masked).ratio for masked in drawn]
    # With 4 degrees of freedom a ratio is about χ²/4: mean 1, standard error sqrt(2/4/200) = 0.05.
    assert np.mean(ratios) == pytest.approx(1, abs=0.2)


def test_pmse_counts_no_parameter_for_a_total() -> None:
    rng = np.random.default_rng(3)
    original, masked = rng.normal(size=(50, 2)), rng.normal(size=(50, 2))
    with_totals = [np.column_stack([t, t.sum(axis=1), np.ones(50)]) for t in (original, masked)]
    plain, measured = utility.propensity(original, masked), utility.propensity(*with_totals)
    assert measured.expected == plain.expected
    assert measured.pmse == pytest.approx(plain.pmse, rel=1e-6)


def test_pmse_of_tables_far_apart_is_at_its_maximum() -> None:
    rng = np.random.default_rng(4)
    original = rng.normal(size=(50, 2))
    assert utility.propensity(original, original + 1e6).pmse == pytest.approx(0.25, rel=1e-3)
    assert utility.propensity(original, original[::-1]).pmse == pytest.approx(0, abs=1e-12)


def test_pmse_of_constants() -> None:
    with pytest.raises(DataError, match="every attribute is constant"):
        utility.propensity(np.ones((3, 1)), np.ones((3, 1)))
