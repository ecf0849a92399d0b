"""Someone who has the model of exchange itself, and knows all else but the draws."""

import numpy as np
import pytest

from bench.known_model import Released, gained, picked
from microveil.types import Reals


def in_pairs(records: int) -> Reals:
    """Make three numbers that have nothing to do with each other, and one close to each."""
    random = np.random.default_rng(5)
    three = random.normal(size=(records, 3))
    return np.hstack([three, three + 0.2 * random.normal(size=(records, 3))])


def test_the_model_does_not_help_to_pick_a_row() -> None:
    people = in_pairs(400)
    released = Released.of(people, people, 10)
    assert picked(released, [people]) == 1  # what is not exchanged is found
    # Of 16,000 picks five deviations are 0.012; picks of one draw hardly depend on each other.
    assert picked(released, map(released.rows, range(40))) == pytest.approx(0.1, abs=0.012)


def test_the_model_tells_no_more_of_people_than_the_rows_do() -> None:
    people = in_pairs(800)
    found = gained(people, people, 25)
    assert found["model"].mean < found["rows"].mean + 0.03
    assert found["rows"].mean > found["set"].mean + 0.03  # relations do tell something
