"""Rules between the columns of a record, and the least change of a record that keeps them.

A rule is linear: a sum of multiples of columns, and a number, is at most 0, below 0, or 0. A record
with a missing value in one of a rule's columns does not break it. What is done to a record follows
from the record alone: never from others, nor from anything that is not in it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import mul
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from microveil.types import Booleans, Reals

Sign = Literal["<=", "<", "=="]
Values = dict[str, Reals]
"""The values of some columns, NaN where one is missing."""

ROUNDING = 8 * np.finfo(np.float64).eps
_CYCLES = 1_000
_ROUNDS = 30
_SHORTEST_FIRST = 4
_NUDGES = 4
_MOST_OFFSETS = 3_200
_FAR = 1e-6
_AT_ONCE = 2**17
_STARTS = 64


@dataclass(frozen=True)
class Rule:
    """Σ factor·column + constant is at most 0, below 0, or 0, as `sign` says."""

    text: str
    factors: Mapping[str, float]
    constant: float
    sign: Sign

    def totals(self, values: Mapping[str, Reals]) -> Reals:
        """Return Σ factor·column + constant of each record."""
        terms = [factor * values[name] for name, factor in self.factors.items()]
        total: Reals = np.sum(terms, axis=0) + self.constant
        return total

    def sizes(self, values: Mapping[str, Reals]) -> Reals:
        """Return the sum of what is added up, each without its sign."""
        terms = [np.abs(factor * values[name]) for name, factor in self.factors.items()]
        size: Reals = np.sum(terms, axis=0) + abs(self.constant)
        return size

    @property
    def is_exact(self) -> bool:
        """Whether it compares two columns as they are, for which rounding does nothing."""
        return len(self.factors) == 2 and not self.constant and (
            sorted(self.factors.values()) == [-1, 1]
        )  # fmt: skip

    def broken(self, values: Mapping[str, Reals]) -> Booleans:
        """Return which records break it.

        Examples
        --------
        >>> rule = Rule("a <= b", {"a": 1.0, "b": -1.0}, 0.0, "<=")
        >>> rule.broken({"a": np.array([1.0, 3.0, 3.0]), "b": np.array([2.0, 2.0, np.nan])})
        array([False,  True, False])
        """
        with np.errstate(invalid="ignore"):
            total = self.totals(values)
            near = np.zeros_like(total) if self.is_exact else ROUNDING * self.sizes(values)
            if self.sign == "==":
                found: Booleans = np.abs(total) > near
            else:
                found = total > near if self.sign == "<=" else total >= -near
        return found


@dataclass(frozen=True)
class Movable:
    """A column whose values may be changed, within a range and to multiples of a step.

    `decimals` are those of real numbers, None where they are not rounded; `quantum` is what whole
    numbers are multiples of, 0 for real ones. `step` is the least change that counts, and `unit`
    what a change is measured in: by that, dates and times can be weighed up against numbers.
    """

    name: str
    lower: float
    upper: float
    quantum: float = 0.0
    decimals: int | None = None
    step: float = 0.0
    unit: float = 1.0
    single_precision: bool = False

    def rounded(self, values: Reals) -> Reals:
        """Round values as the column has them, and keep them in its range."""
        if self.quantum:
            values = np.rint(values / self.quantum) * self.quantum
        elif self.decimals is not None:
            values = np.round(values, self.decimals)
        elif self.single_precision:
            values = values.astype(np.float32).astype(np.float64)
        return np.clip(values, self.lower, self.upper)

    @property
    def coarseness(self) -> float:
        """What values are multiples of; 0 if they can be any."""
        return self.quantum or (0.0 if self.decimals is None else 10.0**-self.decimals)


@dataclass(frozen=True)
class System:
    """Rules that share columns, and those of their columns that may be changed."""

    rules: tuple[Rule, ...]
    movable: tuple[Movable, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All columns of the rules."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.factors))

    @property
    def fixed(self) -> tuple[str, ...]:
        """The columns that stay as they are."""
        return tuple(name for name in self.names if name not in {m.name for m in self.movable})

    def broken(self, values: Mapping[str, Reals]) -> Booleans:
        """Return which records break a rule."""
        found: Booleans = np.logical_or.reduce([rule.broken(values) for rule in self.rules])
        return found


def keep(system: System, values: Mapping[str, Reals], instead: Values | None = None) -> Values:
    """Change the records that break a rule as little as possible, so that they keep all.

    The change of a record is least in the sum of squares, each column measured in its `unit`, but
    for what rounding to the columns' steps asks for. A rule that a record cannot keep, beside the
    values that stay as they are, is left broken and the others are kept. Records for which no
    values are found take those of `instead`, if any are given.

    Guarantee
    ---------
    The result of a record is a function of that record, of the plan's rules and of the columns'
    ranges and steps. Applied to masked values, and columns published as they are, it is
    post-processing.
    """
    kept = {name: column.copy() for name, column in values.items()}
    rows = np.flatnonzero(system.broken(values))
    for first in range(0, len(rows), _AT_ONCE):
        at_once = rows[first : first + _AT_ONCE]
        for part, able in _possible(system, {n: column[at_once] for n, column in values.items()}):
            few = at_once[part]
            changed = _keep_all(able, {n: values[n][few] for n in able.names}, instead)
            for column in able.movable:
                kept[column.name][few] = changed[column.name]
    return kept


def _possible(system: System, values: Values) -> Iterator[tuple[NDArray[np.int64], System]]:
    """Part records by which rules they can keep each by itself, and leave out the others."""
    lost = np.column_stack([_is_impossible(system, rule, values) for rule in system.rules])
    patterns, which = np.unique(lost, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        rules = tuple(r for r, gone in zip(system.rules, pattern, strict=True) if not gone)
        named = {name for rule in rules for name in rule.factors}
        movable = tuple(m for m in system.movable if m.name in named)
        if movable:
            yield np.flatnonzero(which.ravel() == number), System(rules, movable)


def _is_impossible(system: System, rule: Rule, values: Values) -> Booleans:
    """Return which records break a rule whatever their columns that may move are moved to."""
    ends = {m.name: (m.lower, m.upper) for m in system.movable if m.name in rule.factors}
    best, worst = dict(values), dict(values)
    for name, (lower, upper) in ends.items():
        low, high = (lower, upper) if rule.factors[name] > 0 else (upper, lower)
        best[name] = np.where(np.isnan(values[name]), np.nan, low)
        worst[name] = np.where(np.isnan(values[name]), np.nan, high)
    with np.errstate(over="ignore", invalid="ignore"):
        above: Booleans = rule.totals(best) > _FAR * rule.sizes(best)
        below: Booleans = rule.totals(worst) < -_FAR * rule.sizes(worst)
    return above | below if rule.sign == "==" else above


def _keep_all(system: System, values: Values, instead: Values | None) -> Values:
    projected = _project(system, values)
    near = _rounded(system, projected)
    rows = np.flatnonzero(system.broken(near) & ~_is_out_of_reach(system, projected))
    few = _settled(system, {name: column[rows] for name, column in near.items()})
    changed = {name: column.copy() for name, column in near.items()}
    for column in system.movable:
        changed[column.name][rows] = few[column.name]
    lost = system.broken(changed)
    for column in system.movable if instead is not None else ():
        there = lost & ~np.isnan(values[column.name])
        changed[column.name][there] = instead[column.name][0]  # type: ignore[index]
    return changed


def _is_out_of_reach(system: System, projected: Values) -> Booleans:
    """Return for which records not even values that need not be rounded keep all rules."""
    with np.errstate(invalid="ignore"):
        beyond = [
            (np.abs(total) if rule.sign == "==" else total) > _FAR * (1 + rule.sizes(projected))
            for rule in system.rules
            for total in [rule.totals(projected)]
        ]
    found: Booleans = np.logical_or.reduce(beyond)
    return found


def _settled(system: System, near: Values) -> Values:
    """Make up for what rounding broke, with the least that helps."""
    values = {name: column.copy() for name, column in near.items()}
    _search(system, near, values)
    for turn in range(_ROUNDS):
        if not system.broken(values).any():
            break
        for rule in system.rules:
            _repair(system, rule, values, turn)
    return values


def _rounded(system: System, values: Values) -> Values:
    return values | {m.name: m.rounded(values[m.name]) for m in system.movable}


@dataclass(frozen=True, eq=False)
class _Face:
    """One rule as a set of points that are at most so far along a direction, or just so far."""

    direction: Reals
    offset: Reals
    applies: Booleans
    is_equation: bool

    @property
    def length(self) -> float:
        """The square of the direction's length."""
        return float(np.sum(self.direction**2)) or 1.0

    def excess(self, points: Reals, rows: NDArray[np.int64]) -> Reals:
        """Return how far the points of some records lie beyond it."""
        along = np.sum(points * self.direction, axis=1) + self.offset[rows]  # each by itself
        return np.where(self.applies[rows], along, 0.0)


def _project(system: System, values: Values) -> Values:
    """Find the nearest points of all rules and ranges, by Dykstra's algorithm."""
    units = np.array([m.unit for m in system.movable])
    points = np.column_stack([values[m.name] for m in system.movable]) / units
    missing = np.isnan(points)
    points = np.where(missing, 0.0, points)
    ends = [np.array([getattr(m, end) for m in system.movable]) / units
            for end in ("lower", "upper")]  # fmt: skip
    faces = [_face(system, rule, values) for rule in system.rules]
    points = np.where(missing, np.nan, _dykstra(points, faces, *ends)) * units
    return values | {m.name: points[:, at] for at, m in enumerate(system.movable)}


def _face(system: System, rule: Rule, values: Values) -> _Face:
    movable = {m.name: m for m in system.movable}
    offset = np.full(len(values[rule_name(rule)]), rule.constant)
    for name, factor in rule.factors.items():
        if name not in movable:
            offset = offset + factor * values[name]
    gap = _gap(system, rule) if rule.sign == "<" else 0.0
    absent = np.logical_or.reduce([np.isnan(values[name]) for name in rule.factors])
    direction = np.array([rule.factors.get(name, 0.0) * m.unit for name, m in movable.items()])
    applies = ~absent & np.isfinite(offset) & bool(direction.any())
    return _Face(direction, np.where(applies, offset + gap, 0.0), applies, rule.sign == "==")


def rule_name(rule: Rule) -> str:
    """Return a column of a rule."""
    return next(iter(rule.factors))


def _gap(system: System, rule: Rule) -> float:
    """Return by how much one side must be below the other: the least change there is."""
    factors = [abs(rule.factors[m.name]) * m.step for m in system.movable if m.name in rule.factors]
    return min(factors, default=0.0)


def _dykstra(points: Reals, faces: Sequence[_Face], lower: Reals, upper: Reals) -> Reals:
    """Project points; each is let go once it rests, so that none depends on how long others take.

    What a face has pushed a point by, and what its range has held back, is given back before the
    next push.
    """
    found, rows = points.copy(), np.arange(len(points))
    pushed = np.zeros((len(points), len(faces)))
    held = np.zeros_like(points)
    for _ in range(_CYCLES):
        now = points
        for at, face in enumerate(faces):
            push = pushed[:, at] + face.excess(now, rows) / face.length
            push = push if face.is_equation else np.maximum(push, 0.0)
            now = now - (push - pushed[:, at])[:, np.newaxis] * face.direction
            pushed[:, at] = push
        inside = np.clip(now + held, lower, upper)
        held, now = now + held - inside, inside
        found[rows] = now
        moving = ~np.isclose(now, points, rtol=1e-10, atol=1e-10).all(axis=1)
        rows, points = rows[moving], now[moving]
        pushed, held = pushed[moving], held[moving]
        if not len(rows):
            break
    return found


def _repair(system: System, rule: Rule, values: Values, turn: int) -> None:
    """Make up for what rounding left of a broken rule by moving one column of each record.

    It is the one whose move leaves fewest rules broken, and of these this rule the least, and is
    the shortest; after a few rounds columns take turns instead, lest two rules move it to and fro.
    """
    columns = [m for m in system.movable if rule.factors.get(m.name)]
    rows = np.flatnonzero(rule.broken(values))
    if not len(rows) or not columns:
        return
    few = {name: values[name][rows] for name in system.names}
    tried = [_tried(system, rule, column, few) for column in columns]
    moves = np.array([np.abs(new - few[m.name]) / m.unit
                      for new, m in zip(tried, columns, strict=True)])  # fmt: skip
    if turn > _SHORTEST_FIRST:
        moves[turn % len(columns)] = -1.0
    outcomes = [few | {m.name: new} for new, m in zip(tried, columns, strict=True)]
    broken = np.array([sum(r.broken(o) for r in system.rules) for o in outcomes])
    excess = np.array([np.abs(rule.totals(o)) for o in outcomes])
    excess = np.where([rule.broken(o) for o in outcomes], excess, 0.0)
    chosen = np.lexsort((moves, excess, broken), axis=0)[0]
    for at, column in enumerate(columns):
        values[column.name][rows[chosen == at]] = tried[at][chosen == at]


def _tried(system: System, rule: Rule, column: Movable, values: Values) -> Reals:
    """Return a column moved so that a rule is kept, or as far towards it as its range allows."""
    factor, old = rule.factors[column.name], values[column.name]
    excess = rule.totals(values)
    if rule.sign == "<":
        excess = excess + np.maximum(_gap(system, rule), 2 * ROUNDING * rule.sizes(values))
    move = -excess / factor
    new = column.rounded(_moved(column, old, move, rule.sign))
    new = np.where(np.isfinite(new), new, old)
    if column.coarseness or rule.sign == "==":
        return new
    return _nudged(column, rule, values | {column.name: new}, downwards=factor > 0)


def _search(system: System, near: Values, values: Values) -> None:
    """Look for records that keep all rules a few steps around, the nearest first."""
    for offsets in _offsets(system):
        rows = np.flatnonzero(system.broken(values))
        if not len(rows):
            return
        tried = {name: near[name][rows] for name in system.names}
        for column, steps in zip(system.movable, offsets, strict=True):
            tried[column.name] = column.rounded(tried[column.name] + steps * column.coarseness)
        good = ~system.broken(tried)
        for column in system.movable:
            values[column.name][rows[good]] = tried[column.name][good]


def _offsets(system: System) -> list[tuple[int, ...]]:
    """Return steps in all columns, near ones first; in fewer columns there are more of them."""
    steps = [column.coarseness / column.unit for column in system.movable]
    reach = next((r for r in (4, 3, 2, 1) if (2 * r + 1) ** len(steps) <= _MOST_OFFSETS), 0)
    every = product(*(range(-reach, reach + 1) if step else (0,) for step in steps))
    return sorted(every, key=lambda offset: math.hypot(*map(mul, offset, steps)))


def _moved(column: Movable, old: Reals, move: Reals, sign: Sign) -> Reals:
    """Move values, by whole steps and no less than asked for; for an equation by the nearest."""
    step = column.coarseness
    if not step:
        return old + move
    steps = move / step
    whole = np.rint(steps)
    if sign == "==":
        return old + whole * step
    away = np.where(move > 0, np.ceil(steps), np.floor(steps))
    return old + np.where(np.abs(steps - whole) < 1e-6, whole, away) * step


def _nudged(column: Movable, rule: Rule, values: Values, *, downwards: bool) -> Reals:
    """Move what double or single precision has left on the wrong side by the last digit."""
    precision = np.float32 if column.single_precision else np.float64
    towards, new = precision(-np.inf if downwards else np.inf), values[column.name]
    for _ in range(_NUDGES):
        still = rule.broken(values | {column.name: new})
        near = np.nextafter(new.astype(precision), towards).astype(np.float64)
        new = np.where(still, np.clip(near, column.lower, column.upper), new)
    return new


def reference(system: System) -> Values | None:
    """Return one record that keeps all rules, from ranges and steps alone; None if none is found.

    Columns that stay as they are count as if they could have any value.
    """
    free = System(
        system.rules,
        (*system.movable, *(Movable(name, -np.inf, np.inf) for name in system.fixed)),
    )
    random = np.random.default_rng(0)
    starts = {m.name: _starts(m, random) for m in free.movable}
    kept = keep(free, starts)
    good = np.flatnonzero(~free.broken(kept))
    return {name: column[good[:1]] for name, column in kept.items()} if len(good) else None


def _starts(column: Movable, random: np.random.Generator) -> Reals:
    """Return some values of a column: the middle of its range, its ends, and others."""
    wide = 1e6 * max(column.unit, column.coarseness)
    lower, upper = max(column.lower, min(-wide, column.upper)), min(column.upper, wide)
    lower, upper = (lower, upper) if lower <= upper else (column.lower, column.lower)
    shares = np.concatenate([[0.5, 0.0, 1.0], random.random(_STARTS - 3)])
    return column.rounded(lower + shares * (upper - lower))


@dataclass(frozen=True)
class KeptRule:
    """How a rule was kept: records that broke it before and after, and how far those moved."""

    text: str
    before: int
    after: int
    moved: float


def how_kept(system: System, before: Values, after: Values) -> list[KeptRule]:
    """Count what was changed for each rule; moves are mean distances in the columns' units."""
    return [_how_kept(system, rule, before, after) for rule in system.rules]


def _how_kept(system: System, rule: Rule, before: Values, after: Values) -> KeptRule:
    rows = np.flatnonzero(rule.broken(before))
    squares = np.zeros(len(rows))
    for column in system.movable:
        moves = (after[column.name][rows] - before[column.name][rows]) / column.unit
        squares += np.nan_to_num(moves) ** 2
    moved = float(np.sqrt(squares).mean()) if len(rows) else 0.0
    return KeptRule(rule.text, len(rows), int(rule.broken(after).sum()), moved)
