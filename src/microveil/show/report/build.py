"""Build the private report of a release and the public page of its certificate."""

import math
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from microveil.compare.reasons import why_not
from microveil.formats import LoadedTable, check_output, moved_into_place, source_of
from microveil.judge.evaluated import Evaluation
from microveil.judge.evaluation import evaluate
from microveil.judge.grades import worst_answer
from microveil.judge.registry import MEASURES
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate
from microveil.release.detail import Detail
from microveil.release.guarantees import rounded_up
from microveil.release.release import Release, certificate_beside
from microveil.show.evaluations import figures_to_show, scenario_rows
from microveil.show.report.assessment import answered, assessed, determination
from microveil.show.report.drawings import Drawings
from microveil.show.report.report_words import cards, done, repeated, verdict_on
from microveil.show.report.templating import render
from microveil.show.report.variable_labels import VariableLabels, labels_of
from microveil.show.words.attribute_marks import MARK_COLUMNS, mark_rows
from microveil.show.words.certificate_words import (
    ATTRIBUTE_COLUMNS,
    NUMBER_COLUMNS,
    SEEDED,
    attribute_rows,
    facts_of,
    is_seeded,
    level_heading,
    level_statement,
    remarks_of,
    scope_of,
)
from microveil.show.words.grading import RULES, answers_to_questions, notes_on
from microveil.show.words.numbers import plain
from microveil.show.words.readings import label_of, label_of_missing, reading
from microveil.show.words.scales import scale_of
from microveil.types import UserTable


def report(
    original: UserTable,
    release: Release | UserTable,
    *,
    evaluation: Evaluation | None = None,
    certificate: Certificate | None = None,
    detail: Detail | str | Path | None = None,
    aligned: bool = False,
    target: Any = None,  # noqa: ANN401 - a name, or classes of any kind
    quasi_identifiers: Sequence[str] = (),
    known: Sequence[str] = (),
    people: float = 1.0,
) -> str:
    """Return the private report of a release: one HTML page that needs nothing else.

    It is for the data holder: its figures and charts are functions of the data that ε does not
    cover. Charts hold counts and a few figures, not records.

    Parameters
    ----------
    original
        What was protected: a table, a path or a `Source`.
    release
        A `Release`, or a protected table or the path of one.
    evaluation
        What `evaluate` found of these two, which holds both as they were read; by default it is
        run.
    certificate
        That of the release; by default its own, or the one beside the protected file.
    detail, aligned, target, quasi_identifiers, known, people
        As for `evaluate`, if that is run.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan.published(epsilon=1.0, k=3, attributes={"age": "confidential"})
    >>> page = report(people, protect(people, plan))
    >>> "How risky is it?" in page
    True
    """
    if evaluation is None:
        evaluation = evaluate(
            original,
            release,
            detail=detail,
            aligned=aligned,
            target=target,
            quasi_identifiers=quasi_identifiers,
            known=known,
            people=people,
        )
    certificate = certificate or _certificate_of(release)
    seed = release.seed if isinstance(release, Release) else None
    labels = labels_of(original, release, evaluation.attributes)
    return _page(evaluation, certificate, seed, _name_of(original), labels)


def write_report(
    path: str | Path,
    original: UserTable,
    release: Release | UserTable,
    *,
    overwrite: bool = False,
    **given: Any,  # noqa: ANN401 - as for report
) -> Path:
    """Write the private report of a release to a file that only its owner can read.

    Parameters
    ----------
    path
        A file ending in .html.
    original, release, given
        As for `report`.
    overwrite
        Replace a file that exists.
    """
    made = partial(report, original, release, **given)
    return _write(path, made, overwrite=overwrite, mode=0o600)


def certificate_page(certificate: Certificate) -> str:
    """Return a public page that says what a certificate says: plan facts only.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    >>> plan = Plan.published(epsilon=1.0, k=3, attributes={"age": "confidential"})
    >>> "It is not a clearance" in certificate_page(protect(people, plan).certificate)
    True
    """
    return render("certificate.html.jinja", **_certified(certificate))


def write_certificate_page(
    path: str | Path, certificate: Certificate, *, overwrite: bool = False
) -> Path:
    """Write the public page of a certificate to a file ending in .html."""
    made = partial(certificate_page, certificate)
    return _write(path, made, overwrite=overwrite, mode=0o644)


def _write(path: str | Path, make: Callable[[], str], *, overwrite: bool, mode: int) -> Path:
    path = Path(path)
    check_output(path, overwrite=overwrite, source=None, suffixes=(".html",))
    page = make()
    with moved_into_place([path]) as temporary:
        temporary[0].touch(mode=mode)
        temporary[0].write_text(page, encoding="utf-8")
    return path


def _page(
    evaluation: Evaluation,
    certificate: Certificate | None,
    seed: int | None,
    original: str,
    labels: VariableLabels,
) -> str:
    pair, drawings = evaluation.pair, Drawings(evaluation, labels)
    distributions, not_drawn = drawings.distributions(pair)
    context = {
        "title": original,
        "subtitle": f"{evaluation.released:,} released records, {len(evaluation.attributes):,} "
        "attributes compared with the original",
        "cards": cards(evaluation, certificate),
        "done": done(certificate) if certificate else [],
        "losses": _losses(pair.detail),
        "attributes_said": "Shares of records, before (blue) and after (orange)." + not_drawn,
        "distributions": distributions,
        "uses": drawings.uses(),
        "matrices": drawings.matrices(pair),
        "overviews": drawings.overviews(pair),
        "parts_of_evaluation": [
            (part, list(figures_to_show(part, figures)))
            for part, figures in groupby(evaluation.figures, lambda f: MEASURES[f.measure].topic)
        ],
        "evaluation": evaluation,
        "not_computed": [f"{label_of_missing(missing)}: {why_not(missing)}"
                         for missing in evaluation.not_computed],
        "notes": notes_on(evaluation),
        "label_of": label_of,
        "told": labels.name,
        "about": labels.about,
        "codebook": labels.codebook,
        "reading": reading,
        "plain": plain,
        "scale_of": scale_of,
        "rules": RULES,
        "verdict": verdict_on(evaluation, certificate),
        "unanswered": [
            f"{question}: {answer}"
            for question, answer in answers_to_questions(
                evaluation.figures, evaluation.not_computed
            )
            if worst_answer(evaluation.figures, question) is None
        ],
        "answered": list(answered(evaluation.figures)),
        "assessed": assessed(evaluation, certificate),
        "determination": determination(evaluation, certificate),
        "scenarios": scenario_rows(evaluation.figures),
        "again": repeated(certificate, pair.plan, seed),
        "command": _command(certificate, pair.plan, seed, original),
        "plan": pair.plan.to_toml() if pair.plan else "",
    }  # fmt: skip
    certified = _certified(certificate) if certificate else {"certificate": None}
    return render("report.html.jinja", drawings.charts, **certified, **context)


def _certified(certificate: Certificate) -> dict[str, Any]:
    return {
        "certificate": certificate,
        "scope": scope_of(certificate),
        "seeded": SEEDED if is_seeded(certificate) else "",
        "facts": facts_of(certificate),
        "levels": [
            (level_heading(level), level_statement(certificate, level))
            for level in certificate.levels
        ],
        "remarks": remarks_of(certificate),
        "columns": [(name, _class_of(name)) for name in ATTRIBUTE_COLUMNS],
        "attributes": attribute_rows(certificate),
        "mark_columns": [(n, "name" if n == "attribute" else "text") for n in MARK_COLUMNS],
        "marks": mark_rows(certificate),
    }


def _class_of(column: str) -> str:
    return "number" if column in NUMBER_COLUMNS else "name" if column == "attribute" else "text"


def _losses(detail: Detail | None) -> list[tuple[str, str, str]]:
    if detail is None:
        return []
    return [
        (name, _loss(fixed), _loss(reclustered))
        for name, _, fixed, reclustered in detail.losses.iter_rows()
    ]


def _loss(loss: float | None) -> str:
    return "no bound" if loss is None or math.isinf(loss) else rounded_up(loss)


def _certificate_of(release: Release | UserTable) -> Certificate | None:
    """Return a release's certificate, or the one beside a file, which must belong to it."""
    if isinstance(release, Release):
        return release.certificate
    source = source_of(release)
    return None if source is None or source.path is None else certificate_beside(source.path)


def _name_of(original: UserTable) -> str:
    source = source_of(original)
    if source is not None:
        return source.name
    path = original.meta.path if isinstance(original, LoadedTable) else None
    return path.name if path else "a table"


def _command(
    certificate: Certificate | None, plan: Plan | None, seed: int | None, original: str
) -> str:
    """Write the command that repeats a release; empty where the plan is not known."""
    if plan is None:
        return ""
    file = certificate.file if certificate else None
    words = ["microveil", "protect", original if "." in original else "DATA"]
    words += ["--plan", "plan.toml", "-o", file.name if file else "protected.parquet"]
    kept = certificate is not None and certificate.row_order == "as in the original"
    words += ["--keep-order"] if file and kept else []  # a table in memory is written shuffled
    words += [] if seed is None else ["--seed", str(seed)]
    return shlex.join(words)
