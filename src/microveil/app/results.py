"""Steps 4 to 6: protect, judge what came of it, take it home."""

from collections.abc import Iterator
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from microveil.app.charts import before_and_after
from microveil.app.compare import Comparison, compare
from microveil.app.downloads import files_of
from microveil.app.markup import items, message, readings
from microveil.app.session import Chosen, Outcome, remember
from microveil.app.upload import caught_warnings
from microveil.certificate import Certificate
from microveil.errors import MicroveilError
from microveil.evaluate import MEASURES, Evaluation, evaluate
from microveil.evaluate.result import figures_to_show
from microveil.formats import FORMATS, WRITABLE
from microveil.plan import Plan
from microveil.protect import protect


def run(chosen: Chosen, plan: Plan | None) -> Outcome | None:
    """Step 4: protect the table, and measure what came of it."""
    st.header("4. Protect", anchor=False)
    pressed = st.button("Protect", type="primary", disabled=plan is None)
    place = st.container()
    if pressed and plan is not None:
        try:
            found = _protect(chosen, plan, place)
        except MicroveilError as error:
            place.html(message("error", str(error)))
            return None
        st.session_state["outcome"] = (chosen.identity, found)
    identity, outcome = st.session_state.get("outcome", (None, None))
    if identity != chosen.identity or outcome is None:
        return None
    if outcome.plan != plan:
        place.html(
            message("note", "the plan has changed since; what follows is the release before.")
        )
    return outcome  # type: ignore[no-any-return]


def _protect(chosen: Chosen, plan: Plan, place: DeltaGenerator) -> Outcome:
    bar = place.progress(0.0, text="Masking")
    table = chosen.as_planned(plan)

    def show(_what: str, done: int, total: int) -> None:
        bar.progress(0.6 * done / total, text=f"Masked {done} of {total} attributes")

    with caught_warnings() as notes:
        release = protect(table, plan, progress=show)
    bar.progress(0.6, text="Measuring utility and risk")
    with caught_warnings():
        found = evaluate(table, release, quasi_identifiers=plan.names("kept"))
    bar.progress(0.9, text="Drawing")
    comparisons = compare(table.data, release)
    bar.empty()
    return Outcome(plan, release, found, comparisons, notes)


def judge(outcome: Outcome) -> None:
    """Step 5: how useful it is, how safe, and what is promised."""
    st.header("5. Judge", anchor=False)
    st.caption("These figures depend on the data: keep them private.")
    st.html(readings(_headline(outcome.evaluation)))
    useful, safe, shapes, promised = st.tabs(["Utility", "Risk", "Before and after", "Certificate"])
    useful.html(readings(_readings(outcome.evaluation, "utility")))
    safe.html(readings(_readings(outcome.evaluation, "risk")))
    notes = [f"{x.measure}: not computed, {x.reason}" for x in outcome.evaluation.not_computed]
    useful.html(items([*outcome.evaluation.notes, *notes]))
    with shapes:
        _shapes(outcome.comparisons)
    with promised:
        _certificate(outcome.release.certificate)


def _headline(evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    """Say first what most people want to know."""
    for question, measure in (("Is it useful?", "mean SSE"), ("Is it safe?", "record linkage")):
        for figure in evaluation.figures:
            if figure.measure == measure:
                yield question, "", f"{figure.reading}."


def _readings(
    evaluation: Evaluation, part: Literal["utility", "risk"]
) -> Iterator[tuple[str, str, str]]:
    figures = [f for f in evaluation.figures if MEASURES[f.measure].part == part]
    for figure, chosen in figures_to_show(part, figures):
        about = ", ".join(filter(None, (figure.attribute, chosen)))
        yield f"{figure.measure}: {figure.value:.3g}", about and f"({about})", figure.reading


def _shapes(comparisons: list[Comparison]) -> None:
    st.caption("What lies beyond the outermost hundredth is drawn at the ends.")
    for comparison in comparisons:
        st.text(comparison.attribute)
        st.altair_chart(before_and_after(comparison))


def _certificate(certificate: Certificate) -> None:
    st.html(readings((f"{x.level}. {x.name}", "", x.statement) for x in certificate.levels))
    for title, texts in (
        ("What is not protected", certificate.not_protected),
        ("Notes", certificate.notes),
    ):
        if texts:
            st.subheader(title, anchor=False)
            st.html(items(texts))


def download(chosen: Chosen, outcome: Outcome) -> None:
    """Step 6: the files."""
    st.header("6. Take it home", anchor=False)
    endings = list(WRITABLE)
    own = "." + chosen.name.rpartition(".")[2].lower()
    ending = st.selectbox(
        "File format",
        endings,
        index=endings.index(own) if own in endings else 0,
        format_func=lambda e: f"{FORMATS[e].name} ({e})",
    )
    try:
        files = remember(
            "files", (outcome, ending), lambda: files_of(outcome.release, chosen.name, ending)
        )
    except MicroveilError as error:
        st.html(message("error", str(error)))
        return
    for note in files.notes:
        st.html(message("warning", note))
    st.caption("Publish these two together: the certificate holds the file's SHA-256.")
    _button("Protected file", files.protected, primary=True)
    _button("Certificate", files.certificate)
    st.caption("For yourself: the plan, and the private detail, which must not be published.")
    _button("Plan", ("plan.toml", outcome.plan.to_toml().encode()))
    if st.checkbox("I also want the private detail"):
        _button("Private detail", files.detail)


def _button(label: str, file: tuple[str, bytes], *, primary: bool = False) -> None:
    name, content = file
    st.download_button(
        label,
        content,
        name,
        on_click="ignore",
        type="primary" if primary else "secondary",
        key=f"download {label}",
    )
