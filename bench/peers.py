"""Methods of others on the same tables of numbers, in small versions of our own.

None of them has an ε. Each states its promise, as the benchmark's own candidates do.
`tests/lab/benchmark/test_peers.py` checks them against values worked out by hand.
"""

from functools import partial

import numpy as np
import polars as pl

from microveil.core.mdav import mdav, standardise
from microveil.lab.benchmark.peers import Candidate, PromiseKind
from microveil.types import Reals

FAMILY = "peers without ε"


def peers() -> list[Candidate]:
    """List them."""
    return [
        Candidate(
            f"MDAV {k}",
            FAMILY,
            None,
            PromiseKind.K_ANONYMITY,
            partial(_masked, partial(aggregated, k)),
            anonymity=k,
        )
        for k in (10, 25)
    ] + [
        Candidate(
            "rank swapping 25%", FAMILY, None, PromiseKind.NOTHING,
            partial(_masked, partial(swapped, 0.25)),
        ),
        Candidate(
            "correlated noise 50%", FAMILY, None, PromiseKind.NOTHING,
            partial(_masked, partial(noisy, 0.5)),
        ),
    ]  # fmt: skip


def _masked(mask: partial[Reals], table: pl.DataFrame, seed: int) -> pl.DataFrame:
    values = table.to_numpy().astype(np.float64)
    return pl.DataFrame(mask(values, np.random.default_rng([seed, 2])), schema=table.columns)


def aggregated(k: int, original: Reals, _: np.random.Generator) -> Reals:
    """Replace records by the means of joint clusters of k or more.

    MDAV of Domingo-Ferrer and Torra (2005), "Ordinal, continuous and heterogeneous k-anonymity
    through microaggregation"; `microaggregation(method = "mdav", aggr = k)` of sdcMicro.
    """
    label = mdav(standardise(original), k)
    means = [np.bincount(label, column) / np.bincount(label) for column in original.T]
    return np.column_stack(means)[label]


def swapped(share: float, original: Reals, random: np.random.Generator) -> Reals:
    """Exchange every value with another one at most a share of all ranks away.

    Moore (1996), "Controlled data-swapping techniques for masking public use microdata sets";
    `rankSwap(P = 100 * share)` of sdcMicro.
    """
    result = np.empty_like(original)
    for a, column in enumerate(original.T):
        order = np.argsort(column, kind="stable")
        result[order, a] = _swapped_in_order(column[order], int(share * len(order)), random)
    return result


def _swapped_in_order(ranked: Reals, reach: int, random: np.random.Generator) -> Reals:
    values, free = ranked.copy(), np.ones(len(ranked), dtype=bool)
    for i in range(len(ranked)):
        near = i + 1 + np.flatnonzero(free[i + 1 : i + 1 + reach])
        if free[i] and len(near):
            j = random.choice(near)
            values[i], values[j] = values[j], values[i]
            free[i] = free[j] = False
    return values


def noisy(share: float, original: Reals, random: np.random.Generator) -> Reals:
    """Add normal noise with a share of the standard deviations and the same correlations.

    Kim (1986), "A method for limiting disclosure in microdata based on random noise and
    transformation"; `addNoise(method = "correlated")` of sdcMicro.
    """
    covariance = share**2 * np.atleast_2d(np.cov(original, rowvar=False))
    noise = random.multivariate_normal(np.zeros(len(covariance)), covariance, len(original))
    return original + noise
