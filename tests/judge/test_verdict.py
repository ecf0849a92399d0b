"""The verdict on a release: who is found, what is lost, and the one change that helps most."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from microveil import (
    Confidential,
    DataError,
    Plan,
    Release,
    Scenario,
    Verdict,
    evaluate,
    protect,
    verdict,
)
from microveil.attacks import structure
from microveil.attacks.attack_rows import LINKAGE, LOW_LINKAGE
from microveil.attacks.known import EVERYTHING
from microveil.attacks.nearest import link_to_nearest, nearest_linkage
from microveil.compare.asked import Asked
from microveil.compare.examined import examine
from microveil.compare.figures import Figure
from microveil.engines import beside_here as beside
from microveil.engines.columnwise import ReleasedInFiles
from microveil.judge import verdict as module
from microveil.judge.grades import grade_of, passes
from microveil.judge.next_step import losses_of
from microveil.show.verdicts import verdict_lines
from microveil.show.words.grading import change_in_words
from microveil.show.words.readings import reading

VALUE = 918_273  # stands for a data value: nothing printed may contain it


def table(records: int = 300, attributes: int = 4, seed: int = 0) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    common = random.normal(size=records)
    values = {
        f"a{i}": (1_000 * (common + random.normal(size=records))).round() for i in range(attributes)
    }
    return pl.DataFrame({**values, "region": random.integers(0, 3, records)})


def plan(**settings: Any) -> Plan:  # noqa: ANN401 - whatever a plan takes
    names = [f"a{i}" for i in range(4)]
    given = {"epsilon": 1.0, "k": 5, "attributes": {
        **dict.fromkeys(names, "confidential"), "region": "identifier"}}  # fmt: skip
    return Plan.published(**{**given, **settings})


def judged(data: pl.DataFrame, made_by: Plan, **options: Any) -> Verdict:  # noqa: ANN401
    return verdict(data, protect(data, made_by, seed=1, keep_order=True), seed=1, **options)


def printed(found: Verdict) -> str:
    console = Console(width=100)
    with console.capture() as capture:
        console.print(found)
    return " ".join(capture.get().split())


def test_it_fails_without_pooling_and_names_the_change_that_helps() -> None:
    people = table()
    found = judged(people, plan())
    assert not found.passed
    assert found.linkage.value > 0.5
    assert found.change is not None
    assert change_in_words(found.change).startswith("add anonymity = 25: linkage ")
    changed = found.change.plan
    assert changed is not None
    after = judged(people, changed)
    assert after.passed
    assert after.linkage.at_most <= LOW_LINKAGE
    assert "does not pass" in printed(found)
    assert "Low: passes" in printed(after)


def test_too_few_in_a_joint_cluster_are_raised() -> None:
    found = judged(table(), plan(anonymity=3))
    assert not found.passed
    assert found.change is not None
    assert change_in_words(found.change).startswith("raise anonymity from 3 to 25: ")


def test_noise_does_not_hide_people_who_share_values() -> None:
    """Neither the nearest record nor an assignment finds them: the third attack must be made."""
    people = table(400, attributes=8)
    names = [name for name in people.columns if name != "region"]
    noisy = plan(epsilon=0.02, attributes={**dict.fromkeys(names, "confidential"),
                                           "region": "identifier"})  # fmt: skip
    found = judged(people, noisy)
    shares = {figure.measure: figure.value for figure in found.figures}
    assert shares["linkage.nearest"] <= LOW_LINKAGE
    assert shares["linkage.structure"] > 0.9
    assert not found.passed


def test_of_large_tables_it_is_tried_on_records_protected_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_BY_STRUCTURE", 100)
    monkeypatch.setattr(structure, "_TRIAL", 300)
    people = table(400, attributes=8)
    names = [name for name in people.columns if name != "region"]
    noisy = plan(epsilon=0.02, attributes={**dict.fromkeys(names, "confidential"),
                                           "region": "identifier"})  # fmt: skip
    found = judged(people, noisy).linkage
    assert found.measure == "linkage.structure"
    said = reading(found)
    assert "from a sample of 300 of 400 records, protected again by the same plan" in said
    assert found.value > 0.9


def test_records_that_are_tried_have_the_noise_of_the_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The attack finds everybody in these 2,400 records; 300 by the same plan hide 98%."""
    monkeypatch.setattr(structure, "_TRIAL", 300)
    people, random = table(2_400), np.random.default_rng(1)
    release = protect(people, plan(epsilon=0.01), seed=1)
    with examine(people, release, random=random) as seen:
        found = structure.structure_figure(seen, EVERYTHING, Asked(most_by_structure=0, seed=1))
    assert isinstance(found, Figure)
    assert found.sample is not None
    assert (found.sample.anew, found.sample.drawn, found.sample.of) == (8, 300, 2_400)
    assert found.value > 0.9


def test_a_sample_covers_the_figure_of_all() -> None:
    people = table(3_000)
    release = protect(people, plan(epsilon=0.1), seed=3, keep_order=True)
    names = [f"a{i}" for i in range(4)]
    whole = nearest_linkage(
        people.select(names).to_numpy(), release.data.select(names).to_numpy(), sample=None
    )
    covered = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        with examine(people, release, random=random, most=300) as seen:
            found = link_to_nearest(seen)
        assert (found.attacked, found.known, found.records) == (300, 3_000, 3_000)
        covered += found.low <= whole.share <= found.high
    assert covered >= 17  # of 20; 19 are expected


def test_lazy_tables_are_judged_like_those_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOKED_AT", 200)
    monkeypatch.setattr(beside, "PART", 130)
    people = table().with_columns(
        a1=pl.when(pl.col("a1") > 900).then(None).otherwise("a1"),
        job=pl.col("a0").mod(7).cast(pl.String),
        rank=pl.col("a2").gt(0).cast(pl.Int64),
    )
    kinds = {
        "a0": "confidential", "a1": "confidential", "a2": "kept", "a3": "identifier",
        "region": "kept", "job": Confidential(kind="nominal"),
        "rank": Confidential(kind="ordinal", categories=[0, 1]),
    }  # fmt: skip
    made_by = plan(missing="keep", anonymity=10, attributes=kinds)
    with pytest.warns(match="categories"):
        release = protect(people, made_by, seed=1, keep_order=True)
    rows = ReleasedInFiles(release.data.lazy(), np.arange(300), "as in the original")
    lazy = replace(
        release, rows=rows, detail=replace(release.detail, clusters=release.detail.clusters.lazy())
    )
    known = ["job", "rank", "region"]
    found = verdict(people, release, known=known, seed=5)
    assert verdict(people.lazy(), lazy, known=known, seed=5) == found
    assert (found.records, found.looked_at) == (300, 200)


def test_everybody_is_found_in_a_sample_as_in_the_whole() -> None:
    """The parts of a table are coded apart from each other: by hand, with all kinds of columns."""
    people = table(60).with_columns(job=pl.col("a0").mod(3).cast(pl.String))
    kinds = {"a0": "confidential", "job": "kept"}
    release = protect(people.select("a0", "job"), plan(k=3, attributes=kinds), seed=1)
    found = verdict(people, release, known=["job"], seed=1)
    sizes = people.group_by("job").len()["len"]
    by_job = next(f for f in found.figures if f.attribute == "knows job")
    assert by_job.value == pytest.approx(len(sizes) / 60)


SMALL = pl.DataFrame({"age": [30, 31, 60, 62, 45], "region": ["n", "n", "s", "s", "w"]})


def small(**settings: Any) -> tuple[pl.DataFrame, Release]:  # noqa: ANN401
    kinds = {"age": "confidential", "region": "kept"}
    made_by = Plan.published(epsilon=1.0, k=5, attributes=kinds, **settings)
    return SMALL, protect(SMALL, made_by, seed=1, keep_order=True)


def test_scenarios_by_hand() -> None:
    """All masked ages are equal: by age 1 in 5 is found; by region 2 of 4 and the fifth."""
    people, release = small(scenarios=[
        Scenario(name="neighbours", known=["region"]), Scenario(name="half", people=0.4)
    ])  # fmt: skip
    evaluation = evaluate(people, release, known="region")
    for attack in ("linkage.nearest", "linkage.one_to_one", "linkage.structure"):
        assert evaluation.value(attack) == pytest.approx(1 / 5)
        assert evaluation.value(attack, "knows region") == pytest.approx(3 / 5)
        assert evaluation.value(attack, "neighbours") == pytest.approx(3 / 5)
        assert evaluation.value(attack, "half") == pytest.approx(1 / 5)
    found = verdict(people, release, known=["age", "region"], seed=1)
    assert found.linkage.value == pytest.approx(3 / 5)
    assert found.linkage.attribute in ("neighbours", "knows age and region")
    assert found.linkage.counted == 0  # of five, guessing finds three in more than one of 100


def test_the_worst_scenario_counts() -> None:
    people = table(300)
    made_by = plan(anonymity=25, attributes={**plan().attributes, "region": "kept"})
    codes = pl.Series("region", range(300))  # which points to everybody
    people = people.with_columns(codes)
    told = judged(people, made_by)
    assert not told.passed
    assert told.linkage.measure == "linkage.informed"
    assert told.linkage.value == 1
    (shown,) = [line for about, line in verdict_lines(told) if about == "Kept"]
    assert shown.startswith("100% of released rows have a combination of kept columns (region)")
    known = judged(people, made_by, known=["region"])
    assert not known.passed
    assert known.linkage.attribute == "knows region"
    assert known.change is not None
    assert (known.change.kind, known.change.names) == ("drop", ("region",))


def test_kept_columns_that_tell_pooled_records_apart() -> None:
    people = table(400).with_columns(region=pl.col("a0").rank("ordinal") % 7)
    kinds = {**plan().attributes, "region": "kept"}
    found = judged(people.cast({"region": pl.String}), plan(anonymity=25, attributes=kinds))
    assert not found.passed
    assert found.linkage.value > 0.2
    text = people.cast({"region": pl.String})
    release = protect(text, plan(anonymity=25, attributes=kinds), seed=1)
    assert evaluate(text, release).value("risk.linkage_with_kept", "region") > LOW_LINKAGE
    change = found.change
    assert change is not None
    assert (change.kind, change.names) == ("mask kept", ("region",))
    assert change.plan is not None
    assert change.plan.confidential["region"].kind == "nominal"


@pytest.mark.parametrize(
    ("records", "settings", "setting"),
    [
        (1_000, {"epsilon": 0.2, "k": 3, "exact_from": 10}, "partition"),
        (300, {"epsilon": 0.0001, "k": 50}, "epsilon"),
    ],
)
def test_what_is_lost_for_nothing_is_won_back(
    records: int, settings: dict[str, Any], setting: str
) -> None:
    found = judged(table(records), plan(anonymity=25, **settings))
    assert found.passed
    assert found.usefulness.grade == "poor"
    assert found.change is not None
    assert setting in found.change.names
    assert found.change.plan is not None
    assert found.change.plan.anonymity == 25


def test_pooling_proves_what_a_small_table_shows_by_chance() -> None:
    proved = Figure("linkage.nearest", None, 0.06, bound=0.05)
    assert grade_of(proved) == "good"
    assert grade_of(replace(proved, bound=None)) == "fair"
    assert passes([proved])
    assert not passes([])
    found = evaluate(table(40), protect(table(40), plan(anonymity=20), seed=4))
    for figure in (f for f in found.figures if f.measure in LINKAGE):
        assert figure.at_most <= LOW_LINKAGE
        assert "pooling proves a chance of at most 1 in 20" in reading(figure)


def test_nothing_of_it_is_on_the_certificate() -> None:
    with_scenarios, without = (
        small(scenarios=scenarios)[1].certificate.model_dump(exclude={"created"})
        for scenarios in ([{"known": ["region"], "name": "neighbours"}], [])
    )
    assert with_scenarios == without
    people, release = small()
    before = release.certificate.to_json()
    verdict(people, release)
    assert release.certificate.to_json() == before


def test_no_value_is_printed() -> None:
    people = pl.DataFrame({"x": range(VALUE, VALUE + 40), "region": [str(VALUE)] * 40})
    made_by = Plan.published(epsilon=1.0, k=3, attributes={"x": "confidential", "region": "kept"})
    found = judged(people, made_by, known=["region", "x"])
    assert str(VALUE)[:4] not in printed(found)
    assert found.change is not None


def test_it_says_what_it_cannot_do() -> None:
    people, release = small()
    spark = replace(release, detail=replace(release.detail, positions=None))
    with pytest.raises(DataError, match="not known which record is whose"):
        verdict(people, spark)
    with pytest.raises(DataError, match="got 'regio', which is not in the original"):
        verdict(people, release, known=["regio"])
    with pytest.raises(DataError, match="people must be a share"):
        verdict(people, release, people=0)
    constant = SMALL.with_columns(age=7)
    with pytest.raises(DataError, match="no masked attribute varies"):
        verdict(constant, protect(constant, release.plan, seed=1))


def test_what_is_lost_is_what_evaluate_measures() -> None:
    people = table()
    release = protect(people, plan(), seed=1)
    found, evaluation = verdict(people, release, seed=1), evaluate(people, release)
    for figure in losses_of(evaluation.seen):
        if figure.measure != "utility.quantiles":
            assert figure.value == evaluation.value(figure.measure, figure.attribute)
            assert figure in found.figures
