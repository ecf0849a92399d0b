"""Random keys: sorted, hashed and found between bounds as slower ways would do it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from microveil.core.kernels.keys import Keys, hashed, order_of_random, ranges_of

words = st.integers(0, 2**64 - 1)


@given(arrays(np.uint64, st.integers(0, 60), elements=words))
def test_keys_are_put_in_order(keys: Keys) -> None:
    assert (keys[order_of_random(keys)] == np.sort(keys)).all()


def test_many_random_keys_are_put_in_order() -> None:
    keys = np.random.default_rng(1).integers(0, 2**64, 100_000, dtype=np.uint64)
    assert (order_of_random(keys) == np.argsort(keys)).all()


@given(arrays(np.uint64, 50, elements=words, unique=True), words)
def test_hashing_is_a_permutation(keys: Keys, secret: int) -> None:
    assert len(np.unique(hashed(keys, np.uint64(secret)))) == len(keys)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), max_size=30), st.data())
def test_ranges_are_those_of_a_search_among_pairs(
    pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    bounds = sorted(data.draw(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)))))
    values, ties = np.array(pairs or [(0, 0)], dtype=np.int64).T
    at, at_ties = np.array(bounds, dtype=np.int64).reshape(-1, 2).T
    found = np.empty(len(values), np.int64)
    ranges_of(values, ties.astype(np.uint64), at, at_ties.astype(np.uint64), found)
    assert found.tolist() == [sum(b <= pair for b in bounds) for pair in (pairs or [(0, 0)])]
