"""The fourth step: how useful and how risky the release is, what to change, and its certificate."""

import streamlit as st

from microveil.app.attacked import attacked
from microveil.app.charts import before_and_after, chart_of_use
from microveil.app.figures_table import readings_of, remarks
from microveil.app.markup import graded, items, message, readings, table_of, verdict_box
from microveil.app.page_words import in_page_words
from microveil.app.session_state import Draft, Protected, go_to, remember
from microveil.errors import MicroveilError, noted
from microveil.judge.evaluated import Evaluation
from microveil.judge.evaluation import evaluate
from microveil.judge.verdict import Verdict, verdict
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate
from microveil.show.charts.dials import Inks, dials, drawn
from microveil.show.charts.histograms import Shares
from microveil.show.charts.use_chart import MOST_DOTS
from microveil.show.evaluations import scenario_rows
from microveil.show.shapes import shapes_of_masked
from microveil.show.verdicts import verdict_lines
from microveil.show.words.certificate_words import level_heading, level_statement, remarks_of
from microveil.show.words.grading import (
    RULES,
    change_in_words,
    passes_or_not,
    risk_card,
    usefulness_card,
)
from microveil.show.words.use_words import UseRow, by_use

_SHOWN = ("Risk", "Usefulness", "To change", "Rule")
"""Lines of a verdict that its box, its dials and the rule of grading say."""


def judged(outcome: Protected) -> Verdict | MicroveilError:
    """Return the verdict of a release, or why there is none."""

    def look() -> Verdict | MicroveilError:
        try:
            with noted():
                return verdict(outcome.original, outcome.release, seed=0)
        except MicroveilError as error:
            return error

    with st.spinner("Looking for people in the release; this takes seconds", show_time=True):
        return remember("verdict", outcome, look)


def verdict_step(draft: Draft, outcome: Protected) -> None:
    """Say whether the release passes, and why."""
    found = judged(outcome)
    if isinstance(found, MicroveilError):
        st.html(verdict_box(None, ["There is no verdict.", str(found)]))
    else:
        _verdict(draft, found)
    label = "Next: download" if passed(found) else "Download all the same"
    st.button(label, type="primary" if passed(found) else "secondary", on_click=go_to,
              args=("Download",))  # fmt: skip
    _details(outcome, found)


def passed(found: Verdict | MicroveilError) -> bool:
    """Whether a verdict says that the release may be published."""
    return isinstance(found, Verdict) and found.passed


def _verdict(draft: Draft, found: Verdict) -> None:
    change = found.change
    to_change = (
        [in_page_words(f"To change: {change_in_words(change)}.")] if change is not None else []
    )
    st.html(verdict_box(found.passed, [passes_or_not(found.figures), *to_change]))
    if change is not None and change.plan is not None:
        st.button("Take this change, and protect again", on_click=_take, args=(draft, change.plan))
    cards = risk_card(found.figures), usefulness_card(found.figures)
    for column, card, dial in zip(st.columns(2), cards, dials(found.figures), strict=True):
        with column.container(border=True, height="stretch"):
            st.image(drawn(dial, Inks()), width=200)
            st.subheader(card.question, anchor=False)
            st.html(graded(card.grade, card.answer, card.sentences))
    st.caption("These figures are computed from the original data: keep them private.")
    others = ((about, line) for about, line in verdict_lines(found) if about not in _SHOWN)
    st.html(items(f"{about}: {line}" for about, line in others))
    scenarios = scenario_rows(found.figures)
    if scenarios:
        st.subheader("What an attacker may know", anchor=False)
        st.html(table_of(scenarios))
    with st.expander("How this is graded"):
        st.caption(RULES)


def _take(draft: Draft, plan: Plan) -> None:
    draft.take(plan)
    go_to("Protect")


def _details(outcome: Protected, found: Verdict | MicroveilError) -> None:
    used, shown, everything, attacks, promised = st.tabs(
        ["Uses", "Before and after", "All figures", "Attacks", "Certificate"]
    )
    with used:
        _uses([] if isinstance(found, MicroveilError) else [*by_use(found.figures)])
    with shown:
        shapes = remember(
            "shapes", outcome, lambda: shapes_of_masked(outcome.original.data, outcome.release)
        )
        _shapes([shape.shares for shape in shapes])
    with everything:
        _everything(outcome)
    with attacks:
        attacked(outcome)
    with promised:
        _certificate(outcome.release.certificate)


def evaluated(outcome: Protected) -> Evaluation:
    """Measure everything, with the columns that may be known as quasi-identifiers."""

    def measure() -> Evaluation:
        known = next((x.known for x in outcome.plan.scenarios if x.known), ())
        released = [n for n in known if n in outcome.release.data.columns]
        with noted():
            return evaluate(outcome.original, outcome.release, quasi_identifiers=released)

    return remember("evaluation", outcome, measure)


def _everything(outcome: Protected) -> None:
    """Show every figure, once that is asked for."""
    if st.button("Measure everything (a million records take about a minute)"):
        st.session_state["everything asked for"] = outcome
    if st.session_state.get("everything asked for") is not outcome:
        return
    try:
        with st.spinner("Measuring", show_time=True):
            found = evaluated(outcome)
    except MicroveilError as error:
        st.html(message("error", str(error)))
        return
    for title, topic in (("Uses", "uses"), ("Utility", "utility"), ("Risk", "risk")):
        st.subheader(title, anchor=False)
        st.html(readings(readings_of(found, topic)))  # type: ignore[arg-type]
    st.html(items(remarks(found)))


def _uses(compared: list[tuple[str, list[UseRow]]]) -> None:
    """Draw what the release is used for, original and release with their intervals."""
    if not compared:
        st.caption("The plan names no uses; the second step asks for them.")
    for first in range(0, len(compared), 2):
        for column, (use, rows) in zip(st.columns(2), compared[first : first + 2], strict=False):
            with column:
                st.altair_chart(chart_of_use(use, rows))
                if len(rows) > MOST_DOTS:
                    st.caption(f"The first {MOST_DOTS} of {len(rows):,} groups.")


def _shapes(compared: list[Shares]) -> None:
    for first in range(0, len(compared), 2):
        for column, one in zip(st.columns(2), compared[first : first + 2], strict=False):
            with column:
                st.text(one.name)
                if one.before:
                    st.altair_chart(before_and_after(one))
                st.caption(one.note if one.before else "Nothing to draw.")


def _certificate(certificate: Certificate) -> None:
    st.html(readings((level_heading(x), "", level_statement(certificate, x))
                     for x in certificate.levels))  # fmt: skip
    for title, sentences in remarks_of(certificate).items():
        st.subheader(title, anchor=False)
        st.html(items(sentences))
