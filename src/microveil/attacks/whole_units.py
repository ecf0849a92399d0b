"""Looking for units: someone who knows all records of a household looks for all of them at once.

Rows of a unit can be told by its pseudonym, or where that is not released by what they have in
common: the attributes with one value per unit, and kept columns that are the same in all records of
every unit. Rows that agree in all of it are taken for a unit, rightly or wrongly. Of those with the
same kept columns, and if there are any with as many rows, the attacker picks the one whose members
are nearest: by mean, least and greatest value of every attribute.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from microveil.attacks.linked import luck
from microveil.compare.asked import Asked
from microveil.compare.encoding import encoded
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure
from microveil.compare.pairing import Pair
from microveil.engines.dtypes import polars_of
from microveil.engines.layout import Layout, numbered
from microveil.plan.scenarios import Scenario
from microveil.types import Integers, Reals

_MOST_RECORDS = 200_000


@dataclass(frozen=True)
class UnitsLinked:
    """How many units were found.

    `share` is the expected share of rows picked that are of the unit sought, `chance` that of
    picking what seems to be a unit at random.
    """

    share: float
    chance: float
    units: int
    by: tuple[str, ...]


def link_units(pair: Pair) -> UnitsLinked | None:
    """Look for every unit in the release; None if nothing tells which rows are of one."""
    plan = pair.plan
    if plan is None or plan.unit is None or pair.positions is None or pair.order is None:
        return None
    if plan.unit not in pair.source.columns:
        return None
    unit = numbered([_of_people(pair, plan.unit)])
    same = _same_in_units(pair, unit)
    by = (plan.unit,) if plan.unit in plan.names("pseudonym") else (*plan.per_unit, *same)
    if not by or int(unit.max()) + 1 == len(unit):  # every record is a unit by itself
        return None
    seen = numbered([polars_of(pair.table[name]).gather(pair.order) for name in by])
    kept = numbered([_of_people(pair, n) for n in same]) if same else np.zeros_like(unit)
    known, rows = _members(pair, unit, seen)
    share = _share_found(unit, seen, _picked(known, _kinds(unit, kept), rows, _kinds(seen, kept)))
    return UnitsLinked(share, 1 / len(rows), len(known), by)


def unit_linkage_figure(seen: Examined, _: Scenario, asked: Asked) -> Figure | None:
    """Look for every unit by all of its records; None where there is nothing to look for."""
    if seen.planned.unit is None:
        return None
    linked = link_units(seen.of_units(_MOST_RECORDS, np.random.default_rng(asked.seed)).pair)
    if linked is None:
        return None
    facts: dict[str, Fact] = {
        "chance": linked.chance, "luck": luck(linked.chance, linked.units),
        "units": linked.units, "by": linked.by,
    }  # fmt: skip
    return Figure("risk.linkage_of_units", None, linked.share, facts)


def _of_people(pair: Pair, name: str) -> pl.Series:
    """Return a column of the original, of the records that were released."""
    return polars_of(pair.source[name]).gather(pair.positions)  # type: ignore[arg-type]


def _same_in_units(pair: Pair, unit: Integers) -> tuple[str, ...]:
    """Name the kept columns that are the same in all records of every unit."""
    names, layout = pair.plan.names("kept") if pair.plan else (), Layout(unit=unit)
    return tuple(n for n in names if not layout.differs(_of_people(pair, n)).any())


def _members(pair: Pair, unit: Integers, seen: Integers) -> tuple[Reals, Reals]:
    """Describe the members of units, and of what seems to be units, in the same measure."""
    original, released = encoded(pair)
    original = original[pair.positions]
    scale = np.nanstd(original, axis=0)
    scale[~(scale > 0)] = np.inf
    return _described(original / scale, unit), _described(released / scale, seen)


def _described(values: Reals, own: Integers) -> Reals:
    """Describe groups of rows by mean, least and greatest value of each column."""
    groups = pl.DataFrame(np.nan_to_num(values)).group_by(pl.Series("own", own)).agg(
        pl.all().mean().name.suffix(" mean"), pl.all().min().name.suffix(" least"),
        pl.all().max().name.suffix(" most"),
    )  # fmt: skip
    return groups.sort("own").drop("own").to_numpy()


def _kinds(own: Integers, kept: Integers) -> pl.DataFrame:
    """Return of every group of rows how many there are, and what they have in kept columns."""
    return pl.DataFrame({"size": np.bincount(own), "kept": kept[Layout(unit=own).first]})


def _picked(known: Reals, units: pl.DataFrame, rows: Reals, groups: pl.DataFrame) -> Integers:
    """Pick for every unit the nearest group with as many rows, or if there is none of any size."""
    picked = _nearest(known, units, rows, groups)
    left = picked < 0
    picked[left] = _nearest(known[left], units.filter(left).drop("size"), rows, groups.drop("size"))
    return picked


def _nearest(known: Reals, units: pl.DataFrame, rows: Reals, groups: pl.DataFrame) -> Integers:
    """Return the nearest group of the same kind for every unit; −1 if there is none."""
    from scipy.spatial import cKDTree

    picked = np.full(len(known), -1)
    places = groups.with_row_index("place").group_by(groups.columns).agg("place")
    sought = units.with_row_index("unit").group_by(units.columns).agg("unit")
    for unit, place in places.join(sought, on=groups.columns).select("unit", "place").iter_rows():
        _, nearest = cKDTree(rows[place]).query(known[unit])
        picked[unit] = np.array(place)[nearest]
    return picked


def _share_found(unit: Integers, seen: Integers, picked: Integers) -> float:
    """Return the mean share of the rows picked for a unit that are its own."""
    right = np.bincount(unit, picked[unit] == seen)
    return float(np.mean(np.where(picked < 0, 0.0, right / np.bincount(seen)[picked])))
