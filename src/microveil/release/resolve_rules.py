"""Rules meet the columns' types: what they compare, in which unit, and which columns may move."""

from collections.abc import Mapping, Sequence

from microveil.core.attribute import NumericSettings
from microveil.core.linear_rules import Movable, Rule, System, reference
from microveil.engines.base import Column
from microveil.errors import DataError, PlanError, Problems
from microveil.plan.plan import Plan
from microveil.plan.rules import Comparison, parse, with_derived_computed

_DAY = 86_400e6  # microseconds, as times are counted in
_ANCHORS = {"date": "date", "datetime": "date", "time": "time"}


def typed(rule: Comparison, columns: Mapping[str, Column]) -> Rule:
    """Return a rule over the numbers that columns hold; numbers beside dates count days.

    Raises
    ------
    DataError
        If its columns cannot be compared.
    """
    own = {name: columns[name] for name in rule.names if name in columns}
    for name, column in own.items():
        if column.kind is None:
            raise DataError(
                f"rule {rule.text!r}: rules compare numbers, dates and times, found "
                f"{column.type_name}; convert the column, or leave it out of the rule",
                attribute=name,
                setting="rules",
            )
    factors, sides = rule.difference.factors, rule.difference
    _check_dates(rule, own)
    if not sides.dates and not any(column.clock for column in own.values()):
        return Rule(rule.text, dict(factors), sides.number, rule.sign)
    units = {name: 1.0 if own[name].clock in _IN_MICROSECONDS else _DAY for name in own}
    scaled = {name: factor * units[name] for name, factor in factors.items()}
    smallest = min(map(abs, scaled.values()), default=1.0)
    constant = (sides.number + sides.moments) * _DAY
    return Rule(
        rule.text,
        {name: factor / smallest for name, factor in scaled.items()},
        constant / smallest,
        rule.sign,
    )


_IN_MICROSECONDS = ("datetime", "time", "duration")


def _check_dates(rule: Comparison, columns: Mapping[str, Column]) -> None:
    """Refuse to compare dates with what is none: as many must stand on one side as on the other."""
    counts = {"date": rule.difference.dates, "time": 0.0}
    for name, column in columns.items():
        anchor = _ANCHORS.get(column.clock or "")
        if anchor:
            counts[anchor] += rule.difference.factors[name]
    if any(abs(count) > 1e-9 for count in counts.values()):
        raise DataError(
            f"rule {rule.text!r}: compares dates or times with numbers; compare dates with dates, "
            "and their differences with days",
            setting="rules",
        )
    zones = {column.zone for column in columns.values() if column.clock in ("date", "datetime")}
    if len(zones) > 1:
        raise DataError(
            f"rule {rule.text!r}: compares times of different time zones; convert them to one",
            setting="rules",
        )


def resolve_rules(
    plan: Plan, attributes: Sequence[NumericSettings], columns: Mapping[str, Column]
) -> tuple[System, ...]:
    """Check rules against columns; return those that share columns together.

    Raises
    ------
    DataError, PlanError
        If columns cannot be compared, or if no values within the domains keep a rule.
    """
    return systems_of(plan, {a.name: _movable(a, columns[a.name]) for a in attributes}, columns)


def systems_of(
    plan: Plan, movable: Mapping[str, Movable], columns: Mapping[str, Column]
) -> tuple[System, ...]:
    """Return the rules that share columns together, given what may be moved, as `resolve_rules`."""
    problems, rules = Problems(), list[Rule]()
    for text in plan.rules:
        with problems:
            written = parse(text)
            typed(written, columns)
            computed = typed(with_derived_computed(plan, written), columns)
            if computed.factors:
                rules.append(computed)
    problems.raise_found()
    systems = tuple(_systems(rules, movable))
    for system in systems:
        with problems:
            _check_possible(system)
    problems.raise_found()
    return systems


def _movable(attribute: NumericSettings, column: Column) -> Movable:
    whole = attribute.kind == "integer"
    decimals = None if whole else attribute.decimals
    step = attribute.quantum if whole else attribute.grid.step
    return Movable(
        name=attribute.name,
        lower=attribute.published_lower,
        upper=attribute.published_upper,
        quantum=attribute.quantum if whole else 0.0,
        decimals=decimals,
        step=step if decimals is None else 10.0**-decimals,
        unit=_DAY if column.clock in _IN_MICROSECONDS else 1.0,
        single_precision=column.single_precision,
    )


def _systems(rules: Sequence[Rule], movable: Mapping[str, Movable]) -> list[System]:
    """Put rules together that share columns which may move."""
    parts: list[tuple[list[Rule], set[str]]] = []
    for rule in rules:
        names = {name for name in rule.factors if name in movable}
        joined, own = [rule], names
        apart = []
        for others, theirs in parts:
            if theirs & own:
                joined, own = [*others, *joined], theirs | own
            else:
                apart.append((others, theirs))
        parts = [*apart, (joined, own)]
    return [
        System(tuple(own), tuple(movable[name] for name in movable if name in names))
        for own, names in parts
    ]


def _check_possible(system: System) -> None:
    if reference(system) is None:
        texts = "; ".join(rule.text for rule in system.rules)
        which = "rule" if len(system.rules) == 1 else "rules"
        raise PlanError(
            f"{which} {texts!r}: no values were found within the domains that keep "
            f"{'it' if len(system.rules) == 1 else 'them together'}; widen lower and upper, or "
            "correct the rules",
            setting="rules",
        )
