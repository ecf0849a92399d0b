"""The frontier over method, partition, k, ε and pooling, and the point that is recommended."""

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from microveil import (
    Confidential,
    DataError,
    Exploration,
    Plan,
    PlanError,
    expected_error,
    explore,
    protect,
)
from microveil.judge.evaluation import evaluate
from microveil.judge.explore import trials as measure
from microveil.judge.explore.advice import advise
from microveil.judge.explore.exploration import Limits, Measured, Point
from microveil.show.charts.points import curves
from microveil.show.words.exploration_words import recommendation_headline, recommendation_text
from microveil.types import Reals
from tests.conftest import Run, without_library
from tests.show.charts.marks import SVG, marks_in

RECORDS = 120
_RANDOM = np.random.default_rng(3)
_CLASS = _RANDOM.integers(0, 2, RECORDS)
TABLE = pl.DataFrame(
    {
        "name": [f"n{i}" for i in range(RECORDS)],
        "class": np.where(_CLASS == 1, "yes", "no"),
        "a": (_RANDOM.normal(100, 10, RECORDS) + 60 * _CLASS).round().astype(int),
        "b": _RANDOM.integers(0, 50, RECORDS),
    }
)
DOMAINS = {"a": Confidential(lower=0, upper=300), "b": Confidential(lower=0, upper=100)}
PLAN = Plan.published(epsilon=5.0, attributes={"name": "identifier", "class": "kept", **DOMAINS})


def printed(exploration: Exploration) -> str:
    console = Console(file=StringIO(), width=100, color_system=None)
    console.print(exploration)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def quick_scores(training: Reals, *_: object, **__: object) -> dict[str, float]:
    """Stand in for a forest, which takes long: scores from which its training can be told."""
    return {"no": 0.9, "yes": 1 / (2 + float(np.nanmean(training)) % 1)}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "scores_of", quick_scores)


@pytest.fixture(scope="module")
def learned() -> Exploration:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(measure, "scores_of", quick_scores)
        return explore(TABLE, PLAN, epsilons=[10.0, 0.01], target="class", runs=1, seed=5)


def test_the_frontier_is_complete(learned: Exploration) -> None:
    alone = 0, None
    fixed = [
        (method, "fixed", k, 0.0, *alone)
        for method in ("iDP-CBLS", "iDP-LS", "DP-UM")
        for k in (3, 5, 10, 25, 50)
    ]
    optimal = [("iDP-CBLS", "noise-optimal", 3, trim, *alone) for trim in (0.0, 0.1)]
    least_squares = ("iDP-LS", "noise-optimal", 3, 0.1, *alone)
    of_one = [*fixed, *optimal, least_squares, ("DP", None, None, 0.0, *alone)]
    frame = learned.to_frame()
    assert frame.columns == [
        "method", "partition", "k", "epsilon", "trim", "anonymity", "pooling", "expected",
        "measured", "linkage", "f_measure", "unchanged", "use_loss",
    ]  # fmt: skip
    settings = ("method", "partition", "k", "trim", "anonymity", "pooling")
    for epsilon in (0.01, 10.0):
        rows = frame.filter(epsilon=epsilon).select(settings).rows()
        pooled = [row for row in rows if row[-1] is not None]
        assert sorted(set(rows) - set(pooled), key=str) == sorted(of_one, key=str)
        assert [row[-2:] for row in pooled] == [
            (number, kind) for kind in ("exchange", "average") for number in (10, 25, 50)
        ]
        assert len(rows) == len(of_one) + 6


def test_every_expectation_is_that_of_expected_error(learned: Exploration) -> None:
    for row in learned.to_frame().filter(epsilon=10.0).iter_rows(named=True):
        clusters = {} if row["k"] is None else {"k": row["k"], "partition": row["partition"]}
        if row["partition"] == "noise-optimal":
            clusters |= {"trim": row["trim"], "post": "penalised-isotonic"}
        pooled = {"anonymity": row["anonymity"], "pooling": row["pooling"] or "exchange"}
        plan = PLAN.replace(epsilon=10.0, method=row["method"], **clusters, **pooled)
        assert row["expected"] == expected_error(TABLE, plan, clamped=True).mean_sse


def test_the_best_points_are_measured_for_each_epsilon_and_the_best_of_them_pooled(
    learned: Exploration,
) -> None:
    frame = learned.to_frame()
    measured = frame.filter(pl.col("measured").is_not_null())
    assert set(measured["method"]) == {"iDP-CBLS"}
    for epsilon in (0.01, 10.0):
        of_cbls = frame.filter(epsilon=epsilon, method="iDP-CBLS", anonymity=0).sort("expected")
        first = of_cbls.group_by("partition").first()
        found = measured.filter(epsilon=epsilon, anonymity=0)
        clusters = ["partition", "k", "trim"]
        assert set(found.select(clusters).rows()) == set(first.select(clusters).rows())
        pooled = frame.filter(pl.col("anonymity") > 0, epsilon=epsilon)
        assert pooled["measured"].null_count() == 0
        assert set(pooled.select(clusters).rows()) == {of_cbls.select(clusters).row(0)}


def test_what_is_measured_is_the_mean_of_the_runs_as_evaluate_measures_them() -> None:
    found = explore(TABLE, PLAN, epsilons=[0.1], runs=2, seed=5)
    row = found.to_frame().filter(pooling="exchange", anonymity=10).row(0, named=True)
    plan = PLAN.replace(
        epsilon=0.1, **OPTIMAL, trim=row["trim"], anonymity=10, post="penalised-isotonic"
    )
    runs = [evaluate(TABLE, protect(TABLE, plan, seed=s), seed=s) for s in (5, 6)]
    assert row["measured"] == pytest.approx(np.mean([r.value("utility.mean_sse") for r in runs]))
    attacks = ("linkage.nearest", "linkage.one_to_one")  # pooling bounds the third, and all
    assert row["linkage"] == min(
        0.1, max(runs[0].value(attack) for attack in attacks)
    )  # of the first run


def point(epsilon: float, error: float, f: float | None = None, **settings: Any) -> Point:  # noqa: ANN401
    """Make a measured point of two attributes whose original has an F-measure of 0.9."""
    linkage = settings.pop("linkage", 0.05)
    plan = Plan.published(epsilon=epsilon, attributes=PLAN.attributes, **settings)
    return Point(plan, 1.0, Measured(2, error, linkage, f, None if f is None else 0.9))


OPTIMAL: dict[str, Any] = {"partition": "noise-optimal", "k": 3}


def test_the_rule_with_a_target() -> None:
    # 98% of 0.9 is 0.882; the error plays no part but between settings of the same ε
    points = [
        point(0.1, 0.001, 0.881),
        point(1.0, 0.5, 0.883, **OPTIMAL),
        point(1.0, 0.4, 0.9, k=25),
        point(1.0, 0.3, 0.8, k=50),
        point(10.0, 0.001, 0.9),
    ]
    found = advise(PLAN, points, Limits(), "learning", "class")
    assert found.recommended is points[2]
    assert recommendation_headline(found) == (
        "iDP-CBLS, k = 25, not pooled, ε = 1: F-measure of 'class' 0.90 (original 0.90), mean "
        "SSE 0.4, 5% of records linked by the strongest attack"
    )
    assert "the smallest ε tried that gives an F-measure within 2% of the original's" in (
        recommendation_text(found)
    )
    assert "the certificate gives a bound for this k" in recommendation_text(found)
    assert "hardly learned" not in recommendation_text(found)


def test_a_target_that_is_not_learned_from_the_original_is_called_so() -> None:
    found = replace(point(1.0, 0.1).found, f_measure=0.3, f_original=0.3)  # type: ignore[type-var]
    points = [replace(point(1.0, 0.1), found=found)]
    recommendation = recommendation_text(advise(PLAN, points, Limits(), "learning", "class"))
    assert "These classes are hardly learned even from the original" in recommendation


def test_the_rule_without_a_target() -> None:
    # publishing only means has a mean SSE of 1/2 for two attributes, and a tenth of it is 0.05
    points = [point(0.1, 0.051), point(1.0, 0.05), point(1.0, 0.04, **OPTIMAL), point(10.0, 0.01)]
    found = advise(PLAN, points, Limits(), "spread")
    assert found.recommended is points[2]
    assert recommendation_headline(found).startswith(
        "iDP-CBLS, noise-optimal, not pooled, ε = 1: mean SSE 0.04"
    )
    assert "loses at most 10% of what publishing only the mean of each" in recommendation_text(
        found
    )
    assert "these have the smallest error.\n" in recommendation_text(found)
    assert "(level 1)" in recommendation_text(found)
    assert "(level 2), there is no bound" in recommendation_text(found)
    assert "as small as k = 3 records" in recommendation_text(found)


def test_the_largest_epsilon_is_shown_if_none_is_good_enough() -> None:
    points = [point(10.0, 0.4), point(10.0, 0.3, k=25), point(0.1, 0.06)]
    found = advise(PLAN, points, Limits(), "spread")
    assert found.recommended is points[1]
    assert "No ε tried loses at most 10%" in recommendation_text(found)


def test_what_epsilon_covers_is_not_overstated_for_several_records_of_a_person() -> None:
    fixed: dict[str, Any] = {"k": 5}
    for settings in (fixed, OPTIMAL):
        points = [point(1.0, 0.01, records_per_person=2, **settings)]
        found = advise(PLAN, points, Limits(), "spread")
        assert "no two records of a person share a cluster (level 1)" in recommendation_text(found)
        assert "(level 2), there is no bound" in recommendation_text(found)


def test_the_plan_goes_through_toml_and_protects_the_table(learned: Exploration) -> None:
    assert learned.plan is not None
    assert learned.recommended is not None
    plan = Plan.from_toml(learned.plan.to_toml())
    assert plan == learned.plan
    assert plan.attributes == PLAN.attributes
    assert plan.epsilon == learned.recommended.epsilon
    release = protect(TABLE, plan, keep_order=True)
    assert release.data.columns == ["class", "a", "b"]
    notes = " ".join(release.certificate.reading["Notes"])
    chosen = "epsilon, partition, k, trim, anonymity, pooling"
    assert f"Read from the data when the plan was made: {chosen}" in notes


def test_an_attribute_s_own_method_and_k_are_varied_too() -> None:
    own = {"a": Confidential(method="iDP-CBLS", k=40), "b": Confidential(), "c": "identifier"}
    table = TABLE.select("a", "b").with_columns(c=1)
    found = explore(table, Plan.published(epsilon=1.0, attributes=own), epsilons=[1.0], runs=1)
    plain = Plan.published(epsilon=1.0, k=5, attributes={**own, "a": "confidential"})
    (row,) = found.to_frame().filter(k=5, anonymity=0).iter_rows(named=True)
    assert row["expected"] == expected_error(table, plain, clamped=True).mean_sse


def test_without_declared_domains_only_cbls_is_left() -> None:
    attributes = {**PLAN.attributes, "b": Confidential(lower=0)}
    found = explore(TABLE, PLAN.replace(attributes=attributes), epsilons=[1.0], runs=1)
    assert set(found.to_frame()["method"]) == {"iDP-CBLS"}
    assert found.plan is not None
    assert found.plan.from_data[0] == "partition"  # a single ε was not chosen


def test_re_clustering_leaves_no_partition_that_follows_the_data() -> None:
    plan = PLAN.replace(guarantee="re-clustered")
    found = explore(TABLE, plan, epsilons=[1.0], runs=1)
    assert set(found.to_frame()["partition"].drop_nulls()) == {"fixed"}
    assert set(found.to_frame()["trim"]) == {0.0, 0.1}
    assert found.plan is not None
    assert found.plan.guarantee == "re-clustered"
    assert "re-clustered for the same k (level 2)" in recommendation_text(found)
    (curve,) = curves(found.points)
    assert curve.points == {
        k: min(p.expected for p in found.points if p.k == k and p.method == "iDP-CBLS" and
               not p.pooled)
        for k in (3, 5, 10, 25, 50)
    }  # fmt: skip
    assert list(curve.beside) == ["best k, measured"]
    assert "noise-" not in printed(found)
    ElementTree.fromstring(found.to_svg())  # noqa: S314 - our own


@pytest.mark.usefixtures("quick")
def test_without_a_plan_roles_are_proposed_and_the_target_is_dropped() -> None:
    table = TABLE.drop("class").with_columns(number=pl.Series(_CLASS))
    found = explore(table, epsilons=[1.0], target="number", runs=1)
    assert found.plan is not None
    assert found.plan.names("confidential") == ("a", "b")
    assert found.plan.names("identifier") == ("name", "number")
    array = explore(TABLE.drop("class"), epsilons=[1.0], target=_CLASS, runs=1)
    assert array.to_frame().equals(found.to_frame())
    assert "F-measure of the classes" in recommendation_headline(array)


def test_missing_values(tmp_path: Path) -> None:
    table = TABLE.with_columns(b=pl.when(pl.col("b") > 10).then("b"))
    table.write_csv(tmp_path / "in.csv")
    found = explore(tmp_path / "in.csv", epsilons=[1.0], runs=1)
    assert found.points[0].plan.missing == "keep"
    present = table["b"].count()
    assert found.to_frame()["k"].max() == max(k for k in (3, 5, 10, 25) if k <= present // 2)
    dropping = explore(table, PLAN.replace(missing="drop"), epsilons=[1.0], runs=1)
    assert dropping.to_frame()["k"].max() == found.to_frame()["k"].max()


def test_tables_of_other_libraries(learned: Exploration) -> None:
    found = explore(TABLE.to_pandas(), PLAN, epsilons=[10.0], runs=1)
    expected = learned.to_frame().filter(epsilon=10.0)["expected"]
    assert found.to_frame()["expected"].equals(expected)


def test_progress_ends_where_it_should() -> None:
    steps: list[tuple[str, int, int]] = []
    explore(
        TABLE, PLAN, epsilons=[1.0], runs=2, progress=lambda *step: steps.append(step)
    )  # fmt: skip
    assert steps[18] == ("expected error", 19, 19)
    assert steps[19:] == [("running and measuring", done, 8) for done in range(1, 9)]


CONSTANT = pl.DataFrame({"a": [1] * 20})
ONLY_A = Plan.published(epsilon=1.0, attributes={"a": "confidential"})
NEVER_BOTH = pl.DataFrame(
    {"a": [4.5] * 5 + [9] * 5 + [None] * 9, "b": [None] * 10 + [3.5] * 5 + [8] * 4}
)


@pytest.mark.parametrize(
    ("table", "settings", "error", "message"),
    [
        (TABLE, {"target": "clas"}, DataError, r"target 'clas' is not in the original"),
        (TABLE, {"target": "a", "plan": PLAN}, DataError, r"target 'a': .* confidential"),
        (TABLE, {"target": ["x"] * RECORDS}, DataError, r"from 2 to 50 classes, found 1;"),
        (TABLE, {"target": "name"}, DataError, r"from 2 to 50 classes, found 120;"),
        (TABLE, {"target": [0, 1]}, DataError, r"one class for each of the 120"),
        (TABLE.select("name"), {}, DataError, r"the table: no column can be protected"),
        (
            TABLE.select("name"),
            {"plan": PLAN},
            DataError,
            r"'class', .*: in the plan, but not in the",
        ),
        (TABLE, {"plan": "plan.toml"}, PlanError, r"plan must be a microveil.Plan, got str"),
        (TABLE, {"epsilons": []}, PlanError, r"epsilons must hold at least one"),
        (TABLE, {"epsilons": [0.0]}, PlanError, r"epsilon must be a finite number above 0"),
        (TABLE, {"runs": 0}, DataError, r"runs must be 1 or more, got 0"),
        (TABLE, {"max_linkage": 0.0}, PlanError, r"max_linkage must be a share above 0 and up to"),
        (TABLE, {"max_linkage": 5.0}, PlanError, r"a share above 0 and up to 1, got 5"),
        (TABLE, {"max_linkage": float("nan")}, PlanError, r"max_linkage must be a share"),
        (TABLE, {"max_error": 0.0}, PlanError, r"max_error must be above 0, got 0"),
        (TABLE, {"max_error": float("nan")}, PlanError, r"max_error must be above 0, got nan"),
        (TABLE, {"min_anonymity": 1}, PlanError, r"min_anonymity must be 0, 2 or more, got 1"),
        (TABLE, {"min_anonymity": -5}, PlanError, r"min_anonymity must be 0, 2 or more, got -5"),
        (
            CONSTANT,
            {"plan": ONLY_A},
            DataError,
            r"every confidential .* is constant",
        ),
        (NEVER_BOTH, {}, DataError, r"no record has a value in every confidential attribute"),
        ("nowhere.csv", {}, OSError, r"nowhere.csv: no such file"),
    ],
)
def test_bad_input(table: object, settings: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        explore(table, **{"epsilons": [1.0], "runs": 1, **settings})


def test_the_terminal_shows_the_best_points_the_charts_and_the_recommendation(
    learned: Exploration,
) -> None:
    text = printed(learned)
    assert recommendation_headline(learned).split(":")[0] in text
    frontier, risk_map = text.split("Rows linked by the most successful attack")
    assert "● ε = 0.01  ▲ ε = 10" in frontier
    (line,) = (line for line in frontier.splitlines() if "noise-    noise-" in line)
    assert line.split()[:5] == ["3", "5", "10", "25", "50"]
    assert frontier.count("▲") == 1 + 5 + 3  # the legend, one for each k, and three beside
    assert frontier.count("iDP-LS") == 2 * 2  # its two partitions, for each ε
    legend = "● not pooled  ▲ exchange  ■ average  by colour: ε = 0.01  ε = 10"
    assert legend in risk_map
    assert [risk_map.count(mark) for mark in "●▲■"] == [1 + 2 * 2, 1 + 2 * 3, 1 + 2 * 3]
    assert risk_map.count("[▲]") == 1
    assert "    5% ┤╌╌" in risk_map
    assert "Recommended" in risk_map


def test_the_curves_hold_the_errors(learned: Exploration) -> None:
    small, large = curves(learned.points)
    assert (small.label, large.label) == ("ε = 0.01", "ε = 10")
    frame = learned.to_frame().filter(epsilon=10.0, method="iDP-CBLS", anonymity=0)
    optimal = frame.filter(partition="noise-optimal").sort("expected").row(0, named=True)
    fixed = frame.filter(partition="fixed")
    assert large.beside == {
        "best k, measured": fixed["measured"].drop_nulls().item(),
        "noise-optimal, expected": optimal["expected"],
        "noise-optimal, measured": optimal["measured"],
    }
    assert large.points == dict(fixed.select("k", "expected").iter_rows())


def test_points_without_error_are_left_out_of_the_charts() -> None:
    found = advise(PLAN, [replace(point(1.0, 0.0), expected=0.0)], Limits(), "spread")
    assert found.recommended is not None
    assert printed(found).count("no plan has any error") == 2
    assert found.to_svg().count("No plan has any error") == 2


def test_the_svg_shows_every_point_and_the_recommendation(learned: Exploration) -> None:
    root = ElementTree.fromstring(learned.to_svg())  # noqa: S314 - our own
    drawn = marks_in(root)
    assert drawn.count("mark-line") == 2 + 2 * 2  # by k, and pooled both ways, for each ε
    assert drawn.count("mark-symbol") == 2 * (5 + 3) + 2 * (2 + 6) + 1  # and a ring
    assert "limit 5%" in ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    letters = "".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    recommended = (
        f"Recommended: {recommendation_headline(learned)}"  # in lines, so without its spaces
    )
    assert "".join(recommended.split()) in "".join(letters.split())
    assert recommendation_headline(learned) in root.attrib["aria-label"]


def test_without_the_extra_the_svg_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    TABLE.write_csv("in.csv")
    for library in ("vl_convert", "altair"):
        without_library(library, monkeypatch)
        code, _, err = run("explore in.csv --runs 1 --epsilon 1 --svg chart.svg")
        assert code == 1
        assert f"this needs {library}" in err
        assert 'pip install "microveil[report]"' in err
    assert "Recommended" in run("explore in.csv --runs 1 --epsilon 1")[1]


@pytest.mark.usefixtures("quick")
def test_the_svg_and_the_terminal_survive_hostile_names() -> None:
    name = '</text><script>alert("&")</script>\x1b[31m\x00]]>[bold]'
    table = TABLE.rename({"class": name, "a": "<a&"})
    found = explore(table, epsilons=[1.0], target=name, runs=1)
    svg = found.to_svg()
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    assert not list(root.iter(f"{SVG}script"))
    assert "\x1b" not in svg
    text = printed(found)
    assert "\x1b" not in text
    assert "[bold]" in text


@pytest.mark.usefixtures("quick")
def test_the_command_writes_the_plan_and_the_chart(
    run: Callable[[str], tuple[int, str, str]],
) -> None:
    TABLE.write_csv("in.csv")
    Path("plan.toml").write_text(PLAN.to_toml(), encoding="utf-8")
    command = "explore in.csv --plan plan.toml --epsilon 1 --epsilon 10 --runs 1 --target class"
    code, out, err = run(f"{command} -o best.toml --svg chart.svg")
    assert (code, err) == (0, "")
    assert "Recommended" in out
    assert "Wrote best.toml\nWrote chart.svg\n" in out
    assert Plan.read("best.toml").attributes == PLAN.attributes
    assert ElementTree.parse("chart.svg").getroot().tag == f"{SVG}svg"  # noqa: S314 - our own
    code, out, err = run(f"{command} -o best.toml --svg new.svg")
    assert (code, out) == (1, "")
    assert err.startswith("error: best.toml: the file exists; choose another path, or give ")
    assert not Path("new.svg").exists()
    code, out, err = run("explore in.csv --epsilon 1 --runs 1 -o best.toml --overwrite --quiet")
    assert (code, out, err) == (0, "", "")
    assert Plan.read("best.toml").names("confidential") == ("class", "a", "b")
    code, _, err = run("explore in.csv --target nothing")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("error: target 'nothing' is not in the original")
