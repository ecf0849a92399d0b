import numpy as np
import pytest

from microveil import DataError
from microveil.evaluate import utility
from microveil.grid import Reals

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
        (np.where(MASKED == 30, np.nan, MASKED), "finite numbers, found 1 "),
        (np.where(MASKED == 30, np.inf, MASKED), "finite numbers, found 1 "),
    ],
)
def test_tables_that_do_not_match(masked: Reals, message: str) -> None:
    with pytest.raises(DataError, match=message):
        utility.mean_sse(ORIGINAL, masked)


def test_unknown_scale() -> None:
    with pytest.raises(DataError, match='must be "std" or "variance"'):
        utility.mean_sse(ORIGINAL, MASKED, scale="range")  # type: ignore[arg-type]
