"""Rules that every released record keeps: how they are written, and what a plan may ask for.

A rule compares two sums of multiples of columns, numbers and dates: ``birth <= visit``,
``a + b == total``, ``2 * "net pay" <= gross + 100``, ``visit - birth <= 120 * 365``. Names with
spaces stand in double quotes, dates such as '2020-01-31' in single ones. Nothing is ever run.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from microveil.core.linear_rules import Sign
from microveil.errors import PlanError, Problems
from microveil.plan.fields import PlanFields
from microveil.plan.parts import did_you_mean

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<name>[^\W\d]\w*)|"(?P<quoted>(?:[^"]|"")+)"|'(?P<date>[^']*)'
    |(?P<sign><=|>=|==|<|>)|(?P<mark>[-+*/()]))""",
    re.VERBOSE,
)
_MOST_TOKENS = 200
_FLIPPED: dict[str, Sign] = {">=": "<=", ">": "<"}
_SIGNS: dict[str, Sign] = {"<=": "<=", "<": "<", "==": "=="}
_HOW = (
    'write a rule as "birth <= visit" or "a + b == total": sums of multiples of columns, numbers '
    "and dates, compared once by <=, <, ==, >= or >"
)
_HIDDEN = {"identifier": "an identifier", "pseudonym": "a pseudonym"}


@dataclass(frozen=True)
class Linear:
    """A sum of multiples of columns and a number.

    `moments` adds up dates, in days from 1970, and `dates` says how many there are of them.
    """

    factors: Mapping[str, float] = field(default_factory=dict)
    number: float = 0.0
    moments: float = 0.0
    dates: float = 0.0

    def plus(self, other: "Linear", times: float = 1.0) -> "Linear":
        """Add a multiple of another sum; columns that cancel out are gone."""
        factors = dict(self.factors)
        for name, factor in other.factors.items():
            factors[name] = factors.get(name, 0.0) + times * factor
        return Linear(
            {name: factor for name, factor in factors.items() if factor},
            self.number + times * other.number,
            self.moments + times * other.moments,
            self.dates + times * other.dates,
        )

    @property
    def is_number(self) -> bool:
        """Whether it names no column and no date."""
        return not self.factors and not self.dates and not self.moments


@dataclass(frozen=True)
class Comparison:
    """A rule as it was written: `difference` is at most 0, below 0, or 0."""

    text: str
    difference: Linear
    sign: Sign

    @property
    def names(self) -> tuple[str, ...]:
        """The columns it compares."""
        return tuple(self.difference.factors)


def parse(text: str) -> Comparison:
    """Read a rule.

    Examples
    --------
    >>> rule = parse('2 * (a + "b c") >= total - 1')
    >>> dict(sorted(rule.difference.factors.items())), rule.difference.number, rule.sign
    ({'a': -2.0, 'b c': -2.0, 'total': 1.0}, -1.0, '<=')
    """
    tokens = _tokens(text)
    signs = [value for kind, value in tokens if kind == "sign"]
    if len(signs) != 1:
        raise _unreadable(text, f"found {len(signs)} comparisons")
    (at,) = [i for i, (kind, _) in enumerate(tokens) if kind == "sign"]
    left, right = (_Reader(text, part).whole() for part in (tokens[:at], tokens[at + 1 :]))
    if signs[0] in _FLIPPED:
        left, right = right, left
    sign = _FLIPPED.get(signs[0]) or _SIGNS[signs[0]]
    return Comparison(text, left.plus(right, -1.0), sign)


def linear(text: str) -> Linear | None:
    """Read a sum of multiples of columns, as expressions of derived attributes often are."""
    try:
        return _Reader(text, _tokens(text)).whole()
    except PlanError:
        return None


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = list[tuple[str, str]](), 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None or len(found) == _MOST_TOKENS:
            problem = "it is too long" if match else f"found {text[at:].strip()[:1]!r}"
            raise _unreadable(text, problem)
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _unreadable(text: str, problem: str) -> PlanError:
    return PlanError(f"rule {text!r}: {problem}; {_HOW}", setting="rules")


class _Reader:
    """Reads tokens from left to right, products before sums."""

    def __init__(self, text: str, tokens: list[tuple[str, str]]) -> None:
        self._text, self._tokens = text, tokens

    def whole(self) -> Linear:
        try:
            found = self._sum()
        except RecursionError:
            raise _unreadable(self._text, "parentheses are nested too deeply") from None
        if self._tokens:
            raise _unreadable(self._text, f"found {self._tokens[0][1]!r} where a sum ends")
        return found

    def _next(self, *marks: str) -> str | None:
        """Take the next token if it is one of these marks."""
        if self._tokens and self._tokens[0][0] == "mark" and self._tokens[0][1] in marks:
            return self._tokens.pop(0)[1]
        return None

    def _sum(self) -> Linear:
        found = self._product()
        while mark := self._next("+", "-"):
            found = found.plus(self._product(), 1.0 if mark == "+" else -1.0)
        return found

    def _product(self) -> Linear:
        found = self._single()
        while mark := self._next("*", "/"):
            other = self._single()
            if mark == "*" and found.is_number:
                found, other = other, found
            if not other.is_number or (mark == "/" and not other.number):
                raise _unreadable(self._text, "a column can only be multiplied by a number")
            times = other.number if mark == "*" else 1 / other.number
            found = Linear().plus(found, times)
        return found

    def _single(self) -> Linear:
        if self._next("-"):
            return Linear().plus(self._single(), -1.0)
        if self._next("("):
            found = self._sum()
            if not self._next(")"):
                raise _unreadable(self._text, "a parenthesis is not closed")
            return found
        if not self._tokens or self._tokens[0][0] in ("mark", "sign"):
            raise _unreadable(self._text, "a column, number or date is missing")
        kind, value = self._tokens.pop(0)
        if kind == "number":
            return Linear(number=float(value))
        if kind == "date":
            return Linear(moments=self._days(value), dates=1.0)
        return Linear({value.replace('""', '"') if kind == "quoted" else value: 1.0})

    def _days(self, text: str) -> float:
        try:
            return float((date.fromisoformat(text) - date(1970, 1, 1)).days)
        except ValueError:
            raise _unreadable(self._text, "a date is written as '2020-01-31'") from None


def check_rules(plan: PlanFields) -> None:
    """Refuse rules that cannot be read or enforced, or name what is not released."""
    problems = Problems()
    for text in plan.rules:
        with problems:
            _check_rule(plan, parse(text))
    problems.raise_found()


def _check_rule(plan: PlanFields, rule: Comparison) -> None:
    for name in rule.names:
        _check_column(plan, rule, name)
    if not rule.names:
        raise _refused(rule, "it names no column; name one or more")
    masked = with_derived_computed(plan, rule)
    for name in masked.names:
        _check_column(plan, rule, name)
    if not masked.names and _holds_always(masked):
        return
    if not movable_in(plan, masked):
        raise _refused(rule, "none of its columns is masked, so it cannot be enforced; remove it")
    if any(_of_units(plan, name) for name in movable_in(plan, masked)) and not all(
        _of_units(plan, name) for name in masked.names
    ):
        raise _refused(
            rule,
            "it compares attributes with per_unit = true with others; remove it, or compare "
            "attributes of one kind",
        )
    _check_averaged(plan, masked)


def _of_units(plan: PlanFields, name: str) -> bool:
    return name in plan.per_unit


def _check_column(plan: PlanFields, rule: Comparison, name: str) -> None:
    if name not in plan.attributes:
        raise _refused(rule, f"no attribute {name!r}{did_you_mean(name, plan.attributes)}")
    role = plan.attributes[name].role
    if role in _HIDDEN:
        raise _refused(rule, f"{name!r} is {_HIDDEN[role]}; name attributes that are released")
    if name in plan.confidential and plan.confidential[name].is_category:
        raise _refused(rule, f"{name!r} holds categories; compare numbers, dates or times")


def _holds_always(rule: Comparison) -> bool:
    """Whether nothing is left to compare, and that is as it should be."""
    left = rule.difference.number
    near = math.isclose(left, 0.0, abs_tol=1e-12)
    return near if rule.sign == "==" else (left < 0 or (rule.sign == "<=" and near))


def _check_averaged(plan: PlanFields, rule: Comparison) -> None:
    """Refuse to tie averaged attributes to others: records of a joint cluster would differ."""
    for group in plan.pooled_groups:
        outside = [name for name in rule.names if name not in group.attributes]
        inside = [name for name in rule.names if name in group.attributes]
        if group.pooling == "average" and inside and outside:
            raise _refused(
                rule,
                f"{', '.join(inside)} are averaged, so records of a joint cluster are alike, and "
                f"{', '.join(outside)} would make them differ again; put all of them into one "
                'group, or use pooling = "exchange"',
            )


def _refused(rule: Comparison, problem: str) -> PlanError:
    return PlanError(f"rule {rule.text!r}: {problem}", setting="rules")


def with_derived_computed(plan: PlanFields, rule: Comparison) -> Comparison:
    """Put what derived attributes are computed from in their place.

    A rule then is kept before they are computed, and one that says how they are needs nothing.
    """
    difference = rule.difference
    for name in reversed(plan.derivation_order):
        factor = difference.factors.get(name)
        if factor is None:
            continue
        computed = linear(plan.derived[name].expression)
        if computed is None:
            raise _refused(
                rule,
                f"{name!r} is derived by an expression that is not a sum of multiples of columns; "
                "compare the columns it is computed from",
            )
        difference = difference.plus(Linear({name: 1.0}), -factor).plus(computed, factor)
    return Comparison(rule.text, difference, rule.sign)


def movable_in(plan: PlanFields, rule: Comparison) -> list[str]:
    """Return the columns of a rule whose values may be changed: masked ones."""
    return [name for name in rule.names if name in plan.confidential]
