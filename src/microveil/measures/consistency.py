"""Figures of units and strata: whether what belongs together still does, and totals by stratum."""

import numpy as np
import polars as pl

from microveil.compare.asked import Asked
from microveil.compare.estimates import Weights
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.pairing import Pair
from microveil.engines.dtypes import polars_of
from microveil.engines.layout import Layout, numbered
from microveil.types import Integers, Reals

_UNITS, _TOTALS = "utility.unit_consistency", "utility.stratum_totals"


def unit_figures(seen: Examined, _: Asked) -> Items:
    """Count the units whose records have the same released values where the plan says so."""
    pair, plan = seen.pair, seen.planned
    if plan.unit is None:
        return
    names = [name for name in plan.per_unit if name in pair.table.columns]
    unit = _released(pair, plan.unit)
    if not names or unit is None:
        yield NotComputed((_UNITS,), "units_not_known" if names else "nothing_per_unit")
        return
    same = share_of_consistent_units(unit, [_in_order(pair, name) for name in names])
    yield Figure(_UNITS, None, same, {"units": len(np.unique(unit)), "names": tuple(names)})


def share_of_consistent_units(unit: Integers, columns: list[pl.Series]) -> float:
    """Return the share of units whose records agree in every column.

    Examples
    --------
    >>> share_of_consistent_units(np.array([0, 0, 1, 1]), [pl.Series([5, 5, 7, None])])
    0.5
    """
    rows = Layout(unit=unit)
    differing = np.zeros(int(unit.max()) + 1, dtype=np.bool_)
    for column in columns:
        differing |= rows.differs(column)
    return float(1 - np.mean(differing))


def stratum_figures(seen: Examined, _: Asked) -> Items:
    """Compare totals of the numbers in every stratum."""
    pair = seen.pair
    if not seen.planned.within:
        return
    before, after = _strata(pair)
    if before is None or after is None:
        yield NotComputed((_TOTALS,), "strata_not_known")
        return
    stand_for = _weights(pair)
    for name, values, masked in zip(pair.numeric, pair.matched.T, pair.released.T, strict=True):
        original = _totals(before, values * stand_for.original)
        released = _totals(after, masked * stand_for.released)
        size = float(np.abs(original).sum())
        if not size:
            yield NotComputed((_TOTALS,), "total_is_zero", name)
            continue
        moved, own = np.abs(released - original), np.abs(original)
        error, worst = float(moved.sum()) / size, float(np.max(moved / np.where(own, own, np.inf)))
        facts = {"strata": len(original), "worst": worst}
        yield Figure(_TOTALS, name, error, facts, weighted=pair.weights is not None)


def _weights(pair: Pair) -> Weights:
    """Return for how many people records stand, in the order of matched and released records."""
    if pair.weights is None:
        return Weights(np.ones(len(pair.matched)), np.ones(len(pair.released)))
    of_all = pair.weights.original
    matched = of_all if pair.positions is None else of_all[pair.positions]
    return Weights(matched, pair.weights.released)


def _totals(strata: Integers, values: Reals) -> Reals:
    totals: Reals = np.bincount(strata, np.nan_to_num(values)).astype(np.float64)
    return totals


def _strata(pair: Pair) -> tuple[Integers | None, Integers | None]:
    """Return the strata of the original and of the released records, numbered alike."""
    names = pair.plan.within if pair.plan else ()
    source = [polars_of(pair.source[name]) for name in names]
    if pair.positions is not None:
        label = numbered([column.gather(pair.positions) for column in source])
        return label, label
    if not set(names) <= set(pair.table.columns):
        return None, None
    table = [
        polars_of(pair.table[name]).cast(column.dtype)
        for name, column in zip(names, source, strict=True)
    ]
    label = numbered([pl.concat(both) for both in zip(source, table, strict=True)])
    return label[: len(pair.source)], label[len(pair.source) :]


def _released(pair: Pair, unit: str) -> Integers | None:
    """Return the units of released records; None if these are not known."""
    if pair.positions is not None and unit in pair.source.columns:
        return numbered([polars_of(pair.source[unit]).gather(pair.positions)])
    if unit in pair.table.columns:
        return numbered([polars_of(pair.table[unit])])
    return None


def _in_order(pair: Pair, name: str) -> pl.Series:
    """Return a released column, in the order of the original if that is known."""
    column = polars_of(pair.table[name])
    return column if pair.order is None else column.gather(pair.order)
