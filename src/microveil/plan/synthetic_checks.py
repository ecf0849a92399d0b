"""What a plan of a synthetic release must say, since nothing of the data may be read for free."""

from collections.abc import Iterator

import tomlkit

from microveil.errors import PlanError, Problems
from microveil.plan.fields import PlanFields
from microveil.plan.parts import did_you_mean
from microveil.plan.roles import Confidential

_EPSILONS = (1e-9, 1e6)
_MOST_RECORDS = 10**12
_MOST_WHOLE = 2**53  # no double tells larger ones apart
_MOST_REAL = 1e300
_MOST_CATEGORIES = 4_096
_MOST_TO_PREDICT = 20
_ROLES = ("confidential", "derived", "identifier")


def check_synthetic(plan: PlanFields) -> None:
    """Refuse a plan of a synthetic release that leaves anything to the data."""
    problems = Problems()
    for check in (_check_delta, _check_expected, _check_predicts):
        with problems:
            check(plan)
    if plan.release == "synthetic":
        for check in (
            _check_epsilon, _check_declared, _check_roles, _check_nothing_from_data, _check_unused
        ):  # fmt: skip
            with problems:
                check(plan)
        for name, attribute in plan.confidential.items():
            with problems:
                _check_attribute(name, attribute)
    problems.raise_found()


def require_masked(plan: PlanFields, what: str) -> None:
    """Refuse a plan of a synthetic release for what looks at records one by one."""
    if plan.release == "synthetic":
        raise PlanError(
            f'{what} needs records that are masked, but release = "synthetic" draws rows that '
            'belong to nobody; set release = "masked"',
            setting="release",
        )


def _check_epsilon(plan: PlanFields) -> None:
    low, high = _EPSILONS
    if not low <= plan.epsilon <= high:
        raise PlanError(
            f"a synthetic release needs an epsilon from {low:g} to {high:,.0f}, got "
            f"{plan.epsilon:g}; 1 is usual",
            setting="epsilon",
        )


def _check_delta(plan: PlanFields) -> None:
    if not 0 <= plan.delta < 1:
        raise PlanError(
            f"delta must be 0 or more and below 1, got {plan.delta:g}; 1e-5 is the default",
            setting="delta",
        )


def _check_expected(plan: PlanFields) -> None:
    if plan.expected_records is not None and not 1 <= plan.expected_records <= _MOST_RECORDS:
        raise PlanError(
            f"expected_records must be 1 or more, and {_MOST_RECORDS:,} at most",
            setting="expected_records",
        )


def _check_predicts(plan: PlanFields) -> None:
    if plan.predicts is None:
        return
    if plan.predicts not in plan.confidential:
        close = did_you_mean(plan.predicts, plan.confidential)
        raise PlanError(
            f"predicts: no confidential attribute {plan.predicts!r}{close}", setting="predicts"
        )
    categories = plan.confidential[plan.predicts].declared_categories
    if not 2 <= len(categories) <= _MOST_TO_PREDICT:
        raise PlanError(
            f"predicts must name an attribute with 2 to {_MOST_TO_PREDICT} declared categories; "
            "declare them, or remove predicts",
            attribute=plan.predicts,
            setting="predicts",
        )


def _check_declared(plan: PlanFields) -> None:
    """List everything that is not declared at once, with lines to paste."""
    lines = ['missing = "keep"  # or "drop"'] if plan.missing == "error" else []
    for name, attribute in plan.confidential.items():
        needed = list(_needed(attribute))
        head = ["", f"[attributes.{tomlkit.key(name).as_string()}]", 'role = "confidential"']
        lines += [*head, *needed] if needed else []
    if lines:
        raise PlanError(
            'release = "synthetic" reads nothing from the data that is not paid for; declare what '
            "is missing, from what is known without the data, in the place of what the plan has:\n"
            + "\n".join(lines),
            setting="release",
        )


def _needed(attribute: Confidential) -> Iterator[str]:
    """Return the lines that an attribute lacks."""
    if attribute.is_category:
        if not attribute.declared_categories:
            yield f'kind = "{attribute.kind}"'
            yield 'categories = ["…", "…"]  # all that are possible'
        return
    ends = [end for end in (attribute.lower, attribute.upper) if end is not None]
    if attribute.kind is None and not any(_is_moment(end) for end in ends):
        yield 'kind = "integer"  # or "real", "nominal", "ordinal"'
    for name in ("lower", "upper"):
        if getattr(attribute, name) is None:
            yield f"{name} = …  # a number, a date or a time; or categories = […]"


def _is_moment(end: object) -> bool:
    return not isinstance(end, int | float)


def _check_roles(plan: PlanFields) -> None:
    others = [f"{name!r} ({a.role})" for name, a in plan.attributes.items() if a.role not in _ROLES]
    if others:
        raise PlanError(
            'with release = "synthetic" rows belong to nobody, so that nothing can be published as '
            f"it is, or tell whose it is: {', '.join(others)}; make each confidential, derived, or "
            "an identifier, which drops it",
            setting="attributes",
        )


def _check_nothing_from_data(plan: PlanFields) -> None:
    read = [*plan.from_data, *(["domain_from_data"] if plan.domain_from_data else [])]
    if read:
        raise PlanError(
            'release = "synthetic" uses nothing that was read from the data, got from_data: '
            f"{', '.join(read)}; check these settings, declare them from what is known without the "
            "data, and remove from_data",
            setting="from_data",
        )


def _check_unused(plan: PlanFields) -> None:
    if plan.within:
        raise PlanError(
            "within: a synthetic release has no clusters; strata are attributes like others, so "
            "make them confidential and remove within",
            setting="within",
        )
    for name, attribute in plan.confidential.items():
        for setting in ("per_unit", "budget_share"):
            if getattr(attribute, setting) != Confidential.model_fields[setting].default:
                raise PlanError(
                    f"{setting} has no effect on synthetic rows, which belong to nobody and are "
                    "drawn of all attributes together; remove it",
                    attribute=name,
                    setting=setting,
                )


def _check_attribute(name: str, attribute: Confidential) -> None:
    if attribute.is_category and len(attribute.declared_categories) > _MOST_CATEGORIES:
        raise PlanError(
            f"a synthetic release has at most {_MOST_CATEGORIES:,} categories, got "
            f"{len(attribute.declared_categories):,}; merge some, use the level of a taxonomy, or "
            "make the attribute an identifier, which drops it",
            attribute=name,
            setting="categories",
        )
    _check_ends(name, attribute)
    number = attribute.lower is None or not _is_moment(attribute.lower)
    if attribute.has_domain and number and attribute.time_step is not None:
        raise PlanError(
            "time_step is for dates and times; remove it", attribute=name, setting="time_step"
        )
    if attribute.resolution is not None:
        raise PlanError(
            "resolution has no effect on synthetic rows; declare decimals or round_to",
            attribute=name,
            setting="resolution",
        )


def _check_ends(name: str, attribute: Confidential) -> None:
    """Refuse ends of which no width can be counted, or whose values no double can hold."""
    lower, upper = attribute.lower, attribute.upper
    if lower is None or upper is None:
        return
    if not isinstance(lower, int | float) or not isinstance(upper, int | float):
        if type(lower) is not type(upper):
            raise PlanError(
                "lower and upper must both be dates, or both be dates with times; write them alike",
                attribute=name,
                setting="upper",
            )
        return
    most = _MOST_WHOLE if attribute.kind == "integer" else _MOST_REAL
    if not -most <= lower <= upper <= most:
        raise PlanError(
            f"a synthetic release has numbers from −{most:,.3g} to {most:,.3g}; bring lower and "
            "upper nearer, or count in a larger unit",
            attribute=name,
            setting="upper",
        )
