"""Reports name variables and values as the file labels them."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from microveil import Plan, protect
from microveil.formats import load_table
from microveil.formats.metadata import ColumnMeta
from microveil.show.report import report
from microveil.show.report.variable_labels import VariableLabels, labels_of

COLUMNS = {
    "db040": ColumnMeta("Region\n of residence", {1.0: "North", 2.0: "South", 9.0: "South"}),
    "key": ColumnMeta("Name of the person"),
    "x": ColumnMeta(None),
}


def test_names_and_values_by_hand() -> None:
    labels = VariableLabels(COLUMNS, ["db040", "x"])
    assert labels.name("db040") == "Region of residence (db040)"
    assert labels.name("x, db040") == "x, Region of residence (db040)"
    assert [labels.value("db040", code) for code in "179"] == ["North", "7", "South (9)"]
    assert labels.codebook == [("db040", "Region of residence", "1 = North; 2 = South; 9 = South")]
    assert labels.name("key") == "key"  # which is not released


def test_a_report_on_a_labelled_file_says_what_codes_mean(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    random = np.random.default_rng(3)
    frame = pd.DataFrame({
        "db040": random.choice([1.0, 2.0, 9.0], 120), "px": random.normal(40, 9, 120).round(),
    })  # fmt: skip
    path = tmp_path / "people.sav"
    labels = {"db040": "Region <b>", "px": "Age in years"}
    values = {"db040": {1.0: "North", 2.0: "South", 9.0: "South"}}
    pyreadstat.write_sav(frame, path, column_labels=labels, variable_value_labels=values)
    plan = Plan.from_toml(
        "epsilon = 2.0\nmethod = 'DP-UM'\nk = 10\nuses = ['share db040', \"share db040 = '1'\", "
        "'table db040, px(10)', 'px ~ db040']\n[attributes.db040]\nrole = 'confidential'\n"
        "kind = 'nominal'\ncategories = [1, 2, 9]\n[attributes.px]\n"
        "role = 'confidential'\nmethod = 'iDP-CBLS'\nlower = 0\nupper = 120\n"
    )
    release = protect(path, plan, seed=1)
    page = report(path, release)
    assert "<h3>Region &lt;b&gt; (db040)</h3>" in page
    assert "<h3>Age in years (px)</h3>" in page
    assert "1 = North; 2 = South; 9 = South" in page
    drawn = re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)
    assert drawn is not None
    assert '"South (9)"' in drawn[1]
    assert '"North"' in drawn[1]
    uses = page[page.index('id="uses"') : page.index('id="attributes"')]
    for cell in ("North", "South (2)", "South (9)", "North, 30 to under 40", "db040 = South (9)"):
        assert f"<td>{cell}" in uses
    assert not re.search(r"<td>(db040 = )?\d", uses)
    assert "1: North." in uses
    assert "db040: Region &lt;b&gt;; px: Age in years." in uses
    assert '"label": "North, 30 to under 40"' in drawn[1]
    assert not re.search(r'"label": "(db040 = )?[129]\b', drawn[1])
    assert labels_of(path, release.data, ["px"]).name("px") == "Age in years (px)"
    assert labels_of(load_table(path), release.data, ["px"]).codebook[0][1] == "Age in years"


def test_groups_of_uses_by_hand() -> None:
    labels = VariableLabels(COLUMNS, ["db040", "x"])
    told = {
        ("mean x by db040", "1"): "North",
        ("mean x by db040", "7"): "7",
        ("share db040 by x", "9, 1"): "9, North",
        ("share x by db040", "1"): "North",  # of true and false only true, which is not named
        ("table x, db040", "a, b, 1"): "a, b, 1",  # of which nobody knows whose the comma is
        ("x ~ db040", "db040 = 2"): "db040 = South (2)",
        ("mean x", ""): "",
        ("predict x", "R²"): "R²",
    }
    assert {given: labels.group(*given) for given in told} == told
