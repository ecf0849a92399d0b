"""Evaluation: every measure and attack of the registries, on one path for tables of all sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from microveil.attacks.attack_rows import ATTACKS
from microveil.attacks.known import EVERYTHING, scenarios_of
from microveil.attacks.questions import question_items
from microveil.compare.asked import Asked, Scale
from microveil.compare.examined import Examined, examine
from microveil.compare.figures import Figure, Items, Need, NotComputed, Sample, figures_in
from microveil.compare.pairing import NOT_PAIRED, complete_in
from microveil.engines.dtypes import describe_all
from microveil.errors import DataError
from microveil.judge.evaluated import Evaluation
from microveil.judge.next_step import next_step
from microveil.judge.registry import MEASURES
from microveil.measures.learning import open_target, scikit_learn
from microveil.measures.measure_rows import FAMILIES, Family
from microveil.plan.parts import did_you_mean
from microveil.plan.scenarios import Scenario
from microveil.plan.uses import Use, check_uses, refused_use
from microveil.release.detail import Detail
from microveil.release.release import Release
from microveil.release.resolve_uses import check_uses_of
from microveil.types import Progress, UserTable

_GROUPS = 10
_T = 2.262  # Student's t with as many groups less one, for 95%


def evaluate(
    original: UserTable,
    release: Release | UserTable,
    *,
    target: Any = None,  # noqa: ANN401 - a name, or classes of any kind
    uses: Sequence[Use | str] = (),
    detail: Detail | str | Path | None = None,
    aligned: bool = False,
    attributes: Sequence[str] | None = None,
    quasi_identifiers: Sequence[str] = (),
    known: Sequence[str] = (),
    people: float = 1.0,
    scale: Scale = "std",
    rank_percent: float = 1.0,
    deviations: float = 0.1,
    linkage_sample: int | None = 10_000,
    estimator: Any = None,  # noqa: ANN401 - scikit-learn has no types
    train: float = 0.66,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure how useful and how risky a release is, against its original.

    The figures are functions of the data that ε does not cover: do not publish them. What needs
    to know which record is whose is computed from a `Release`, with `detail`, or with `aligned`;
    otherwise the result says that it is not. A measure of one attribute uses the records in which
    it is present; a measure of several uses complete records. Numbers that are constant in the
    original are left out, and the result says so.

    Dates and times are numbers. Errors, correlations, interval disclosure and cluster widths are
    those of numbers; shares unchanged, total variation and Cramér's V those of categories; pMSE,
    learning and record linkage take both: see `encoding` and `linkage` for how.

    Parameters
    ----------
    original
        A Polars or pandas DataFrame, a PyArrow Table, or the path of a CSV or Parquet file. Of
        files larger than memory, and of a release on Spark, 100,000 records are drawn, and their
        people are looked for among all released records; every figure says so.
    release
        A `Release`, or a protected table or the path of one.
    target
        For learning: the name of a column of the original that holds classes, or the classes
        themselves, one for each original record. Both models are given the original's classes.
    uses
        What the release will be used for, besides what the plan says, each a `Use` or its text.
    detail
        The private detail that was written with the protected table, or its path.
    aligned
        The protected table has its rows in the order of the original.
    attributes
        What to compare; by default the plan's confidential attributes, or without a plan all
        columns that both tables have: numbers, dates and times, and as categories text and
        true/false values with no more than 100 different ones. Codes that are numbers are
        categories only if the plan says so.
    quasi_identifiers
        Columns of the release that others may know of a person.
    known, people
        An attacker to try besides one who knows all masked attributes of everybody: someone who
        knows these columns only, or only this share of the people. A kept column is known exactly.
        The plan's scenarios are tried too.
    scale
        Of mean SSE: ``"std"``, or ``"variance"`` as the paper prints it.
    rank_percent, deviations
        How close a value must be to its masked value to count as disclosed: in percent of ranks,
        and in standard deviations.
    linkage_sample
        How many records to try to link, chosen at random, each among all masked records; None
        tries every one.
    estimator, train
        A scikit-learn classifier (by default a random forest), and the share of records, the first
        ones, that train it; the others test it.
    seed
        Of the choice of records to link and of the random forest.
    progress
        Called while people are looked for in a release that is larger than memory.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan.published(epsilon=1.0, k=3, attributes={"age": "confidential"})
    >>> evaluation = evaluate(people, protect(people, plan, seed=1))
    >>> round(evaluation.value("risk.width_median", "age"), 3)
    0.505
    """
    if isinstance(quasi_identifiers, str):
        quasi_identifiers = [quasi_identifiers]
    if target is not None:
        scikit_learn()  # says what to install, before any work is done
    asked = Asked(
        scale, rank_percent, deviations, tuple(quasi_identifiers), target, estimator, train,
        tuple(Use.parse(use) if isinstance(use, str) else use for use in uses),
        most_attacked=linkage_sample, seed=seed,
    )  # fmt: skip
    with examine(
        original,
        release,
        random=np.random.default_rng(seed),
        detail=detail,
        aligned=aligned,
        attributes=[attributes] if isinstance(attributes, str) else attributes,
        target=target if isinstance(target, str) else None,
        progress=progress,
    ) as seen:
        _check_target(seen, target)
        _check_uses(seen, asked.uses)
        return _evaluated(seen, asked, scenarios_of(seen.given, known, people))


def _check_target(seen: Examined, target: Any) -> None:  # noqa: ANN401 - a name, or classes
    if target is not None and seen.whole:
        open_target(seen.given.source, target)
    if not (seen.whole or target is None or isinstance(target, str)):
        raise DataError(
            "target must be the name of a column where the table is too large to be looked at as "
            "a whole; add the classes to the original as a column"
        )


def _check_uses(seen: Examined, uses: Sequence[Use]) -> None:
    """Refuse, before any work, uses of columns that are not there, or hold something else."""
    columns = describe_all(seen.given.source.schema, inferred=False)
    if seen.plan is not None:
        check_uses(uses, seen.plan.attributes)
    for use in uses:
        if seen.plan is None and (name := next((n for n in use.columns if n not in columns), "")):
            raise refused_use(use, f"no column {name!r}{did_you_mean(name, columns)}")
    check_uses_of(uses, columns, seen.plan)


def _evaluated(seen: Examined, asked: Asked, scenarios: tuple[Scenario, ...]) -> Evaluation:
    found = [*seen.left_out, *_items(seen, asked, scenarios)]
    figures = in_order(figures_in(found))
    step = None
    if not seen.whole and seen.plan is not None:
        step = next_step(seen, figures, scenarios, seed=asked.seed)
    before, after = (int(np.count_nonzero(~each)) for each in complete_in(seen.pair))
    return Evaluation(
        records=seen.beside.originals,
        released=seen.records,
        incomplete=(before, after),
        attributes=seen.given.attributes,
        figures=figures,
        not_computed=tuple(item for item in found if isinstance(item, NotComputed)),
        seen=seen,
        scenarios=scenarios,
        drawn=None if seen.whole else seen.drawn,
        change=step,
    )


def _items(seen: Examined, asked: Asked, scenarios: Sequence[Scenario]) -> Items:
    """Measure two tables in every respect."""
    lacking = _lacking(seen, asked)
    for need in lacking:
        ids = tuple(id_ for id_, row in MEASURES.items() if _first(row.needs, lacking) == need)
        if ids:
            yield NotComputed(ids, NOT_PAIRED if need == "paired" else f"no_{need}")
    for family in FAMILIES:
        if not _first(family.needs, lacking) and (seen.pair.attributes or not family.of_records):
            yield from family_items(family, seen, asked)
    if seen.pair.attributes:
        yield from attack_items(seen, asked, (EVERYTHING, *scenarios), lacking)


def _lacking(seen: Examined, asked: Asked) -> dict[Need, None]:
    """Return what is not known of a release; a control is only drawn by the benchmark."""
    lacks: dict[Need, bool] = {
        "paired": not seen.paired,
        "plan": seen.plan is None,
        "detail": seen.pair.clusters is None,
        "target": asked.target is None,
        "quasi-identifiers": not asked.quasi_identifiers,
    }
    return dict.fromkeys(need for need, lacking in lacks.items() if lacking)


def _first(needs: Sequence[Need], lacking: dict[Need, None]) -> Need | None:
    return next((need for need in needs if need in lacking), None)


def family_items(family: Family, seen: Examined, asked: Asked) -> Items:
    """Compute a family of measures; of drawn records also how far off all records may be.

    The drawn records are parted at random into ten groups that are measured as well: how much the
    groups differ tells how much samples differ (the method of random groups).
    """
    if seen.whole or not family.of_records:
        yield from family.compute(seen, asked)
        return
    random = np.random.default_rng(asked.seed)
    parts = np.array_split(random.permutation(len(seen.pair.released)), _GROUPS)
    groups = [_values(family.compute(seen.some(np.sort(part)), asked)) for part in parts]
    for item in family.compute(seen, asked):
        if isinstance(item, NotComputed):
            yield item
        elif not MEASURES[item.measure].of_sample:
            yield NotComputed((item.measure,), "depends_on_number_of_records", item.attribute)
        else:
            of_groups = [group[key] for group in groups if (key := _key(item)) in group]
            yield _of_sample(item, of_groups, seen)


def _values(items: Items) -> dict[tuple[str, str | None], float]:
    return {_key(figure): figure.value for figure in figures_in(items)}


def _key(figure: Figure) -> tuple[str, str | None]:
    return figure.measure, figure.attribute


def _of_sample(figure: Figure, of_groups: Sequence[float], seen: Examined) -> Figure:
    if len(set(of_groups)) == 1 == len(set(of_groups) | {figure.value}):
        return figure  # it does not depend on what was drawn
    if len(of_groups) < _GROUPS:
        return replace(figure, sample=Sample(seen.drawn, seen.records))
    margin = _T * float(np.std(of_groups, ddof=1)) / np.sqrt(_GROUPS)
    least = 0.0 if min(of_groups) >= 0 else -np.inf
    low, high = max(least, figure.value - margin), figure.value + margin
    return replace(figure, sample=Sample(seen.drawn, seen.records, float(low), float(high)))


def attack_items(
    seen: Examined,
    asked: Asked,
    scenarios: Sequence[Scenario],
    lacking: dict[Need, None],
) -> Items:
    """Make every attack that can be made, in every scenario."""
    if not seen.whole and seen.plan is None:
        ids = tuple(id_ for id_, row in ATTACKS.items() if row.on_release)
        yield NotComputed(ids, "no_plan_of_large")
        return
    for attack in ATTACKS.values():
        if attack.on_release is None or _first(attack.needs, lacking):
            continue
        for scenario in scenarios if attack.in_scenarios else scenarios[:1]:
            item = attack.on_release(seen, scenario, asked)
            if item is not None:
                yield item
    if "paired" not in lacking and "plan" not in lacking:
        yield from question_items(seen, asked.seed)


def in_order(figures: Sequence[Figure]) -> tuple[Figure, ...]:
    """Sort figures by measure, as the registry lists them."""
    places = {id_: place for place, id_ in enumerate(MEASURES)}
    return tuple(sorted(figures, key=lambda figure: places[figure.measure]))


def also_known(
    evaluation: Evaluation,
    known: Sequence[str] = (),
    people: float = 1.0,
    quasi_identifiers: Sequence[str] = (),
) -> Evaluation:
    """Try one more attacker on what was evaluated: one who knows these columns of so many people.

    Quasi-identifiers are counted in the release as `evaluate` does.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58], "sex": list("ffmmff")})
    >>> plan = Plan.published(epsilon=1.0, k=3, attributes={"age": "confidential", "sex": "kept"})
    >>> evaluation = evaluate(people, protect(people, plan, seed=1))
    >>> round(also_known(evaluation, ["sex"]).value("linkage.nearest", "knows sex"), 3)
    0.333
    """
    seen, tried = evaluation.seen, {scenario.label for scenario in evaluation.scenarios}
    if not seen.whole:
        raise DataError(
            "people are looked for among all released records, which an evaluation of drawn ones "
            "does not hold; evaluate again with known and people"
        )
    new = tuple(x for x in scenarios_of(seen.given, known, people) if x.label not in tried)
    asked = Asked(quasi_identifiers=tuple(quasi_identifiers))
    found = list(_in_new(seen, asked, new))
    figures = in_order([*evaluation.figures, *figures_in(found)])
    return replace(evaluation, figures=figures, scenarios=(*evaluation.scenarios, *new))


def _in_new(
    seen: Examined, asked: Asked, scenarios: Sequence[Scenario]
) -> Iterator[Figure | NotComputed]:
    for attack in ATTACKS.values():
        for scenario in scenarios if attack.in_scenarios and attack.on_release else ():
            item = attack.on_release(seen, scenario, asked)  # type: ignore[misc]
            if item is not None:
                yield item
    for family in FAMILIES:
        if asked.quasi_identifiers and "quasi-identifiers" in family.needs:
            yield from family.compute(seen, asked)
