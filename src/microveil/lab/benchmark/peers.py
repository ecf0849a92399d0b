"""What is compared: the paper's methods, what is recommended, and plans between them.

Every candidate states its promise: a point on the map is what was measured of one release, a
promise is what holds of all releases.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum, auto
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from microveil.core.choices import Pooling
from microveil.core.methods import METHODS, Method
from microveil.errors import noted
from microveil.lab.benchmark.benchmark_data import Data
from microveil.plan.plan import Plan
from microveil.release.protect import protect

Mask = Callable[[pl.DataFrame, int], pl.DataFrame]
"""Protects a table with a seed; the rows that come out are in the order of those that go in."""

PUBLISHED, NOT_POOLED, EXCHANGED, AVERAGED = "published", "not pooled", "exchanged", "averaged"
REFERENCES, YOURS = "references", "your plan"

ANONYMITIES = (5, 10, 25)
_POOLINGS: dict[Pooling, str] = {"exchange": EXCHANGED, "average": AVERAGED}
_K, _WIDE_K, _RECLUSTERED_K = 10, 50, 100
_STAYS = ("missing", "records_per_person", "domain_from_data", "from_data")


class PromiseKind(StrEnum):
    """What holds of all releases of a candidate; `benchmark_words` puts it into words."""

    DP = auto()
    DP_OF_VALUES = auto()
    IDP = auto()
    IDP_RECLUSTERED = auto()
    IDP_POOLED = auto()
    K_ANONYMITY = auto()
    CERTIFIED = auto()
    NOTHING = auto()


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to protect a table.

    Attributes
    ----------
    name
        What it is called, without ε.
    family
        What points of one colour have in common.
    epsilon
        Its budget; None where it has none.
    promise
        What holds of all its releases.
    mask
        Protects a table.
    anonymity
        How many records share or exchange values, where the promise is about that.
    conditional
        Whether the promise holds only as far as the certificate of this table says.
    """

    name: str
    family: str
    epsilon: float | None
    promise: PromiseKind
    mask: Mask
    anonymity: int | None = None
    conditional: bool = False


def list_candidates(data: Data, epsilons: Sequence[float]) -> list[Candidate]:
    """List what is compared on a table; methods that need a domain only where all are declared."""
    own = (
        [] if data.own is None else [_of_plan("your plan", YOURS, PromiseKind.CERTIFIED, data.own)]
    )
    varied = [each for epsilon in epsilons for each in _at(data.plan, epsilon)]
    if data.plan.from_data or data.plan.domain_from_data or data.plan.records_per_person > 1:
        varied = [replace(each, conditional=True) for each in varied]
    return [*own, *varied, *_references()]


def _at(base: Plan, epsilon: float) -> Iterator[Candidate]:
    common: dict[str, Any] = {setting: getattr(base, setting) for setting in _STAYS}
    common |= {"epsilon": epsilon, "attributes": dict(base.confidential)}
    attributes = [a for a in base.confidential.values() if a.method is None]
    with_domains = all(attribute.has_domain for attribute in attributes)
    for method in METHODS.values():
        if with_domains or not method.needs_domain:
            k = _K if method.pulls_in else _WIDE_K
            plan = Plan.published(**common, method=method.name, k=k)
            name = f"{method.name}, k = {k}" if method.clustered else method.name
            yield _of_plan(name, PUBLISHED, _promise(method), plan)
    trimmed = Plan.published(**common, k=_K, trim=0.1)
    yield _of_plan(f"{trimmed.method}, k = {_K}, trimmed", NOT_POOLED, PromiseKind.IDP, trimmed)
    again = Plan.published(**common, k=_RECLUSTERED_K, guarantee="re-clustered")
    name = f"{again.method}, k = {_RECLUSTERED_K}, re-clustered"
    yield _of_plan(name, NOT_POOLED, PromiseKind.IDP_RECLUSTERED, again)
    alone = Plan(**common, anonymity=0)
    yield _of_plan("recommended, not pooled", NOT_POOLED, PromiseKind.IDP, alone)
    for pooling, family in _POOLINGS.items():
        for anonymity in ANONYMITIES:
            pooled = Plan(**common, anonymity=anonymity, pooling=pooling)
            named = _of_plan(f"{pooling} {anonymity}", family, PromiseKind.IDP_POOLED, pooled)
            yield replace(named, anonymity=anonymity)


def _promise(method: Method) -> PromiseKind:
    if not method.clustered:
        return PromiseKind.DP
    return PromiseKind.IDP if method.promise.fixes_scales else PromiseKind.DP_OF_VALUES


def _of_plan(name: str, family: str, promise: PromiseKind, plan: Plan) -> Candidate:
    return Candidate(name, family, plan.epsilon, promise, partial(protected, plan))


def protected(plan: Plan, table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Protect a table; return the rows in their old order."""
    with noted():  # nothing is published
        rows: pl.DataFrame = protect(table, plan, keep_order=True, seed=seed).data
    return rows.select(table.columns)


def _references() -> Iterator[Candidate]:
    yield Candidate("original", REFERENCES, None, PromiseKind.NOTHING, _as_it_is)
    yield Candidate("shuffled", REFERENCES, None, PromiseKind.NOTHING, _shuffled)


def _as_it_is(table: pl.DataFrame, _: int) -> pl.DataFrame:
    return table


def _shuffled(table: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Shuffle every attribute by itself."""
    random = np.random.default_rng([seed, 1])
    return pl.DataFrame([column[random.permutation(len(column))] for column in table])
