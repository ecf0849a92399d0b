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
EVERYTHING = "Measure everything (a million records take about a minute)"
SAMPLE = "A sample of fictitious people"


@pytest.fixture
def page() -> Any:  # noqa: ANN401 - Streamlit's own
    return AppTest.from_file(str(PAGE), default_timeout=120).run()


def html(page: AppTest) -> list[str]:
    return [e.proto.body for e in page.get("html")]


def said(page: AppTest, kind: str) -> list[str]:
    return [body for body in html(page) if f'class="microveil-{kind}"' in body]


def state(page: AppTest) -> str:
    """The plan as it is always in view."""
    (found,) = said(page, "plan")
    return found


def downloads(page: Any) -> list[str]:  # noqa: ANN401
    return [button.label for button in page.get("download_button")]


def shown(page: AppTest) -> list[str]:
    """The steps that can be gone to."""
    return [b.label for b in page.button if b.label[:1].isdigit() and not b.disabled]


def upload(page: AppTest, table: pl.DataFrame) -> None:
    page.file_uploader[0].upload("t.csv", table.write_csv().encode(), "text/csv").run()


def widget(elements: Any, label: str) -> Any:  # noqa: ANN401
    return next(e for e in elements if e.label.startswith(label))


def press(page: AppTest, label: str) -> None:
    next(b for b in page.button if b.label == label).click().run()
    assert not page.exception


def go(page: AppTest, step: str) -> None:
    next(b for b in page.button if b.label.endswith(f" {step}")).click().run()


def protect(page: AppTest, table: pl.DataFrame) -> None:
    upload(page, table)
    go(page, "Protect")
    press(page, "Protect")


def test_the_sample_from_start_to_end_in_clicks(page: AppTest) -> None:
    assert shown(page) == ["1 Table"]
    page.radio[0].set_value(SAMPLE).run()
    assert shown(page) == ["1 Table", "2 Questions", "3 Protect"]
    assert "10 masked, 1 dropped" in state(page)
    assert "not made yet" in state(page)
    for label in ("Next: three questions", "Agree", "Agree", "Agree", "Protect", "Next: download"):
        press(page, label)
        assert said(page, "error") == []
    assert "made, passes" in state(page)
    assert "region, age" in state(page)
    assert downloads(page)[:4] == [
        "Protected file and certificate", "Protected file alone", "Certificate alone", "Plan",
    ]  # fmt: skip
    assert PUBLISH in [caption.value for caption in page.caption]
    widget(page.checkbox, "Include the private").check().run()
    assert downloads(page)[4] == "Private detail"
    go(page, "Verdict")
    (found,) = said(page, "verdict")
    assert "The release passes." in found
    assert len(said(page, "grade")) == 2
    specs = [chart.proto.spec for chart in page.get("vega_lite_chart")]
    assert any('"share education"' in spec for spec in specs)
    assert any("knows region, age" in body for body in html(page))
    press(page, EVERYTHING)
    assert any("unique" in body for body in html(page))


def test_answers_become_the_plan_and_can_be_changed(page: AppTest) -> None:
    visits = survey(150).select("household_id", "region", "household_income", "rooms")
    upload(page, visits)
    assert "Persons by</span> household_id" in state(page)
    go(page, "Questions")
    most = visits["household_id"].value_counts()["count"].max()
    assert f"up to {most!r} records each" in page.text[0].value
    assert "region, household_income, rooms" in page.text[1].value
    widget(page.selectbox, "Column that says").select_index(0).run()
    assert "each of a person of its own" in page.text[0].value
    press(page, "Agree")
    assert "Persons by" not in state(page)
    press(page, "Change")
    widget(page.selectbox, "Column that says").set_value("household_id").run()
    press(page, "Agree")
    assert "Persons by</span> household_id" in state(page)
    widget(page.multiselect, "Columns that an").set_value(["region", "rooms"]).run()
    assert "By region, rooms," in page.text[1].value
    press(page, "Agree")
    assert "Known</span> region and rooms" in state(page)
    widget(page.text_area, "Uses").set_value("mean colour").run()
    press(page, "Agree")
    (error,) = said(page, "error")
    assert "no attribute &#x27;colour&#x27;" in error
    widget(page.text_area, "Uses").set_value("median rooms by region\n").run()
    press(page, "Agree")
    assert "Uses</span> 1" in state(page)
    press(page, "Protect")
    assert "have the same" in " ".join(html(page))


def test_a_release_that_fails_is_not_for_publication(page: AppTest) -> None:
    upload(page, people(300).select("age", "wages", "region").drop_nulls())
    go(page, "Protect")
    widget(page.select_slider, "Anonymity").set_value(0).run()
    press(page, "Protect")
    (found,) = said(page, "verdict")
    assert "does not pass" in found
    assert "add &quot;Anonymity&quot; to 25" in found
    press(page, "Download all the same")
    assert PUBLISH not in [caption.value for caption in page.caption]
    go(page, "Verdict")
    press(page, "Take this change, and protect again")
    assert "Crowd</span> 25 persons" in state(page)
    assert "protect again" in state(page)


def test_rules_and_a_ledger(page: AppTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = tmp_path / "people.ledger.json", tmp_path / "other.json"
    declare(path, 1.5)
    declare(other, 1.5)
    monkeypatch.setattr(NAMED, "ledgers", (str(path),))
    upload(page, people(200).select("age", "wages").drop_nulls())
    go(page, "Protect")
    widget(page.text_area, "Rules").set_value("age =< wages").run()
    assert any("write a rule as" in text for text in said(page, "error"))
    assert "does not hold" in state(page)
    go(page, "Table")
    go(page, "Protect")
    assert widget(page.text_area, "Rules").value == "age =< wages"
    widget(page.text_area, "Rules").set_value("age <= wages").run()
    assert said(page, "error") == []
    ledger = widget(page.selectbox, "Ledger")
    assert ledger.options == ["none", "people.ledger.json"]
    ledger.select("people.ledger.json").run()
    press(page, "Protect")
    assert said(page, "error") == []
    assert Ledger.read(path).spent == 1.0
    press(page, EVERYTHING)
    assert any("no record breaks it" in body for body in html(page))
    go(page, "Protect")
    press(page, "Protect")
    assert any("budget" in text for text in said(page, "error"))


def test_the_page_takes_no_path_from_the_browser(page: AppTest) -> None:
    upload(page, people(200).select("age", "wages").drop_nulls())
    go(page, "Protect")
    for label, option in (("Ledger", "--ledger"), ("Key file", "--key-file")):
        assert widget(page.selectbox, label).options == [
            f"none (name files with microveil app {option})"
        ]
    assert not [box.label for box in page.text_input if "edger" in box.label or "Key" in box.label]


def test_strata_are_refused_beside_their_control(page: AppTest) -> None:
    upload(page, people(200).select("region", "wages", "age"))
    go(page, "Protect")
    widget(page.multiselect, "Strata").set_value(["region"]).run()
    assert any("must have role kept" in text for text in said(page, "error"))
    assert next(b for b in page.button if b.label == "Protect").disabled
    widget(page.multiselect, "Strata").set_value([]).run()
    assert said(page, "error") == []


def test_risk_before_protecting(page: AppTest) -> None:
    table = pl.DataFrame({"zip": ["01", "1", "2", "2"], "<b>": [1, 2, 3, 3], "w": [1, 2, 3, 4]})
    upload(page, table)
    go(page, "Questions")
    press(page, "Agree")
    widget(page.multiselect, "Columns that").set_value(["<b>"]).run()
    press(page, "Measure")
    (found,) = [body for body in html(page) if "are unique on" in body]
    assert "2 of 4 records (50%) are unique on &lt;b&gt;" in found
    widget(page.multiselect, "Sensitive").set_value(["<b>"]).run()
    press(page, "Measure")
    assert any("given twice" in error for error in said(page, "error"))


def test_expected_error_follows_the_sliders(page: AppTest) -> None:
    page.radio[0].set_value(SAMPLE).run()
    go(page, "Protect")
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


def test_the_dial_moves_crowd_and_budget_along_what_was_measured(page: AppTest) -> None:
    upload(page, people(250).select("age", "wages", "region"))
    go(page, "Protect")
    dial = widget(page.select_slider, "More private")
    assert dial.value == "crowd 25, ε 1"
    assert dial.options == [
        "crowd 100, ε 0.3", "crowd 50, ε 1", "crowd 25, ε 1", "crowd 25, ε 2", "crowd 10, ε 5",
        "crowd 5, ε 10",
    ]  # fmt: skip
    dial.set_value(dial.options[1]).run()
    assert "Crowd</span> 50 persons" in state(page)
    assert widget(page.select_slider, "Anonymity").value == 50
    widget(page.select_slider, "ε").set_value(0.5).run()
    assert widget(page.select_slider, "More private").value == "crowd 50, ε 0.5"
    press(page, "Measure the stops on this table (takes a while)")
    (table,) = [body for body in html(page) if "on the dial" in body]
    assert 'aria-current="true"><td>crowd 50, ε 0.5' in table
    left = widget(page.select_slider, "More private").options
    assert ("no: another" in table) == (len(left) < table.count("crowd "))
    widget(page.select_slider, "More private").set_value(left[-1]).run()
    assert left[-1].removeprefix("crowd ").partition(",")[0] in state(page)


def test_a_change_after_protecting_is_pointed_out(page: AppTest) -> None:
    protect(page, people(100).select("age", "wages").drop_nulls())
    assert "protect again" not in state(page)
    go(page, "Protect")
    widget(page.select_slider, "ε").set_value(0.5).run()
    assert "protect again" in state(page)


def test_another_method_asks_for_domains(page: AppTest) -> None:
    upload(page, people().select("age", "wages"))
    go(page, "Protect")
    widget(page.selectbox, "Method").set_value("DP").run()
    assert any("needs a declared domain" in text for text in said(page, "error"))
    assert next(b for b in page.button if b.label == "Protect").disabled
    widget(page.checkbox, "Read domains").check().run()
    assert said(page, "error") == []
    assert "voids the claim of differential privacy" in said(page, "warning")[0]


@pytest.mark.parametrize("partition", ["noise-optimal", "least-squares"])
def test_every_partition(page: AppTest, partition: str) -> None:
    upload(page, people(300).select("age", "wages"))
    go(page, "Protect")
    widget(page.selectbox, "Clusters").set_value(partition).run()
    widget(page.select_slider, "Share of a cluster").set_value(0.1).run()
    press(page, "Protect")
    assert said(page, "error") == []
    assert "5 Download" in shown(page)


def test_other_plans_are_compared_and_the_recommended_one_taken(page: AppTest) -> None:
    upload(page, people(60).select("age", "wages"))
    go(page, "Protect")
    charts = len(page.get("vega_lite_chart"))
    press(page, "Compare other plans (takes a while)")
    (recommended,) = said(page, "note")
    assert "linked by the strongest attack" in recommended
    assert len(page.get("vega_lite_chart")) == charts + 1
    page.run()  # remembered
    assert said(page, "note") == [recommended]
    press(page, "Take the recommended plan")
    assert said(page, "note") == []
    assert widget(page.selectbox, "Clusters").value in recommended


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
    protect(page, people(250).select("age", "wages", "hours").drop_nulls())
    press(page, "Attack this plan and others (takes a minute or two)")
    [found] = [note for note in said(page, "note") if "Your plan is ringed" in note]
    assert "the most successful attack is nearest linkage" in found
    drawn = [chart.proto.spec for chart in page.get("vega_lite_chart")]
    assert any("knows every record but one" in spec for spec in drawn)
    assert any("1. your plan: see its certificate" in body for body in html(page))
