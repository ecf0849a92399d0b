"""Steps 4 to 6: protect the table, judge the release, download the files."""

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from microveil.app.attacked import attacked
from microveil.app.charts import before_and_after
from microveil.app.downloads import HAS_REPORT, release_files, report_of
from microveil.app.figures_table import readings_of, remarks
from microveil.app.markup import graded, items, message, readings, scenario_table, verdict_box
from microveil.app.server import NAMED
from microveil.app.session_state import KEY, Chosen, Protected, remember
from microveil.errors import MicroveilError, noted
from microveil.formats import FORMATS, WRITABLE
from microveil.judge.change import Change
from microveil.judge.evaluated import Evaluation
from microveil.judge.evaluation import also_known, evaluate
from microveil.judge.grades import passes
from microveil.judge.next_step import next_step_after
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate
from microveil.release.protect import protect
from microveil.show.charts.histograms import Shares
from microveil.show.evaluations import scenario_rows
from microveil.show.shapes import shapes_of_masked
from microveil.show.words.certificate_words import level_heading, level_statement, remarks_of
from microveil.show.words.grading import (
    PUBLISH,
    RULES,
    answers_to_questions,
    change_in_words,
    passes_or_not,
    risk_card,
    usefulness_card,
)


def protect_step(chosen: Chosen, plan: Plan | None) -> Protected | None:
    """Step 4: protect the table."""
    st.header("4. Protect", anchor=False)
    pressed = st.button("Protect", type="primary", disabled=plan is None)
    if plan is None:
        st.caption("Fix the errors marked above first.")
    place = st.container()
    if pressed and plan is not None:
        try:
            outcome = _protect(chosen, plan, place)
        except MicroveilError as error:
            place.html(message("error", str(error)))
            return None
        st.session_state["outcome"] = (chosen.identity, outcome)
    identity, outcome = st.session_state.get("outcome", (None, None))
    if identity != chosen.identity or outcome is None:
        return None
    if outcome.plan != plan:
        place.html(
            message("note", "the plan has changed; the results below are for the previous release.")
        )
    return outcome  # type: ignore[no-any-return]


def _protect(chosen: Chosen, plan: Plan, place: DeltaGenerator) -> Protected:
    bar = place.progress(0.0, text="Masking")
    table = chosen.as_planned(plan)

    def show(_what: str, done: int, total: int) -> None:
        bar.progress(done / total, text=f"Masked {done} of {total} attributes")

    with noted():  # which the check has shown
        key = st.session_state.get(KEY)
        key = key if key in NAMED.keys else None
        release = protect(table, plan, key=key, progress=show)
    bar.empty()
    return Protected(table, release)


def judge_step(outcome: Protected) -> Evaluation:
    """Step 5: how useful and how risky the release is, what to change, and its certificate."""
    st.header("5. Judge the release", anchor=False)
    st.caption("These figures are computed from the original data: keep them private.")
    known, people, quasi_identifiers = _attacker(outcome.plan)
    with st.spinner("Measuring; a million records take about a minute", show_time=True):
        base = remember("evaluation", outcome, lambda: _evaluate(outcome))
        asked = (outcome, tuple(known), people, tuple(quasi_identifiers))
        found = remember(
            "scenario", asked, lambda: also_known(base, known, people, quasi_identifiers)
        )
        change = remember("change", asked, lambda: _next_step(found))
        shapes = remember(
            "shapes", outcome, lambda: shapes_of_masked(outcome.original.data, outcome.release)
        )
    useful_card, risky_card = usefulness_card(found.figures), risk_card(found.figures)
    to_change = [f"To change: {change_in_words(change)}."] if change is not None else []
    st.html(verdict_box(risky_card.grade, [passes_or_not(found.figures), *to_change]))
    for column, card in zip(st.columns(2), (useful_card, risky_card), strict=True):
        with column.container(border=True, height="stretch"):
            st.subheader(card.question, anchor=False)
            st.html(graded(card.grade, card.answer, card.sentences))
    answers = answers_to_questions(found.figures, found.not_computed)
    st.html(items(f"{question}: {answer}" for question, answer in answers))
    st.caption(RULES)
    scenarios = scenario_rows(found.figures)
    if scenarios:
        st.subheader("Scenarios", anchor=False)
        st.html(scenario_table(scenarios))
    drawn, useful, safe, attacks, promised = st.tabs(
        ["Before and after", "More on utility", "More on risk", "Attacks", "Certificate"]
    )
    useful.html(readings(readings_of(found, "utility")) + items(remarks(found)))
    safe.html(readings(readings_of(found, "risk")))
    with drawn:
        _shapes([shape.shares for shape in shapes])
    with attacks:
        attacked(outcome)
    with promised:
        _certificate(outcome.release.certificate)
    return found


def _attacker(plan: Plan) -> tuple[list[str], float, list[str]]:
    """Ask what an attacker may know."""
    released = [name for name, a in plan.attributes.items() if a.role != "identifier"]
    quasi_identifiers = st.multiselect(
        "Count records that are unique on these columns", released,
        placeholder="columns that an attacker may know",
    )  # fmt: skip
    left, right = st.columns([3, 1])
    known = left.multiselect(
        "Also test an attacker who knows only", released, placeholder="all masked attributes"
    )
    people = right.slider("Share of people known (%)", 5, 100, 100, step=5)
    return known, people / 100, quasi_identifiers


def _evaluate(outcome: Protected) -> Evaluation:
    with noted():
        return evaluate(outcome.original, outcome.release)


def _next_step(evaluation: Evaluation) -> Change | None:
    with noted():
        return next_step_after(evaluation)


def _shapes(compared: list[Shares]) -> None:
    for first in range(0, len(compared), 2):
        for column, drawn in zip(st.columns(2), compared[first : first + 2], strict=False):
            with column:
                st.text(drawn.name)
                if drawn.before:
                    st.altair_chart(before_and_after(drawn))
                st.caption(drawn.note if drawn.before else "Nothing to draw.")


def _certificate(certificate: Certificate) -> None:
    st.html(readings((level_heading(x), "", level_statement(certificate, x))
                     for x in certificate.levels))  # fmt: skip
    for title, sentences in remarks_of(certificate).items():
        st.subheader(title, anchor=False)
        st.html(items(sentences))


class Offered(NamedTuple):
    """Where to say whether to publish, and where to offer the report: both need the evaluation."""

    publish: DeltaGenerator
    own: DeltaGenerator


def offer_files(chosen: Chosen, outcome: Protected) -> Offered:
    """Step 6: the files."""
    st.header("6. Download the files", anchor=False)
    endings = list(WRITABLE)
    same = "." + chosen.name.rpartition(".")[2].lower()
    ending = st.selectbox(
        "File format",
        endings,
        index=endings.index(same) if same in endings else 0,
        format_func=lambda e: f"{FORMATS[e].name} ({e})",
    )
    try:
        files = remember(
            "files", (outcome, ending), lambda: release_files(outcome.release, chosen.name, ending)
        )
    except MicroveilError as error:
        st.html(message("error", str(error)))
        return Offered(st.empty(), st.container())
    for note in files.notes:
        st.html(message("warning", note))
    publish = st.empty()
    publish.caption("Step 5 says whether to publish these two files.")
    with st.container(horizontal=True):
        _button("Protected file", files.protected, primary=True)
        _button("Certificate", files.certificate)
    st.caption("For you only: the plan and the private files. Do not publish them.")
    detail = st.checkbox("Include the private detail")
    own = st.container(horizontal=True)
    with own:
        _button("Plan", ("plan.toml", outcome.plan.to_toml().encode()))
        if detail:
            _button("Private detail", files.detail)
    return Offered(publish, own)


def conclude(outcome: Protected, evaluation: Evaluation, offered: Offered) -> None:
    """Say whether to publish, and offer the private report, which is written when asked for."""
    passed = passes(evaluation.figures)
    offered.publish.caption(
        PUBLISH if passed else "Do not publish these files: the release does not pass, see step 5."
    )
    with offered.own:
        _offer_report(outcome, evaluation)


def _offer_report(outcome: Protected, evaluation: Evaluation) -> None:
    if HAS_REPORT:
        _button(
            "Private report",
            ("report.html", lambda: report_of(outcome.original, outcome.release, evaluation)),
        )


def _button(
    label: str, file: tuple[str, bytes | Callable[[], bytes]], *, primary: bool = False
) -> None:
    name, content = file
    st.download_button(
        label,
        content,
        name,
        on_click="ignore",
        type="primary" if primary else "secondary",
        key=f"download {label}",
    )
