"""The page's script, run by Streamlit's own test driver."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streamlit.testing.v1 import AppTest

import microveil.app
from microveil.app import attacked
from microveil.app.server import NAMED
from microveil.attacks.attack_rows import ATTACKS
from microveil.lab.benchmark import Benchmark, attack_beside_others
from microveil.plan.plan import Plan
from microveil.plan.sample import people
from microveil.plan.survey import survey
from microveil.release.ledger import Ledger, declare
from microveil.show.words.grading import PUBLISH

PAGE = Path(microveil.app.__file__).with_name("main_page.py")
SAMPLE = "A sample of fictitious people"


@pytest.fixture
def page() -> Any:  # noqa: ANN401 - Streamlit's own
    return AppTest.from_file(str(PAGE), default_timeout=120).run()


def said(page: AppTest, kind: str) -> list[str]:
    marked = f'class="microveil-{kind}"'
    return [e.proto.body for e in page.get("html") if marked in e.proto.body]


def downloads(page: Any) -> list[str]:  # noqa: ANN401
    return [button.label for button in page.get("download_button")]


def steps(page: AppTest) -> list[str]:
    return [header.value[:2] for header in page.header]


def upload(page: AppTest, table: pl.DataFrame) -> None:
    page.file_uploader[0].upload("t.csv", table.write_csv().encode(), "text/csv").run()


def widget(elements: Any, label: str) -> Any:  # noqa: ANN401
    return next(e for e in elements if e.label.startswith(label))


def test_only_the_first_step_is_shown_at_first(page: AppTest) -> None:
    assert steps(page) == ["1."]


def test_the_sample_from_start_to_end(page: AppTest) -> None:
    page.radio[0].set_value(SAMPLE).run()
    assert steps(page) == ["1.", "2.", "3.", "4."]
    widget(page.button, "Protect").click().run()
    assert not page.exception
    assert said(page, "error") == []
    assert downloads(page)[:3] == ["Protected file", "Certificate", "Plan"]
    (found,) = said(page, "verdict")
    assert "The release passes." in found
    assert PUBLISH in [caption.value for caption in page.caption]
    assert len(said(page, "grade")) == 2
    widget(page.checkbox, "Include the private").check().run()
    assert downloads(page)[3] == "Private detail"


def test_a_release_that_fails_is_not_for_publication(page: AppTest) -> None:
    upload(page, people(300).select("age", "wages", "region").drop_nulls())
    widget(page.select_slider, "Anonymity").set_value(0).run()
    widget(page.button, "Protect").click().run()
    (found,) = said(page, "verdict")
    assert "does not pass" in found
    assert "add anonymity = 25" in found
    assert PUBLISH not in [caption.value for caption in page.caption]
    widget(page.multiselect, "Also test").set_value(["age"]).run()
    assert any("knows age" in e.proto.body for e in page.get("html"))
    widget(page.multiselect, "Count records").set_value(["age", "region"]).run()
    assert any("share age, region with no other" in e.proto.body for e in page.get("html"))


def test_rules_and_a_ledger(page: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "people.ledger.json", tmp_path / "other.json"
    declare(path, 1.5)
    declare(other, 1.5)
    monkeypatch.setattr(NAMED, "ledgers", (str(path),))
    upload(page, people(200).select("age", "wages").drop_nulls())
    widget(page.text_area, "Rules").set_value("age =< wages").run()
    assert any("write a rule as" in text for text in said(page, "error"))
    widget(page.text_area, "Rules").set_value("age <= wages").run()
    assert said(page, "error") == []
    ledger = widget(page.selectbox, "Ledger")
    assert ledger.options == ["none", "people.ledger.json"]
    ledger.select("people.ledger.json").run()
    widget(page.button, "Protect").click().run()
    assert said(page, "error") == []
    assert Ledger.read(path).spent == 1.0
    assert any("no record breaks it" in e.proto.body for e in page.get("html"))
    widget(page.button, "Protect").click().run()
    assert any("budget" in text for text in said(page, "error"))


def test_the_page_takes_no_path_from_the_browser(page: AppTest) -> None:
    upload(page, people(200).select("age", "wages").drop_nulls())
    for label, option in (("Ledger", "--ledger"), ("Key file", "--key-file")):
        assert widget(page.selectbox, label).options == [
            f"none (name files with microveil app {option})"
        ]
    assert not [box.label for box in page.text_input if "edger" in box.label or "Key" in box.label]


def test_households_and_strata(page: AppTest) -> None:
    homes = survey(150).select("household_id", "region", "household_income", "rooms")
    upload(page, homes)
    assert widget(page.selectbox, "Unit").value == "household_id"
    assert any("was found in the data" in text for text in said(page, "warning"))
    of_home = ["region", "household_income", "rooms"]
    assert widget(page.multiselect, "One value").value == of_home
    most = homes["household_id"].value_counts()["count"].max()
    assert widget(page.number_input, "Most records").value == most
    widget(page.selectbox, "Unit").select("none").run()
    assert widget(page.multiselect, "One value").disabled
    widget(page.selectbox, "Unit").set_value("household_id").run()
    widget(page.multiselect, "One value").set_value(of_home[1:]).run()
    widget(page.multiselect, "One value").set_value(of_home).run()
    assert said(page, "error") == []
    widget(page.multiselect, "Strata").set_value(["region"]).run()
    assert any("must have role kept" in text for text in said(page, "error"))
    widget(page.multiselect, "Strata").set_value([]).run()
    widget(page.button, "Protect").click().run()
    bodies = [e.proto.body for e in page.get("html")]
    assert any("100% of 150 units have the same" in body for body in bodies)


def test_risk_before_protecting(page: AppTest) -> None:
    table = pl.DataFrame({"zip": ["01", "1", "2", "2"], "<b>": [1, 2, 3, 3], "w": [1, 2, 3, 4]})
    upload(page, table)
    widget(page.multiselect, "Quasi-identifiers").set_value(["zip", "<b>"]).run()
    widget(page.selectbox, "Sampling weight").set_value("w").run()
    (found,) = [e.proto.body for e in page.get("html") if "are unique on" in e.proto.body]
    assert "2 of 4 records (50%) are unique on zip and &lt;b&gt;" in found
    assert "estimated by the weights" in found
    widget(page.multiselect, "Sensitive").set_value(["zip"]).run()
    assert any("given twice" in error for error in said(page, "error"))


def test_expected_error_follows_the_sliders(page: AppTest) -> None:
    page.radio[0].set_value(SAMPLE).run()
    pooled = float(page.metric[0].value)
    widget(page.select_slider, "Anonymity").set_value(0).run()
    widget(page.selectbox, "Clusters").set_value("fixed").run()
    widget(page.select_slider, "k").set_value(10).run()
    first = float(page.metric[0].value)
    widget(page.select_slider, "ε").set_value(0.1).run()
    second = float(page.metric[0].value)
    widget(page.select_slider, "k").set_value(50).run()
    assert first < pooled
    assert 2 * first < float(page.metric[0].value) < second


def test_a_change_after_protecting_is_pointed_out(page: AppTest) -> None:
    upload(page, people(100).select("age", "wages").drop_nulls())
    widget(page.button, "Protect").click().run()
    assert said(page, "note") == []
    widget(page.select_slider, "ε").set_value(0.5).run()
    assert len(said(page, "note")) == 1


def test_another_method_asks_for_domains(page: AppTest) -> None:
    upload(page, people().select("age", "wages"))
    widget(page.selectbox, "Method").set_value("DP").run()
    (error,) = said(page, "error")
    assert "needs a declared domain" in error
    assert widget(page.button, "Protect").disabled
    widget(page.checkbox, "Read domains").check().run()
    assert said(page, "error") == []
    assert "voids the claim of differential privacy" in said(page, "warning")[0]


@pytest.mark.parametrize("partition", ["noise-optimal", "least-squares"])
def test_every_partition(page: AppTest, partition: str) -> None:
    upload(page, people(300).select("age", "wages"))
    widget(page.selectbox, "Clusters").set_value(partition).run()
    widget(page.select_slider, "Share of a cluster").set_value(0.1).run()
    widget(page.button, "Protect").click().run()
    assert (said(page, "error"), steps(page)[-1]) == ([], "6.")


def test_other_plans_are_compared_when_asked_for(page: AppTest) -> None:
    upload(page, people(60).select("age", "wages"))
    charts = len(page.get("vega_lite_chart"))
    widget(page.button, "Compare other plans").click().run()
    (recommended,) = said(page, "note")
    assert "keeps to the limits" in recommended or "linked by the strongest attack" in recommended
    assert len(page.get("vega_lite_chart")) == charts + 1
    page.run()  # remembered
    assert said(page, "note") == [recommended]
    widget(page.select_slider, "ε").set_value(0.5).run()
    assert (said(page, "note"), len(page.get("vega_lite_chart"))) == ([], charts)


def test_a_defect_shows_no_data(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("918273")

    monkeypatch.setattr("microveil.app.choose.people", fail)
    page.radio[0].set_value(SAMPLE).run()
    (error,) = said(page, "error")
    assert "ZeroDivisionError" in error
    assert "918273" not in error


def test_the_plan_is_a_point_among_attacked_ones(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quickly(data: pl.DataFrame, plan: Plan, _: object) -> Benchmark:
        return attack_beside_others(data, plan, attacks=(ATTACKS["linkage.nearest"],))

    monkeypatch.setattr(attacked, "attack_beside_others", quickly)
    upload(page, people(250).select("age", "wages", "hours").drop_nulls())
    widget(page.button, "Protect").click().run()
    widget(page.button, "Attack this plan").click().run()
    assert not page.exception
    [found] = [note for note in said(page, "note") if "Your plan is ringed" in note]
    assert "the most successful attack is nearest linkage" in found
    drawn = [chart.proto.spec for chart in page.get("vega_lite_chart")]
    assert any("knows every record but one" in spec for spec in drawn)
    assert any("1. your plan: see its certificate" in e.proto.body for e in page.get("html"))
