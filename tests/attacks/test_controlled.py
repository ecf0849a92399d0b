"""Every attack succeeds where nothing is hidden, and is at its control where nothing is told."""

import numpy as np
import pytest

from microveil.attacks.attack_rows import ATTACKS, CONTROLLED, Attack
from microveil.attacks.inference import by_nearest_row
from microveil.attacks.intervals import interval_disclosure
from microveil.attacks.joint_inference import by_joint_cluster
from microveil.attacks.linkability import linkability_by_parts
from microveil.attacks.neighbour import neighbour_reconstruction
from microveil.attacks.subject import Controlled, Coordinates, ReleasedRows, Subject, nearest_to
from microveil.types import Integers, Reals

PEOPLE = 300
NOMINAL = (4,)


def population(seed: int, number: int = PEOPLE) -> Reals:
    """Correlated numbers, and a category."""
    random = np.random.default_rng(seed)
    shared = random.normal(size=(number, 1))
    numbers = np.exp(0.5 * (shared + random.normal(size=(number, 4))))
    return np.column_stack([numbers, random.integers(0, 5, number)])


def as_they_are() -> Subject:
    people = population(1)
    return Subject(people, NOMINAL, lambda chosen, _: ReleasedRows(people[chosen]))


def of_others() -> Subject:
    """Releases other people of the same population."""

    def release(chosen: Integers, seed: int) -> ReleasedRows:
        return ReleasedRows(population(seed + 1_000, len(chosen)))

    return Subject(population(1), NOMINAL, release)


def made(attack: Attack, subject: Subject, seed: int = 1) -> Controlled | None:
    assert attack.with_control is not None
    return attack.with_control(subject, seed)


@pytest.mark.parametrize("attack", CONTROLLED, ids=lambda attack: attack.id)
def test_it_succeeds_where_nothing_is_hidden(attack: Attack) -> None:
    found = made(attack, as_they_are())
    assert found is not None
    assert found.low > 0.3
    assert found.low <= found.risk <= found.high


@pytest.mark.parametrize("attack", CONTROLLED, ids=lambda attack: attack.id)
def test_it_is_at_its_control_where_nothing_is_told(attack: Attack) -> None:
    found = made(attack, of_others())
    assert found is not None
    assert found.low == 0
    assert found.risk < 0.15


def test_the_risk_is_what_is_gained_over_the_control() -> None:
    found = Controlled(rate=0.6, control=0.2, tried=100, tried_control=100)
    assert found.risk == pytest.approx(0.5)
    assert Controlled(0.1, 0.2, 100, 100).risk == 0
    assert Controlled(1.0, 1.0, 100, 100).risk == 0


def test_the_interval_adds_the_squares_of_what_wilsons_intervals_allow() -> None:
    """Wilson's interval of 60 of 100 is 0.5020 to 0.6906, of 20 of 100 0.1334 to 0.2888."""
    found = Controlled(rate=0.6, control=0.2, tried=100, tried_control=100)
    up = np.hypot((0.6906 - 0.2) / 0.8 - 0.5, (0.6 - 0.1334) / (1 - 0.1334) - 0.5)
    down = np.hypot(0.5 - (0.5020 - 0.2) / 0.8, 0.5 - (0.6 - 0.2888) / (1 - 0.2888))
    assert found.high == pytest.approx(0.5 + up, abs=1e-3)
    assert found.low == pytest.approx(0.5 - down, abs=1e-3)
    assert found.interval(13)[0] < found.low < found.high < found.interval(13)[1]


@pytest.mark.parametrize("tried", [20, 200])
@pytest.mark.parametrize(("rate", "control"), [(0.1, 0.1), (0.6, 0.5), (0.9, 0.85), (0.3, 0.02)])
def test_the_interval_holds_the_risk_in_95_of_100_trials(
    tried: int, rate: float, control: float
) -> None:
    random, truth = np.random.default_rng(1), (rate - control) / (1 - control)
    drawn = random.binomial(tried, (rate, control), (2_000, 2)) / tried
    found = [Controlled(float(one), float(other), tried, tried) for one, other in drawn]
    held = [each.low - 1e-9 <= truth <= each.high + 1e-9 for each in found]
    assert np.mean(held) > 0.92  # 95% but for six standard errors


def test_interval_disclosure_by_hand() -> None:
    """Clusters of two in a row of 100: the interval of masked values beside holds four values."""
    values = np.arange(100.0)[:, np.newaxis]
    subject = Subject(values, (), lambda chosen, _: ReleasedRows(values[chosen] // 2 * 2 + 0.5))
    found = interval_disclosure(subject, 1)
    assert found is not None
    assert found.rate == pytest.approx(0.0)  # 4 wide, a tenth of a deviation being 2.9
    fine = np.arange(1_000.0)[:, np.newaxis]
    narrow = interval_disclosure(
        Subject(fine, (), lambda chosen, _: ReleasedRows(fine[chosen] // 2 * 2 + 0.5)), 1
    )
    assert narrow is not None
    assert narrow.rate == pytest.approx(0.996)  # all but the two outermost clusters


def test_rows_that_are_equally_near_share_the_guess() -> None:
    near = nearest_to(np.array([[0.0], [9.0]]), np.array([[1.0], [-1.0], [8.0]]))
    assert near.tolist() == [[True, True, False], [False, False, True]]


def test_averages_of_k_link_one_in_k() -> None:
    """Joint clusters of four, far apart: whoever is in one is found with a chance of 1/4."""
    clusters = np.repeat(np.arange(75.0), 4)[:, np.newaxis] * [10.0, 7.0]
    people = clusters + np.random.default_rng(1).normal(size=clusters.shape) * 0.01
    subject = Subject(people, (), lambda chosen, _: ReleasedRows(clusters[chosen]))
    for id_ in ("linkage.nearest", "linkage.structure"):
        found = made(ATTACKS[id_], subject)
        assert found is not None
        assert 0.2 < found.rate <= 0.25 + 1e-9


def test_an_attack_that_has_nothing_to_go_by_says_so() -> None:
    codes = np.random.default_rng(1).integers(0, 3, (50, 1)).astype(float)
    subject = Subject(codes, (0,), lambda chosen, _: ReleasedRows(codes[chosen]))
    assert interval_disclosure(subject, 1) is None
    assert linkability_by_parts(subject, 1) is None
    assert not by_nearest_row(subject, 1)
    assert not by_joint_cluster(subject, 1)


def test_categories_are_at_distance_one_and_missing_numbers_at_the_mean() -> None:
    space = Coordinates(np.array([[0.0, 1.0], [2.0, 2.0]]), nominal=[1])
    places = space.place(np.array([[np.nan, 1.0], [1.0, 2.0], [2.0, 1.0]]), [0, 1])
    away = np.linalg.norm(places[:, np.newaxis] - places, axis=2)
    assert away[0, 1] == pytest.approx(1.0)
    assert away[0, 2] == pytest.approx(1.0)
    assert away[1, 2] == pytest.approx(np.sqrt(2))


def test_differential_privacy_bounds_what_the_informed_adversary_tells() -> None:
    """Laplace noise of ε = 1 on one attribute: right in 73% at most, of ε = 40 nearly always."""
    values = np.random.default_rng(1).uniform(0, 1, (200, 1))

    def told(epsilon: float) -> Controlled:
        def release(chosen: Integers, seed: int) -> ReleasedRows:
            noise = np.random.default_rng(seed).laplace(0, 1 / epsilon, (len(chosen), 1))
            return ReleasedRows(values[chosen] + noise)

        return neighbour_reconstruction(Subject(values, (), release), 1)

    assert told(1.0).rate < 0.731 + 0.1
    assert told(40.0).rate > 0.9


def test_the_informed_adversary_sees_who_shares_values_whatever_the_noise() -> None:
    values = np.random.default_rng(1).normal(size=(200, 1))

    def release(chosen: Integers, seed: int) -> ReleasedRows:
        clusters = values[chosen].argsort(axis=0).argsort(axis=0) // 5
        return ReleasedRows(np.random.default_rng(seed).normal(size=(40, 1))[clusters[:, 0]] * 1e6)

    assert neighbour_reconstruction(Subject(values, (), release), 1).rate == 1
