"""Resolve an attribute of categories."""

from microveil.core.attribute import Category, CategorySettings, CommonSettings
from microveil.engines.base import CategoryFacts, Holds, OpenTable
from microveil.errors import DataError, Problems
from microveil.plan.plan import Plan
from microveil.release.missing import all_missing, check_missing

_HOLDS: dict[type, str] = {str: "text", int: "whole numbers", bool: "true/false values"}


def resolve_categories(
    plan: Plan, name: str, common: CommonSettings, table: OpenTable
) -> CategorySettings:
    """Check the declared categories against the column, or read them from it."""
    attribute = plan.confidential[name]
    declared = attribute.declared_categories or None
    facts = table.category_facts(name, declared)
    if facts.nulls == facts.counted:
        raise all_missing(name)
    categories = declared or _from_data(name, facts)
    if declared and facts.holds != _HOLDS[type(declared[0])]:
        categories = _as_held(declared, facts.holds)
        facts = table.category_facts(name, categories)
    problems = Problems()
    with problems:
        _check_categories(name, categories, facts, facts.counted)
    with problems:
        check_missing(plan, name, nulls=facts.nulls, records=facts.counted, k=common["k"])
    problems.raise_found()
    from_type = facts.holds == "true/false values"  # which nobody needs the data to know
    marked = bool(plan.read_from_data(name) & {"categories", "taxonomy"})
    known = from_type or (declared is not None and not marked)
    return CategorySettings(
        **common, kind=attribute.kind or "nominal", records=facts.counted - facts.nulls,
        post="none", domain_source="declared" if known else "data",
        categories=categories, paths=attribute.category_paths,
    )  # fmt: skip


def _from_data(name: str, facts: CategoryFacts) -> tuple[Category, ...]:
    if facts.holds == "true/false values":
        return (False, True)
    if facts.holds != "other values" and len(facts.seen) < 2:
        raise DataError(
            "every value is the same, so no categories can be read from the data; declare "
            "categories",
            attribute=name,
            setting="categories",
        )
    return facts.seen


def _as_held(categories: tuple[Category, ...], holds: Holds) -> tuple[Category, ...]:
    """Return categories as a column has them where files of other formats have the same otherwise.

    Numbers of a CSV taxonomy are text; true and false are text in CSV files of pandas, and 0 and 1
    in those of SPSS and Stata.
    """
    numbers = [_number_of(category) for category in categories]
    if holds == "whole numbers" and None not in numbers:
        return tuple(number for number in numbers if number is not None)
    if holds == "true/false values" and set(numbers) == {0, 1}:
        return tuple(bool(number) for number in numbers)
    return categories


def _number_of(category: Category) -> int | None:
    """Return the whole number that a category is or stands for; None if it stands for none."""
    if not isinstance(category, str):
        return int(category)
    if category.removeprefix("-").isdecimal():
        return int(category)
    return {"false": 0, "true": 1}.get(category.casefold())


def _check_categories(
    name: str, categories: tuple[Category, ...], facts: CategoryFacts, records: int
) -> None:
    if facts.holds == "other values":
        raise DataError(
            "categories must be text, whole numbers of 64 bits or true/false values; convert the "
            "column",
            attribute=name,
        )
    expected = _HOLDS[type(categories[0])]
    problem = None
    if expected != facts.holds:
        problem = (
            f"the declared categories are {expected}, but the column holds {facts.holds}; declare "
            "them as the column has them"
        )
    elif facts.outside:
        problem = (
            f"{facts.outside:,} of {records:,} values are none of the declared categories; declare "
            "all that are possible, or correct the data"
        )
    elif facts.unknown:
        problem = (
            f"{facts.unknown} of the declared categories are not in the list of the column's own "
            "type; add them to it, or convert the column to text"
        )
    if problem:
        raise DataError(problem, attribute=name, setting="categories")
