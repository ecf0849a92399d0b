"""Two lines in a notebook: a table is protected without a plan, and the release shows itself."""

import copy
import json
import re
import runpy
import warnings
from pathlib import Path

import polars as pl
import pytest

import microveil
from microveil import Confidential, Plan, PlanError, Release, protect
from microveil.plan.sample import people
from microveil.release.assumptions import Assumption
from microveil.show.words.assumption_words import assumption_statement

ROOT = Path(__file__).parent.parent.parent
NOTEBOOK = ROOT / "docs" / "how-to" / "notebook.ipynb"
TABLE = people(240).with_columns(pl.lit(1).alias("wave"))


@pytest.fixture(scope="module")
def release() -> Release:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = protect(TABLE, seed=1)
    assert [str(one.message).partition(",")[0] for one in caught] == ["no plan was given"]
    return made


def test_a_table_without_a_plan_is_protected_by_what_is_proposed(release: Release) -> None:
    assert release.plan == Plan.propose(TABLE)
    assert release.certificate.row_order == "random"
    assert {one.kind: one.names for one in release.assumed if one.names} == {
        "dropped": ("person",),
        "kept": ("wave",),
        "derived": ("income",),
        "rules": release.plan.rules,
        "ranges": ("age", "since", "children", "hours", "wages", "other", "weight"),
        "read-from-data": release.plan.from_data,
    }
    assert Assumption("privacy", epsilon=1.0, people=25) in release.assumed
    assert Assumption("one-record-each") in release.assumed
    assert release.warned
    html = release._repr_html_()
    assert release.plan.uses
    for use in release.plan.uses:
        assert f"X-axis titled '{use}'" in html


def test_what_was_assumed_is_said_in_text(release: Release) -> None:
    said = [assumption_statement(one) for one in release.assumed]
    assert said[0] == (
        "A privacy budget of ε = 1 for each person or unit, and each row hidden among those of 25 "
        "or more."
    )
    assert said[0][:80] in repr(release)
    assert release.sentences()["Assumed"] == said


def test_the_notebook_of_the_documentation_is_current_and_shows_what_it_says() -> None:
    script = runpy.run_path(str(ROOT / "script" / "notebook.py"))
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    told = tuple((cell["cell_type"], "".join(cell["source"])) for cell in cells)
    assert told == script["CELLS"], "out of date: run script/docs"
    shown = script["run"](tuple((k, s.replace("people()", "people(240)")) for k, s in told))
    html = shown[3][-1]["data"]["text/html"]
    written = cells[3]["outputs"][-1]["data"]["text/html"]
    for drawn in (html, written):
        assert drawn.count('class="dial"') == 2
        assert drawn.count(' before and after"') == 11
        assert "<details><summary>To know before it is published (" in drawn
        assert "<b>" not in drawn.partition("</b>")[2]
    assumed = [re.findall(r"<li>([^:<]*)", drawn) for drawn in (html, written)]
    assert assumed[0] == assumed[1] != []
    assert [one["text"] for one in shown[3][:-1]] == [
        one["text"] for one in cells[3]["outputs"][:-1]
    ]
    assert not any("seed" in source for _, source in told)


def test_a_verdict_and_a_release_by_a_plan_are_drawn(release: Release) -> None:
    plan = release.plan.replace(uses=["mean wages by region"])
    with pytest.warns(microveil.PrivacyWarning):
        given = protect(TABLE, plan, seed=1)
    html = microveil.verdict(TABLE, given, seed=1)._repr_html_()
    assert "<summary>More (" in html
    assert given.assumed == ()
    for drawn in (html, given._repr_html_()):
        assert drawn.count('class="dial"') == 2
        assert drawn.count('aria-label="mean wages by region, ') == 1
    assert given._repr_html_().count(' before and after"') == 11


def test_a_release_that_cannot_be_judged_is_drawn_all_the_same() -> None:
    table = pl.DataFrame({"age": [40] * 30})
    plan = Plan(epsilon=1.0, attributes={"age": Confidential(lower=0, upper=99)})
    html = protect(table, plan, seed=1)._repr_html_()
    assert "No verdict: no masked attribute varies" in html
    assert html.count(' before and after"') == 1
    assert 'class="dial"' not in html


def test_names_are_escaped_and_the_original_stays_at_home() -> None:
    table = TABLE.head(60).select(pl.col("wages").alias("<b>wages"), pl.col("hours"))
    with pytest.warns(microveil.PrivacyWarning, match="no plan was given"):
        release = protect(table, seed=1)
    assert release.original is not None
    assert "<b>wages" not in release._repr_html_()
    assert release.__getstate__()["original"] is None
    assert copy.copy(release).original is None


def test_a_table_on_spark_needs_a_plan() -> None:
    table = type("DataFrame", (), {"__module__": "pyspark.sql"})()
    with pytest.raises(PlanError, match="a table on Spark needs a plan"):
        protect(table)
    with pytest.raises(PlanError, match="key and joint go with a plan"):
        protect(TABLE, key="people.key")
