"""What returned objects show of themselves: a screen of text; in a notebook a table and a chart."""

import sys
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.cells import cell_len

from microveil import Certificate, Plan, audit, evaluate, explore, protect, risk, verdict
from microveil.show.certificates import show_certificate
from microveil.show.screens import ResultScreen, printed

HOSTILE = '<script>alert("a")</script>'
NAMES = [
    HOSTILE,
    "\x1b[2J",
    "年齢" * 40,
    "line\nbreak",
    "wages",
    "[bold]",
    *(f"a{i}" for i in range(24)),
]
NOTEBOOK = ["Plan", "Release", "Certificate", "Evaluation", "Exploration", "Audit", "Risk"]


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """One of each, of a table with many columns of strange names."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({name: rng.normal(size=40).round(2) for name in NAMES})
    plan = Plan.published(epsilon=30.0, k=5, attributes=dict.fromkeys(NAMES, "confidential"))
    release = protect(table, plan)
    few = table.select(NAMES[:5])
    small = Plan.published(epsilon=4.0, k=5, attributes=dict.fromkeys(few.columns, "confidential"))
    other = protect(few, small)
    return {
        "Plan": plan,
        "Release": release,
        "Certificate": release.certificate,
        "Evaluation": evaluate(few, other),
        "Exploration": explore(few, small, runs=1, epsilons=(1.0,)),
        "Audit": audit(few, small, runs=100, releases=20, seed=1),
        "Risk": risk(few, keys=few.columns[:4], sensitive="wages"),
        "Verdict": verdict(few, other, seed=1),
    }


@pytest.mark.parametrize("name", [*NOTEBOOK, "Verdict"])
def test_a_screen_each(shown: dict[str, Any], name: str) -> None:
    text = repr(shown[name])
    assert text.startswith((name, "Certificate"))
    assert 5 <= len(text.splitlines()) <= 25
    assert max(map(cell_len, text.splitlines())) <= 100
    assert "\x1b" not in text + str(shown[name])


@pytest.mark.parametrize("name", NOTEBOOK)
def test_a_table_and_a_chart_in_a_notebook(shown: dict[str, Any], name: str) -> None:
    html = shown[name]._repr_html_()
    root = ET.fromstring(html)  # noqa: S314 - it is our own; that it parses is the point
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert {"table", "svg", "path"} <= tags
    assert "script" not in tags
    assert len(html) < 100_000
    assert (HOSTILE in "".join(root.itertext())) == (name != "Exploration")  # which names none


def test_what_is_left_out_is_counted(shown: dict[str, Any]) -> None:
    assert repr(shown["Plan"]).splitlines()[-1] == "  … and 9 more"
    assert "… and 15 more" in shown["Plan"]._repr_html_()


def test_printing_a_certificate_is_what_the_command_prints(shown: dict[str, Any]) -> None:
    certificate: Certificate = shown["Certificate"]
    assert str(certificate) == printed(show_certificate(certificate))
    assert "What epsilon covers" in str(certificate)


def test_a_plan_shows_no_category() -> None:
    plan = Plan.from_toml(
        'epsilon = 1\n[attributes]\njob = {role = "confidential", kind = "nominal", '
        'categories = ["nurse", "smith"]}\nage = {role = "confidential", lower = 0}\n'
    )
    assert "nurse" not in repr(plan) + plan._repr_html_()
    assert 'kind = "nominal", 2 categories' in repr(plan)
    assert str(plan) == repr(plan)


def test_without_what_draws_there_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.delitem(sys.modules, "microveil.show.charts.render", raising=False)
    html = Plan.published(epsilon=1.0, attributes={"age": "confidential"})._repr_html_()
    assert "<table" in html
    assert "<svg" not in html


def test_long_texts_are_cut() -> None:
    summary = ResultScreen("t " * 100, ["word " * 400], ("a",), [("x" * 300,)] * 50)
    assert len(summary.text.splitlines()) == 25
    assert max(map(len, summary.text.splitlines())) == 100
