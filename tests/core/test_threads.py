"""Threads: whoever leaves, joins or changes, nobody's history is shared by fewer than k."""

from fractions import Fraction
from itertools import permutations, product
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil.core.random_words import SeededWords
from microveil.core.threads import LookingAlike, assign_threads, first_size
from microveil.types import Integers

K = 2


@pytest.fixture(autouse=True)
def _large_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few persons form one joint cluster, of those who go on and others who do not."""
    monkeypatch.setattr("microveil.core.threads.LEAST_BEGUN", 1)


Wave = dict[int, str]
"""Who is in a release, and how they look in it."""
Threads = dict[int, list[tuple[int, int] | None]]
"""By thread, a release after the other: who has it, and in which joint cluster; else None."""


def in_turn(members: Integers, size: int) -> Integers:
    """Put so many in turn into a joint cluster, and those left over into the last."""
    return np.minimum(np.arange(len(members)) // size, max(1, len(members) // size) - 1)


def assigned(waves: list[Wave], k: int, size: int, seed: int) -> Threads:
    """Assign the persons of each release in turn."""
    threads: Threads = {}
    latest: dict[int, int] = {}
    for number, wave in enumerate(waves):
        people = sorted(wave)
        looks = np.unique([wave[p] for p in people], return_inverse=True)[1]
        histories = [tuple(place and place[1] for place in threads[t]) for t in sorted(threads)]
        kinds = {one: place for place, one in enumerate(dict.fromkeys(histories))}
        found = assign_threads(
            np.array([kinds[one] for one in histories], dtype=np.int64),
            LookingAlike(looks, np.array([latest.get(p, -1) for p in people])),
            k, size, np.array(people, dtype=float)[:, None], in_turn, SeededWords(seed + number),
        )  # fmt: skip
        for places in threads.values():
            places.append(None)
        for person, label, goes_on in zip(people, found.label, found.goes_on, strict=True):
            if not goes_on:
                latest[person] = len(threads)
                threads[latest[person]] = [None] * (number + 1)
            threads[latest[person]][-1] = person, int(label)
    return threads


def histories(threads: Threads) -> dict[tuple[int | None, ...], int]:
    """Count the threads that have each history."""
    found: dict[tuple[int | None, ...], int] = {}
    for places in threads.values():
        history = tuple(None if place is None else place[1] for place in places)
        found[history] = found.get(history, 0) + 1
    return found


def best_guesses(threads: Threads, waves: list[Wave]) -> dict[tuple[int, int], Fraction]:
    """Return the chance of picking each person's thread by each release, over all draws.

    The attacker knows who has which value, the joint clusters of all releases and who got a new
    pseudonym, and sees rows with kept values and pseudonyms of all releases, in random order.
    """
    rows: list[list[list[int]]] = []  # by release and joint cluster, the threads in it
    for number in range(len(waves)):
        by_label: dict[int, list[int]] = {}
        for thread, places in threads.items():
            place = places[number]
            if place is not None:
                by_label.setdefault(place[1], []).append(thread)
        rows.append(list(by_label.values()))
    groups = [(number, group) for number, wave in enumerate(rows) for group in wave]
    owner = {(t, n): place[0] for t, places in threads.items() for n, place in enumerate(places)
             if place is not None}  # fmt: skip
    seen: dict[tuple[object, ...], dict[tuple[int, int], dict[object, int]]] = {}
    for draw in product(*(permutations(group) for _, group in groups)):
        shown: dict[int, list[object]] = {t: [""] * len(waves) for t in threads}
        for (number, group), givers in zip(groups, draw, strict=True):
            for thread, giver in zip(group, givers, strict=True):
                value = owner[giver, number]  # all values differ
                shown[thread][number] = f"{value} {waves[number][owner[thread, number]]}"
        trails = {thread: tuple(trail) for thread, trail in shown.items()}
        mine = seen.setdefault(tuple(sorted(trails.values())), {})
        for (thread, number), person in owner.items():
            told = mine.setdefault((person, number), {})
            told[trails[thread]] = told.get(trails[thread], 0) + 1
    draws = prod(factorial(len(group)) for _, group in groups)
    chance: dict[tuple[int, int], Fraction] = {}
    for table, people in seen.items():
        for target, told in people.items():
            best = max(Fraction(times, table.count(trail)) for trail, times in told.items())
            chance[target] = chance.get(target, Fraction(0)) + best / draws
    return chance


LEAVE_AND_JOIN = [dict.fromkeys(range(6), "a"), dict.fromkeys([1, 2, 3, 4, 5, 6, 7], "a"),
                  dict.fromkeys([0, 1, 2, 4, 5, 6], "a")]  # fmt: skip
CHANGE = [dict.fromkeys(range(6), "a"), {0: "b", 1: "b", 2: "b", 3: "a", 4: "a", 6: "a"},
          {0: "b", 1: "a", 2: "b", 3: "a", 4: "a", 6: "a"}]  # fmt: skip


ONE_OF_FIVE = [dict.fromkeys(range(5), "a"), dict.fromkeys([1, 2, 3, 4, 5], "a")]


@pytest.mark.parametrize(
    ("waves", "size"), [(LEAVE_AND_JOIN, 2), (CHANGE, 2), (CHANGE, 3), (ONE_OF_FIVE, 5)]
)
def test_the_chance_is_one_in_those_who_share_a_history(waves: list[Wave], size: int) -> None:
    """Exactly, by all draws; whoever stays, leaves, joins, comes back or looks otherwise."""
    threads = assigned(waves, K, size, seed=size)
    shared = histories(threads)
    assert min(shared.values()) >= K
    expected = {}
    for places in threads.values():
        history = tuple(None if place is None else place[1] for place in places)
        for number, place in enumerate(places):
            if place is not None:
                expected[place[0], number] = Fraction(1, shared[history])
    chance = best_guesses(threads, waves)
    assert chance == expected
    assert max(chance.values()) <= Fraction(1, K)
    assert set(chance) == {(p, n) for n, wave in enumerate(waves) for p in wave}


def test_merging_alone_does_not_repair_an_earlier_release() -> None:
    """Of a joint cluster of three one leaves, and the two who stay are merged with others."""
    waves = [dict.fromkeys(range(6), "a"), dict.fromkeys([1, 2, 3, 4, 5], "a")]
    merged: Threads = {p: [(p, p // 3), (p, 0)] for p in range(6)}
    merged[0][1] = None
    chance = best_guesses(merged, waves)
    assert chance[0, 0] == 1
    assert chance[1, 0] == chance[1, 1] == Fraction(1, 2)
    ended = assigned(waves, 3, 3, seed=1)
    assert max(best_guesses(ended, waves).values()) <= Fraction(1, 3)


def test_new_pseudonyms_for_some_of_a_joint_cluster_point_to_them() -> None:
    """Only the leaver's thread ends, and one more: of four, both are told from the two others."""
    waves = [dict.fromkeys(range(4), "a"), dict.fromkeys([1, 2, 3, 4], "a")]
    threads: Threads = {0: [(0, 0), None], 1: [(1, 0), None], 2: [(2, 0), (2, 0)],
                        3: [(3, 0), (3, 0)], 4: [None, (1, 1)], 5: [None, (4, 1)]}  # fmt: skip
    assert set(best_guesses(threads, waves).values()) == {Fraction(1, 2)}
    del threads[5]
    waves[1].pop(4)
    assert best_guesses(threads, waves)[1, 1] == 1


@given(
    st.integers(2, 4),
    st.integers(1, 3),
    st.lists(st.lists(st.sampled_from(["", "a", "a", "a", "b"]), min_size=24, max_size=24),
             min_size=2, max_size=4),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_no_history_is_ever_shared_by_fewer_than_k(
    k: int, times: int, given_waves: list[list[str]]
) -> None:
    waves = []
    for looks in given_waves:
        counts = {look: looks.count(look) for look in "ab"}
        present = {p: look for p, look in enumerate(looks) if look and counts[look] >= k}
        if present:
            waves.append(present)
    threads = assigned(waves, k, times * k, seed=k)
    assert min(histories(threads).values(), default=k) >= k
    for number, wave in enumerate(waves):
        places = [p[number] for p in threads.values() if p[number] is not None]
        assert sorted(person for person, _ in places) == sorted(wave)  # type: ignore[misc]
        for label in {label for _, label in places}:  # type: ignore[misc]
            assert len({wave[p] for p, own in places if own == label}) == 1  # type: ignore[misc]


def test_those_who_accompany_leavers_are_drawn_at_random() -> None:
    """One of 40 leaves: nine others, each as likely, and 30 go on."""
    waves = [dict.fromkeys(range(40), "a"), dict.fromkeys(range(1, 40), "a")]
    cut = np.zeros(40)
    for seed in range(100):
        threads = assigned(waves, 10, 40, seed)
        new = [p[1][0] for p in threads.values() if p[0] is None and p[1] is not None]
        assert len(new) in (9, 10)
        cut[new] += 1
    expected = cut[1:].mean()
    assert expected > 20
    chi_squared = np.sum((cut[1:] - expected) ** 2 / expected)
    assert chi_squared < 100  # 38 degrees of freedom; the draws are seeded


def test_larger_first_clusters_keep_more_pseudonyms() -> None:
    assert first_size(10, 0.0) == 10
    assert first_size(10, 0.05) == 67
    assert first_size(10, 0.9) <= 100
    random = np.random.default_rng(1)
    shares = []
    for size in (10, 67):
        waves = [dict.fromkeys(range(670), "a")]
        gone = set(random.choice(670, 33, replace=False).tolist())
        waves.append(dict.fromkeys([p for p in range(700) if p not in gone], "a"))
        threads = assigned(waves, 10, size, seed=size)
        shares.append(sum(None not in p for p in threads.values()) / (670 - 33))
    assert shares[0] < 0.75
    assert shares[1] > 0.85


def test_those_who_begin_form_several_joint_clusters_and_those_who_join_some_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("microveil.core.threads.LEAST_BEGUN", 5)
    after = [person for person in range(72) if person not in (0, 12)]  # six accompany them
    threads = assigned([dict.fromkeys(range(60), "a"), dict.fromkeys(after, "a")], 4, 40, seed=1)
    first = [p[0][1] for p in threads.values() if p[0] is not None]
    assert sorted(np.bincount(first)) == [12] * 5
    joined = {p[1][1] for p in threads.values() if p[1] is not None and p[1][0] >= 60}
    others = {p[1][1] for p in threads.values() if p[1] is not None and p[1][0] < 60}
    assert not joined & others
    assert len(joined) == 3
