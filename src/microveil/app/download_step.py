"""The last step: the files."""

from collections.abc import Callable
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import streamlit as st

from microveil.app.downloads import HAS_REPORT, ReleaseFiles, release_files, report_of
from microveil.app.elements import show_notes
from microveil.app.markup import message
from microveil.app.session_state import Draft, Protected, remember
from microveil.app.verdict_step import evaluated, judged, passed
from microveil.errors import MicroveilError
from microveil.formats import FORMATS, WRITABLE
from microveil.show.words.grading import PUBLISH


def download_step(draft: Draft, outcome: Protected) -> None:
    """Offer the files to publish, and those for the data holder."""
    endings = list(WRITABLE)
    same = "." + draft.chosen.name.rpartition(".")[2].lower()
    ending = st.selectbox(
        "File format",
        endings,
        index=endings.index(same) if same in endings else 0,
        format_func=lambda e: f"{FORMATS[e].name} ({e})",
    )
    try:
        files = remember(
            "files",
            (outcome, ending),
            lambda: release_files(outcome.release, draft.chosen.name, ending),
        )
    except MicroveilError as error:
        st.html(message("error", str(error)))
        return
    show_notes(files.notes)
    _to_publish(files, may_publish=passed(judged(outcome)))
    _private(files, outcome)


def _to_publish(files: ReleaseFiles, *, may_publish: bool) -> None:
    st.caption(
        PUBLISH
        if may_publish
        else "Do not publish these files: the release does not pass, see the verdict."
    )
    both = "release.zip", lambda: zipped(files.protected, files.certificate)
    with st.container(horizontal=True):
        _button("Protected file and certificate", both, primary=may_publish)
        _button("Protected file alone", files.protected)
        _button("Certificate alone", files.certificate)


def _private(files: ReleaseFiles, outcome: Protected) -> None:
    st.caption("For you only: the plan and the private files. Do not publish them.")
    detail = st.checkbox("Include the private detail")
    with st.container(horizontal=True):
        _button("Plan", ("plan.toml", outcome.plan.to_toml().encode()))
        if detail:
            _button("Private detail", files.detail)
        if HAS_REPORT:
            report = report_of
            _button(
                "Private report",
                (
                    "report.html",
                    lambda: report(outcome.original, outcome.release, evaluated(outcome)),
                ),
            )


def zipped(*files: tuple[str, bytes]) -> bytes:
    """Put files into one archive, side by side."""
    written = BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return written.getvalue()


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
