"""The report as a person opens it: what it says, and that it runs nothing and fetches nothing."""

import json
import re
import shlex
import stat
from base64 import b64encode
from collections.abc import Callable
from datetime import date
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import (
    Certificate,
    Confidential,
    Evaluation,
    Plan,
    Release,
    Scenario,
    evaluate,
    protect,
)
from microveil.compare import examined, pairing
from microveil.compare.paired_columns import compare_columns
from microveil.compare.reasons import why_not
from microveil.errors import FileError, visible
from microveil.formats import load_table
from microveil.plan.sample import people, people_plan
from microveil.plan.survey import survey
from microveil.show.report import certificate_page, report, write_report
from microveil.show.report.report_words import cards
from microveil.show.words.readings import label_of_missing, reading
from tests.conftest import without_library
from tests.show.report import hostile

Run = Callable[[str], tuple[int, str, str]]


class Page(HTMLParser):
    """What a browser makes of a page: elements, their attributes, texts and scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, _tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


@pytest.fixture(scope="module")
def evaluated() -> tuple[pl.DataFrame, Release, Evaluation]:
    table = people(300)
    release = protect(table, people_plan(), seed=1)
    return table, release, evaluate(table, release, target="region")


@pytest.fixture(scope="module")
def sample(evaluated: tuple[pl.DataFrame, Release, Evaluation]) -> str:
    table, release, evaluation = evaluated
    return report(table, release, evaluation=evaluation)


def charts_of(page: str) -> list[dict[str, object]]:
    specs: list[dict[str, object]] = json.loads(Page(page).scripts[0])
    return specs


def browse(driver: Any, page: str, folder: Path) -> str:  # noqa: ANN401 - Selenium's own
    """Open a page in a browser; return what it has become. Nothing may appear on its console."""
    from selenium.webdriver.support.ui import WebDriverWait

    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    driver.get("about:blank")
    driver.get_log("browser")  # what other pages have left there
    driver.get(file.as_uri())
    ready = "return document.body.dataset.charts"
    WebDriverWait(driver, 60).until(lambda d: d.execute_script(ready) is not None)
    assert driver.get_log("browser") == []
    return str(driver.page_source)


def test_it_says_what_was_done_and_found(
    sample: str, evaluated: tuple[pl.DataFrame, Release, Evaluation]
) -> None:
    text = Page(sample).text
    assert text.startswith("Private report on a table Private: for the data holder only. Do")
    for words in (
        "How useful is it?", "How risky is it?", "What does ε cover?", "What was done",
        "What the guarantee covers, and what it does not", "Every attribute before and after",
        "Correlations", "Gains over the control", "Finds conditions that one person alone meets",
        "Width of clusters",
        "Learning", "Not computed", "How to repeat it",
        "NOT FOR PUBLICATION", "income = wages + other", "--seed 1", "[attributes.wages]",
    ):  # fmt: skip
        assert words in text
    found = evaluated[2]
    for figure in found.figures:
        if figure.measure in ("linkage.nearest", "utility.il1s", "utility.pmse_ratio"):
            assert reading(figure) in text
    for missing in found.not_computed:
        assert f"{label_of_missing(missing)}: {why_not(missing)}" in text


def test_every_chart_has_a_text_alternative_and_few_points(sample: str) -> None:
    charts = charts_of(sample)
    assert len(charts) == 9 + 3 + 4
    for chart in charts:
        assert len(str(chart["description"])) > 20
        datasets = chart["datasets"]
        assert isinstance(datasets, dict)
        assert sum(map(len, datasets.values())) < 500


@pytest.mark.parametrize("kind", ["report", "certificate"])
def test_it_needs_nothing_else_and_may_run_one_script(sample: str, kind: str) -> None:
    certificate = protect(people(), people_plan(), seed=1).certificate
    page = Page(sample if kind == "report" else certificate_page(certificate))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"link", "img", "iframe", "object", "embed", "form", "base"}
    for _, attributes in page.elements:
        assert not set(attributes) & {"src", "srcset", "action", "style", "data"}
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    (policy,) = [a["content"] for t, a in page.elements if "http-equiv" in a]
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    if kind == "certificate":
        assert "script" not in tags
        assert "script-src 'none'" in policy
        return
    digest = b64encode(sha256("".join(page.scripts[1:]).encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy


def test_hostile_names_are_only_text() -> None:
    table = hostile.table()
    release = protect(table, hostile.plan(), seed=1)
    page = report(table, release)
    for html in (page, certificate_page(release.certificate)):
        parsed = Page(html)
        scripts = [a for t, a in parsed.elements if t == "script"]
        assert len(scripts) == (2 if html is page else 0)
        assert not {t for t, _ in parsed.elements} & {"img", "svg", "b"}
        for name in table.columns:
            assert " ".join(visible(name).split()) in parsed.text
        assert "49" not in {text.strip() for text in parsed.texts}
    shown = json.dumps(charts_of(page))
    assert all(json.dumps(name)[1:-1] in shown for name in hostile.NAMES)


def test_a_hostile_file_name_is_only_text(tmp_path: Path) -> None:
    file = tmp_path / "<img src=x onerror=alert(1)> '$(x)'.csv"
    table = people(100).select("age", "children")
    table.write_csv(file)
    plan = Plan.published(
        epsilon=1.0, attributes={"age": "confidential", "children": "confidential"}
    )
    parsed = Page(report(file, protect(table, plan, seed=1)))
    assert "img" not in {tag for tag, _ in parsed.elements}
    assert f"Report on {file.name}" in parsed.text
    assert f"microveil protect {shlex.quote(file.name)} --plan" in parsed.text


def test_a_browser_draws_every_chart_and_runs_no_name(driver: Any, tmp_path: Path) -> None:  # noqa: ANN401
    table = hostile.table()
    page = report(table, protect(table, hostile.plan(), seed=1))
    drawn = Page(browse(driver, page, tmp_path))
    tags = [tag for tag, _ in drawn.elements]
    assert ("body", {"data-charts": "drawn"}) in drawn.elements
    assert tags.count("svg") == len(charts_of(page)) == 11 + 3 + 3
    assert tags.count("script") == 2
    assert not set(tags) & {"img", "b", "iframe"}
    assert not any(name.startswith("on") for _, given in drawn.elements for name in given)


def test_a_browser_draws_the_sample(driver: Any, tmp_path: Path, sample: str) -> None:  # noqa: ANN401
    drawn = Page(browse(driver, sample, tmp_path))
    charts = [given for tag, given in drawn.elements if tag == "svg"]
    assert ("body", {"data-charts": "drawn"}) in drawn.elements
    assert len(charts) == len(charts_of(sample))
    labels = [given.get("aria-label") or "" for _, given in drawn.elements]
    for chart in charts_of(sample):
        assert chart["description"] in labels
    assert "NaN" not in drawn.text


def test_odd_tables(driver: Any, tmp_path: Path) -> None:  # noqa: ANN401
    numbers = np.random.default_rng(0).normal(size=60)
    table = pl.DataFrame(
        {
            "constant": [5.0] * 60,
            "mostly missing": [1.0, 2.0, 3.0, 4.0, *[None] * 56],
            "number": numbers.round(3),
            "truth": [True, False] * 30,
            "only kind": ["same"] * 60,
            "when": pl.datetime_range(
                pl.datetime(2020, 1, 1), pl.datetime(2020, 1, 3, 11), "1h", eager=True
            ),
            "day": [date(2020, 1, 1)] * 60,
        }
    )
    roles = dict.fromkeys(table.columns, Confidential(decimals=3))
    roles |= dict.fromkeys(["when", "day"], Confidential())
    roles["truth"] = Confidential(kind="nominal", categories=(True, False))
    roles["only kind"] = Confidential(kind="nominal", categories=("same", "other"))
    plan = Plan.published(epsilon=1.0, k=3, missing="keep", attributes=roles)
    with pytest.warns(UserWarning, match="iDP publishes"):
        release = protect(table, plan, seed=1)
    page = report(table, release)
    assert "every measure of 'constant'" in Page(page).text
    assert ("body", {"data-charts": "drawn"}) in Page(browse(driver, page, tmp_path)).elements


def test_it_says_whether_the_release_passes_and_what_to_change() -> None:
    table = people(200).select("age", "wages", "region").drop_nulls()
    roles = {"age": "confidential", "wages": "confidential", "region": "identifier"}
    publish = "Publish the protected file and its certificate together"
    for anonymity, passed in ((0, False), (25, True)):
        plan = Plan.published(
            epsilon=1.0, k=5, anonymity=anonymity, exact_from=10, attributes=roles
        )
        text = Page(report(table, protect(table, plan))).text
        assert ("The release passes." in text) == (publish in text)  # by chance some do not
        text = Page(report(table, protect(table, plan, seed=2))).text
        assert ("The release passes." in text) == passed
        assert ("To change: add anonymity = 25: linkage" in text) != passed
        assert "if no attack that looks for people gains more than 5% over chance" in text
    assert publish not in Page(report(table, protect(table, plan, seed=1, keep_order=True))).text


def test_scenarios_are_side_by_side_the_worst_first() -> None:
    table = people(200).select("age", "region").drop_nulls()
    scenarios = [Scenario(name="nobody <b>", known=["region"])]
    roles = {"age": "confidential", "region": "kept"}
    plan = Plan.published(epsilon=1.0, k=5, attributes=roles, scenarios=scenarios)
    text = Page(report(table, protect(table, plan, seed=1), known=["age", "region"])).text
    rows = text[text.index("the attacker ...") :]
    places = [rows.index(name) for name in
              ("knows age and region", "knows all masked attributes", "nobody <b>")]  # fmt: skip
    assert places == sorted(places)


def test_dp_without_clusters_and_order() -> None:
    table = people(300).select("age", "weight")
    domains = {"age": Confidential(lower=0, upper=120), "weight": Confidential(lower=0, upper=300)}
    plan = Plan.published(epsilon=1.0, method="DP", missing="keep", attributes=domains)
    release = protect(table, plan, seed=1, keep_order=True)
    text = Page(report(table, release)).text
    assert "Width of clusters" not in text
    assert "ε = 1, the table as released" in text
    unordered = Page(report(table, release.data)).text
    assert "Attacks were not made: it is not known which record is whose" in unordered
    assert "--detail FILE" in unordered
    assert "There is no certificate next to the protected file" in unordered
    assert "The quantile that moves most" in unordered


def test_grades_follow_the_rules_of_thumb() -> None:
    table = people(300).select("age", "children")
    plan = Plan.published(
        epsilon=1.0, attributes={"age": "confidential", "children": "confidential"}
    )
    release = protect(table, plan, seed=1)
    useful, risky, covered = cards(evaluate(table, table, aligned=True), release.certificate)
    assert (useful.grade, risky.grade, covered.grade) == ("good", "poor", "fair")
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    useful, risky, _ = cards(evaluate(table, shuffled, aligned=True), None)
    assert (useful.grade, risky.grade) == ("poor", "good")


def test_epsilon_of_a_unit_is_that_of_a_unit() -> None:
    table = survey(60).select("household_id", "rooms")
    rooms = Confidential(per_unit=True, lower=1, upper=12)
    roles = {"household_id": "identifier", "rooms": rooms}
    release = protect(
        table, Plan.published(epsilon=1.0, unit="household_id", attributes=roles), seed=1
    )
    *_, covered = cards(evaluate(table, release), release.certificate)
    assert "changing one unit's values" in covered.sentences[0]


def test_pooled_groups_are_named_with_their_anonymity() -> None:
    table = people(300).select("age", "children")
    plan = Plan.published(
        epsilon=1.0,
        anonymity=10,
        attributes={"age": "confidential", "children": "confidential"},
    )
    text = Page(report(table, protect(table, plan, seed=1))).text
    assert "Masked values of age, children were exchanged within" in text
    assert "picks a person's row with probability at most 1/10" in text


def test_the_certificate_page_tells_plan_facts_only() -> None:
    plan = Plan.published(
        epsilon=1.0, k=5, attributes={"age": Confidential(lower=0, upper=120), "sex": "kept"}
    )
    pages = [
        certificate_page(
            protect(pl.DataFrame({"age": ages, "sex": ["f", "m"] * 30}), plan).certificate
        )
        for ages in (list(range(60)), [100 - i // 2 for i in range(60)])
    ]
    time = r"\d{4}-\d\d-\d\dT[\d:]+\+00:00"
    assert re.sub(time, "", pages[0]) == re.sub(time, "", pages[1])
    text = Page(pages[0]).text
    for words in ("It is not a clearance", "0 to 120", "k = 5", "Kept attributes", "as released"):
        assert words.lower() in text.lower()


def test_commands_write_pages(run: Run) -> None:
    people(300).write_csv("people.csv")
    Path("plan.toml").write_text(people_plan().to_toml(), encoding="utf-8")
    command = "protect people.csv --plan plan.toml -o safe.parquet --detail --report report.html"
    code, out, err = run(f"{command} --no-verdict")
    assert (code, err) == (0, "")
    assert "report.html (do not publish)" in out
    assert stat.S_IMODE(Path("report.html").stat().st_mode) == 0o600
    text = Page(Path("report.html").read_text(encoding="utf-8")).text
    assert "Report on people.csv" in text
    assert Certificate.read("safe.certificate.json").file.sha256 in text  # type: ignore[union-attr]
    assert "microveil protect people.csv --plan plan.toml -o safe.parquet" in text
    code, out, _ = run("evaluate people.csv safe.parquet --report again.html --target region")
    assert code == 0
    again = Page(Path("again.html").read_text(encoding="utf-8")).text
    assert "Learning" in again
    assert "[attributes.wages]" in again
    code, out, _ = run("certificate safe.certificate.json --html public.html")
    assert "Wrote public.html" in out
    assert "Certificate of a protected release" in Path("public.html").read_text(encoding="utf-8")
    code, _, err = run("certificate safe.certificate.json --html public.html")
    assert (code, "the file exists" in err) == (1, True)
    code, _, err = run("evaluate people.csv safe.parquet --report report.pdf")
    assert (code, "ending in .html" in err) == (1, True)


def test_evaluate_reads_and_pairs_both_files_once(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(300).write_csv("people.csv")
    Path("plan.toml").write_text(people_plan().to_toml(), encoding="utf-8")
    assert run("protect people.csv --plan plan.toml -o safe.csv --detail --no-verdict")[0] == 0
    read, paired = [], []

    def counting_load(data: Any, **named: Any) -> Any:  # noqa: ANN401
        read.append(data)
        return load_table(data, **named)

    def counting_compare(name: str, *tables: Any) -> Any:  # noqa: ANN401
        paired.append(name)
        return compare_columns(name, *tables)

    monkeypatch.setattr(examined, "load_table", counting_load)
    monkeypatch.setattr(pairing, "compare_columns", counting_compare)
    monkeypatch.setattr(
        "microveil.show.report.report_words.next_step_after", lambda _: None
    )  # other plans
    monkeypatch.setattr("microveil.judge.evaluation.question_items", lambda *_: ())  # halves
    assert run("evaluate people.csv safe.csv --report report.html")[0] == 0
    assert [source.name for source in read] == ["safe.csv", "people.csv"]
    assert paired == list(people_plan().confidential)


def test_an_evaluation_gives_the_same_report_as_the_tables() -> None:
    table = people(100)
    release = protect(table, people_plan(), seed=1)
    evaluation = evaluate(table, release, target="region")
    of_both = report(table, release, target="region")
    assert report(table, release, evaluation=evaluation) == of_both
    assert "pair" not in repr(evaluation)
    assert "pair" not in evaluation.to_dict()


def test_a_path_that_is_taken_is_refused_before_any_work(tmp_path: Path) -> None:
    taken = tmp_path / "report.html"
    taken.touch()
    with pytest.raises(FileError, match="the file exists"):
        write_report(taken, "nowhere.csv", "nowhere.csv")


def test_a_certificate_of_another_file_is_refused(tmp_path: Path) -> None:
    table = people(300).select("age", "children")
    plan = Plan.published(
        epsilon=1.0, attributes={"age": "confidential", "children": "confidential"}
    )
    written = protect(table, plan).write(tmp_path / "safe.parquet")
    table.write_parquet(written.protected)
    with pytest.raises(FileError, match=r"not the file safe\.certificate\.json was written for"):
        write_report(tmp_path / "report.html", table, written.protected)


def test_the_examples_of_the_documentation_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "judge-a-release.md"
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    exec("".join(blocks), {})  # noqa: S102 - our own
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("missing", ["altair", "jinja2", "vl_convert"])
def test_a_missing_library_is_named_before_any_work(
    missing: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_library(missing, monkeypatch)
    code, _, err = run("protect x.csv -o y.csv --report r.html")
    assert code == 1
    assert "error: this needs" in err
    assert 'pip install "microveil[report]"' in err
