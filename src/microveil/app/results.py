"""Steps 4 to 6: protect, judge what came of it, take it home."""

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from microveil.app.charts import before_and_after
from microveil.app.compare import compare
from microveil.app.downloads import HAS_REPORT, files_of, report_of
from microveil.app.markup import items, message, readings
from microveil.app.session import Chosen, Outcome, remember
from microveil.app.words import Part, headline, readings_of, remarks
from microveil.charts.shares import Shares
from microveil.errors import MicroveilError, noted
from microveil.evaluation import Evaluation, evaluate
from microveil.formats import FORMATS, WRITABLE
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate
from microveil.release.protect import protect

_QUESTIONS: dict[Part, str] = {"utility": "How useful is it?", "risk": "How risky is it?"}


def run(chosen: Chosen, plan: Plan | None) -> Outcome | None:
    """Step 4: protect the table."""
    st.header("4. Protect", anchor=False)
    pressed = st.button("Protect", type="primary", disabled=plan is None)
    if plan is None:
        st.caption("First fix what is marked above as an error.")
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
            message("note", "the plan has changed since; what follows is the release before.")
        )
    return outcome  # type: ignore[no-any-return]


def _protect(chosen: Chosen, plan: Plan, place: DeltaGenerator) -> Outcome:
    bar = place.progress(0.0, text="Masking")
    table = chosen.as_planned(plan)

    def show(_what: str, done: int, total: int) -> None:
        bar.progress(done / total, text=f"Masked {done} of {total} attributes")

    with noted():  # which the check has shown
        release = protect(table, plan, progress=show)
    bar.empty()
    return Outcome(table, release)


def judge(outcome: Outcome) -> Evaluation:
    """Step 5: how useful it is, how risky, and what is promised."""
    st.header("5. Judge", anchor=False)
    st.caption("These figures depend on the data: keep them private.")
    with st.spinner("Measuring; a million records take about a minute", show_time=True):
        found = remember("evaluation", outcome, lambda: _evaluate(outcome))
        compared = remember(
            "compared", outcome, lambda: compare(outcome.original.data, outcome.release)
        )
    for column, (part, question) in zip(st.columns(2), _QUESTIONS.items(), strict=True):
        with column.container(border=True, height="stretch"):
            st.subheader(question, anchor=False)
            st.html(items(headline(found, part)))
    shapes, useful, safe, promised = st.tabs(
        ["Before and after", "More on utility", "More on risk", "Certificate"]
    )
    useful.html(readings(readings_of(found, "utility")) + items(remarks(found)))
    safe.html(readings(readings_of(found, "risk")))
    with shapes:
        _shapes(compared)
    with promised:
        _certificate(outcome.release.certificate)
    return found


def _evaluate(outcome: Outcome) -> Evaluation:
    with noted():
        known = outcome.plan.names("kept")
        return evaluate(outcome.original, outcome.release, quasi_identifiers=known)


def _shapes(compared: list[Shares]) -> None:
    for first in range(0, len(compared), 2):
        for column, shares in zip(st.columns(2), compared[first : first + 2], strict=False):
            with column:
                st.text(shares.name)
                if shares.before:
                    st.altair_chart(before_and_after(shares))
                st.caption(shares.note if shares.before else "There is nothing to draw.")


def _certificate(certificate: Certificate) -> None:
    st.html(readings((f"{x.level}. {x.name}", "", x.statement) for x in certificate.levels))
    for title, texts in (
        ("What is not protected", certificate.not_protected),
        ("Notes", certificate.notes),
    ):
        if texts:
            st.subheader(title, anchor=False)
            st.html(items(texts))


def download(chosen: Chosen, outcome: Outcome) -> DeltaGenerator:
    """Step 6: the files; returns where to offer the report, which needs the evaluation."""
    st.header("6. Take it home", anchor=False)
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
            "files", (outcome, ending), lambda: files_of(outcome.release, chosen.name, ending)
        )
    except MicroveilError as error:
        st.html(message("error", str(error)))
        return st.container()
    for note in files.notes:
        st.html(message("warning", note))
    st.caption("Publish these two together: the certificate holds the file's SHA-256.")
    with st.container(horizontal=True):
        _button("Protected file", files.protected, primary=True)
        _button("Certificate", files.certificate)
    st.caption("For yourself: the plan, and what is private and must not be published.")
    detail = st.checkbox("I also want the private detail")
    own = st.container(horizontal=True)
    with own:
        _button("Plan", ("plan.toml", outcome.plan.to_toml().encode()))
        if detail:
            _button("Private detail", files.detail)
    return own


def offer_report(outcome: Outcome, evaluation: Evaluation) -> None:
    """Offer the private report, which is written when it is asked for."""
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
