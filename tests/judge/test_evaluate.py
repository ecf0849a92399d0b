import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from sklearn.neighbors import KNeighborsClassifier

from microveil import (
    Confidential,
    DataError,
    Detail,
    Evaluation,
    FileError,
    Plan,
    Release,
    evaluate,
    protect,
)
from microveil.attacks.attack_rows import LINKAGE
from microveil.attacks.nearest import nearest_linkage
from microveil.compare.reasons import why_not
from microveil.judge.registry import MEASURES
from microveil.measures import distances as utility
from microveil.measures.learning import F_MEASURES
from microveil.measures.use_figures import USES
from microveil.show.words.grading import notes_on
from microveil.show.words.numbers import percent
from microveil.show.words.readings import label_of_missing, reading
from microveil.types import Reals

RECORDS = 120
WITH_CONTROL = {id_ for id_, row in MEASURES.items() if "control" in row.needs}
ONE_BY_ONE = tuple(
    id_ for id_, row in MEASURES.items() if row.needs == ("paired",) and id_ not in LINKAGE
)
ATTRIBUTES = ("wages", "age")
OF_CATEGORIES_OR_POOLS = {  # or of units, strata and rules
    "utility.rule_broken", "utility.rule_changed",
    "utility.unit_consistency", "utility.stratum_totals", "risk.linkage_of_units",
    "utility.unchanged", "utility.total_variation", "utility.cramers_v",
    "risk.smallest_joint_class", "risk.joint_distinct_least", "risk.joint_distinct_median",
    "risk.joint_distance_largest", "risk.joint_distance_median",
    "linkage.informed", "linkage.own_values",
}  # fmt: skip


def _people() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, RECORDS)
    return pl.DataFrame(
        {
            "name": [f"n{i}" for i in range(RECORDS)],
            "age": age,
            "wages": (age * 1000 + rng.normal(scale=9000, size=RECORDS)).round().astype(np.int64),
            "region": rng.integers(0, 5, RECORDS),
            "old": np.where(age > 50, "yes", "no"),
        }
    )


PEOPLE = _people()
PLAN = Plan.published(
    epsilon=20.0,
    k=5,
    attributes={
        "name": "identifier", "wages": Confidential(kind="integer"),
        "age": Confidential(kind="integer"), "region": "kept", "old": "kept",
    },
)  # fmt: skip


@pytest.fixture
def release() -> Release:
    return protect(PEOPLE, PLAN, seed=1, keep_order=True)


def _arrays(release: Release) -> tuple[Reals, Reals]:
    return (
        PEOPLE.select(ATTRIBUTES).to_numpy().astype(float),
        release.data.select(ATTRIBUTES).to_numpy().astype(float),
    )


Reasons = dict[tuple[str, str | None], str]


def _reasons(evaluation: Evaluation) -> Reasons:
    """By measure, or "every", and attribute why there is no figure."""
    return {
        (measure, missing.attribute): why_not(missing)
        for missing in evaluation.not_computed
        for measure in missing.measures or ("every",)
    }


def test_a_release_in_memory(release: Release) -> None:
    evaluation = evaluate(
        PEOPLE, release, target="old", quasi_identifiers=["region", "old"],
        estimator=KNeighborsClassifier(),
    )  # fmt: skip
    original, masked = _arrays(release)
    assert evaluation.attributes == ATTRIBUTES
    assert (evaluation.records, evaluation.released) == (RECORDS, RECORDS)
    assert (evaluation.not_computed, notes_on(evaluation)) == ((), [])
    assert {f.measure for f in evaluation.figures} == set(
        MEASURES
    ) - OF_CATEGORIES_OR_POOLS - WITH_CONTROL - {"risk.rare_categories", *USES}

    value = evaluation.value
    assert value("utility.mean_sse") == utility.mean_sse(original, masked)
    assert value("utility.il1s") == pytest.approx(utility.il1s(original, masked).mean())
    assert value("linkage.nearest") == nearest_linkage(original, masked).share
    assert value("utility.pmse") == utility.propensity(original, masked).pmse
    assert value("utility.sse_sst", "age") == pytest.approx(utility.sse_sst(original, masked)[1])
    spearman = utility.correlation_differences(original, masked, "spearman")[0, 1]
    pair = "wages × age"
    assert value("utility.spearman", pair) == pytest.approx(spearman)
    sizes = PEOPLE.group_by("region", "old").len()["len"]
    assert value("risk.smallest_class", "region, old") == sizes.min()
    deviation = float(PEOPLE["age"].std())  # type: ignore[arg-type]
    clusters = release.detail.clusters.filter(attribute="age")
    widest = (clusters["largest"] - clusters["smallest"]).max()
    assert value("risk.width_largest", "age") == pytest.approx(widest / deviation)


def test_learning_is_done_on_the_first_two_thirds(release: Release) -> None:
    original, masked = _arrays(release)
    labels = PEOPLE["old"].to_numpy()
    first = int(RECORDS * 0.66)
    predicted = KNeighborsClassifier().fit(masked[:first], labels[:first]).predict(original[first:])
    right = np.sum((predicted == "yes") & (labels[first:] == "yes"))
    by_hand = 2 * right / (np.sum(predicted == "yes") + np.sum(labels[first:] == "yes"))
    for target in ("old", PEOPLE["old"], PEOPLE["old"].to_pandas(), PEOPLE["old"].to_list()):
        name = target if isinstance(target, str) else "class"
        evaluation = evaluate(PEOPLE, release, target=target, estimator=KNeighborsClassifier())
        measured = evaluation.value("learning.f_measure", f"{name} = yes")
        assert measured == pytest.approx(by_hand)


def _same(one: Evaluation, other: Evaluation) -> bool:
    return one.to_frame().equals(other.to_frame(), null_equal=True)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_with_their_detail_say_the_same(release: Release, tmp_path: Path, kind: str) -> None:
    original = tmp_path / f"original.{kind}"
    PEOPLE.write_csv(original) if kind == "csv" else PEOPLE.write_parquet(original)
    written = release.write(tmp_path / f"protected.{kind}", detail=True)
    assert written.detail
    options: dict[str, Any] = {"target": "old", "quasi_identifiers": ["region"]}
    expected = evaluate(PEOPLE, release, **options)
    from_paths = evaluate(original, written.protected, detail=written.detail, **options)
    assert _same(from_paths, expected)
    table, detail = pl.read_csv if kind == "csv" else pl.read_parquet, Detail.read(written.detail)
    assert _same(evaluate(PEOPLE, table(written.protected), detail=detail, **options), expected)


def test_aligned_files_lack_only_the_clusters(release: Release, tmp_path: Path) -> None:
    written = release.write(tmp_path / "protected.csv", keep_order=True)
    expected = evaluate(PEOPLE, release, target="old")
    measured = evaluate(
        PEOPLE, written.protected, aligned=True, attributes=ATTRIBUTES, target="old"
    )
    own = OF_CATEGORIES_OR_POOLS
    of_clusters = {m for m in MEASURES if "cluster" in MEASURES[m].label and m not in own}
    of_classes = {"risk.unique_records", "risk.smallest_class"}
    of_plan = {id_ for id_, row in MEASURES.items() if "plan" in row.needs}
    assert {measure for measure, _ in _reasons(measured)} == of_clusters | of_classes | of_plan
    without = of_clusters | of_plan
    assert measured.figures == tuple(f for f in expected.figures if f.measure not in without)


def test_a_table_alone_gives_distributions_and_says_what_is_missing(release: Release) -> None:
    shuffled = release.data.sample(fraction=1, shuffle=True, seed=2)
    evaluation = evaluate(PEOPLE, shuffled, target="old", attributes=ATTRIBUTES)
    assert {f.measure for f in evaluation.figures} == {
        "utility.means", "utility.totals", "utility.variances", "utility.quantiles",
        "utility.interval_overlap",
        "utility.pearson", "utility.spearman",
        "utility.pmse", "utility.pmse_ratio", "risk.unique_combinations",
    }  # fmt: skip
    reasons = _reasons(evaluation)
    for measure in (*ONE_BY_ONE, *LINKAGE, *F_MEASURES):
        assert "it is not known which record is whose" in reasons[measure, None]
    assert not evaluation.scored
    assert "private detail" in reasons["risk.width_median", None]
    with_order = evaluate(PEOPLE, release)
    for measure in ("utility.means", "utility.variances"):
        measured = evaluation.value(measure, "age")
        assert measured == pytest.approx(with_order.value(measure, "age"))


def test_without_a_plan_all_common_columns_but_the_target_are_compared(release: Release) -> None:
    assert evaluate(PEOPLE, release.data).attributes == ("age", "wages", "region", "old")
    by_region = evaluate(PEOPLE, release.data, target="region", aligned=True)
    assert by_region.attributes == ("age", "wages", "old")


@pytest.mark.parametrize("kind", ["polars", "pandas", "pandas with NA", "pyarrow"])
def test_tables_of_every_kind_and_missing_values(kind: str) -> None:
    """One attribute uses the records that have it; several use complete records."""
    people = PEOPLE.with_columns(
        age=pl.when(pl.int_range(RECORDS) % 10 == 0).then(None).otherwise("age"),
        wages=pl.when(pl.int_range(RECORDS) % 15 == 7).then(None).otherwise("wages"),
    )
    tables: dict[str, Any] = {
        "polars": people,
        "pandas": people.to_pandas(),
        "pandas with NA": people.to_pandas().convert_dtypes(),
        "pyarrow": people.to_arrow(),
    }
    release = protect(tables[kind], PLAN.replace(missing="keep"), seed=1, keep_order=True)
    evaluation = evaluate(tables[kind], release, target="old", quasi_identifiers=["age"])
    masked = protect(people, PLAN.replace(missing="keep"), seed=1, keep_order=True).data
    both = people.select("age", masked=masked["age"]).drop_nulls().to_numpy().astype(float)
    assert len(both) == 108
    expected = utility.sse_sst(both[:, :1], both[:, 1:])[0]
    assert evaluation.value("utility.sse_sst", "age") == pytest.approx(expected)
    complete = pl.concat(
        [people.select(ATTRIBUTES), masked.select(pl.col(ATTRIBUTES).name.suffix("'"))],
        how="horizontal",
    ).drop_nulls().to_numpy().astype(float)  # fmt: skip
    assert len(complete) == 100
    assert evaluation.value("utility.mean_sse") == utility.mean_sse(
        complete[:, :2], complete[:, 2:]
    )
    assert evaluation.incomplete == (20, 20)
    assert notes_on(evaluation) == [
        f"20 records of the {where} have missing values; measures of several attributes leave them "
        "out."
        for where in ("original", "release")
    ]


def test_records_that_were_dropped(tmp_path: Path) -> None:
    people = PEOPLE.with_columns(
        age=pl.when(pl.int_range(RECORDS) % 10 == 0).then(None).otherwise("age")
    )
    release = protect(people, PLAN.replace(missing="drop"), seed=1, keep_order=True)
    evaluation = evaluate(people, release, target="old")
    assert (evaluation.records, evaluation.released) == (120, 108)
    assert notes_on(evaluation)[0] == "12 of 120 original records are not in the release."
    kept = people.drop_nulls("age").select(ATTRIBUTES).to_numpy().astype(float)
    masked = release.data.select(ATTRIBUTES).to_numpy().astype(float)
    assert evaluation.value("utility.mean_sse") == utility.mean_sse(kept, masked)
    written = release.write(tmp_path / "protected.parquet", detail=True)
    from_files = evaluate(people, written.protected, detail=written.detail, target="old")
    assert _same(from_files, evaluation)
    assert notes_on(evaluate(people, release.data))[0] == notes_on(evaluation)[0]


def test_targets_with_missing_classes_leave_records_out(release: Release) -> None:
    classes = [None if i % 12 == 0 else x for i, x in enumerate(PEOPLE["old"])]
    evaluation = evaluate(PEOPLE, release, target=classes, estimator=KNeighborsClassifier())
    present = np.array([x is not None for x in classes])
    original, masked = (table[present] for table in _arrays(release))
    labels = PEOPLE["old"].to_numpy()[present]
    first = int(len(labels) * 0.66)
    predicted = KNeighborsClassifier().fit(masked[:first], labels[:first]).predict(original[first:])
    right = np.sum((predicted == "no") & (labels[first:] == "no"))
    by_hand = 2 * right / (np.sum(predicted == "no") + np.sum(labels[first:] == "no"))
    measured = evaluation.value("learning.f_measure", "class = no")
    assert measured == pytest.approx(by_hand)


def test_constant_and_empty_attributes_are_left_out_and_named() -> None:
    original = pl.DataFrame(
        {"a": [1.0, 2, 3, 4], "b": [5.0] * 4, "c": [5.0] * 4, "d": [None] * 4, "e": [1.0, 2, 3, 4]},
        schema_overrides={"d": pl.Float64},
    )
    masked = original.with_columns(a=pl.Series([1.0, 2, 4, 4]), c=pl.lit(6.0), e=pl.lit(2.5))
    evaluation = evaluate(original, masked, aligned=True)
    reasons = _reasons(evaluation)
    assert "so it has no scale; the release has the same value" in reasons["every", "b"]
    assert "so it has no scale; the release has other values" in reasons["every", "c"]
    assert reasons["every", "d"] == "every value is missing in the original"
    assert "constant among the complete records" in reasons["utility.pearson", "e"]
    assert "at least two numeric attributes" in reasons["utility.spearman", None]
    assert evaluation.value("utility.variances", "e") == -1
    assert evaluation.value("utility.sse_sst", "e") == pytest.approx(1)
    assert {f.attribute for f in evaluation.figures} == {None, "a", "e"}


def test_nothing_but_constants() -> None:
    table = pl.DataFrame({"a": [1, 1, 1], "sex": ["f", "f", "m"]})
    evaluation = evaluate(table, table, aligned=True, attributes="a", quasi_identifiers=["sex"])
    assert [f.measure for f in evaluation.figures] == ["risk.unique_records", "risk.smallest_class"]
    missing = evaluation.not_computed[0]
    assert label_of_missing(missing) == "every measure of 'a'"
    assert "no_plan" in [item.reason for item in evaluation.not_computed]


def test_too_few_complete_records() -> None:
    original = pl.DataFrame({"a": [1.0, 2, None, None], "b": [None, None, 3.0, 4]})
    evaluation = evaluate(original, original, aligned=True)
    reasons = _reasons(evaluation)
    for measure in ("utility.mean_sse", "utility.pmse", "utility.pearson"):
        assert reasons[measure, None]
    assert evaluation.value("utility.sse_sst", "a") == 0
    apart = evaluate(
        original, original.with_columns(a=pl.Series([None, None, 1.0, 2])), aligned=True
    )
    assert (
        "does not vary in the records that have it in both tables"
        in _reasons(apart)["utility.sse_sst", "a"]
    )


def test_attributes_masked_without_clusters() -> None:
    attributes = {"age": {"role": "confidential", "lower": 0, "upper": 100}}
    plan = Plan.published(epsilon=9, method="DP", attributes=attributes)
    people = PEOPLE.select("age")
    evaluation = evaluate(people, protect(people, plan, seed=1))
    for measure in ("risk.width_median", "risk.narrow_clusters"):
        assert _reasons(evaluation)[measure, "age"] == "it was masked without clusters"


@pytest.mark.parametrize(
    ("release", "options", "message"),
    [
        (PEOPLE[:60], {"aligned": True}, "found 120 in the original and 60 in the release"),
        (pl.concat([PEOPLE, PEOPLE]), {}, "240 records, more than the 120 of the original"),
        (PEOPLE.rename({"age": "years"}), {}, "column 'years' of the release is not in the orig"),
        (PEOPLE.select("name"), {}, "no column of numbers or categories in common"),
        (PEOPLE.with_columns(pl.col("age").cast(pl.String)), {}, "'age': expected numbers in .*St"),
        (PEOPLE, {"attributes": ["size"]}, "attribute 'size' is not in the original"),
        (PEOPLE.drop("age"), {"attributes": ["age"]}, "attribute 'age' is not in the release"),
        (PEOPLE, {"quasi_identifiers": ["regio"]}, "got 'regio', which is not there"),
        (PEOPLE, {"target": "older"}, "target 'older' is not in the original"),
        (PEOPLE, {"target": "age", "attributes": ["age"]}, "target 'age': a class must not be"),
        (PEOPLE, {"aligned": True, "target": [1, 2]}, "each of the 120 original records, found 2"),
        (PEOPLE, {"aligned": True, "target": "wages"}, "2 to 50 classes, found"),
        (PEOPLE, {"aligned": True, "target": ["x"] * 120}, "2 to 50 classes, found 1"),
        (PEOPLE, {"aligned": True, "scale": "range"}, 'scale must be "std" or "variance"'),
        (PEOPLE.with_columns(age=pl.lit(float("inf"))), {}, "'age': values must lie within"),
        ([1, 2], {}, "data must be a Polars or pandas DataFrame"),
    ],
)
def test_bad_input(release: Any, options: dict[str, Any], message: str) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match=message):
        evaluate(PEOPLE, release, **options)


def test_tables_that_do_not_belong_to_the_release(release: Release) -> None:
    with pytest.raises(DataError, match=r"has 60 records, but the release was made from .* more"):
        evaluate(PEOPLE[:60], release)
    with pytest.raises(DataError, match=r"has 240 records, but .* made from a table with 120"):
        evaluate(pl.concat([PEOPLE, PEOPLE]), release)
    with pytest.raises(DataError, match="detail describes 120 records, the release has 60"):
        evaluate(PEOPLE, release.data[:60], detail=release.detail)
    for options in ({"aligned": True}, {"detail": release.detail}):
        with pytest.raises(DataError, match="a Release knows its own row order"):
            evaluate(PEOPLE, release, **options)


def test_a_detail_that_belongs_to_another_file(release: Release, tmp_path: Path) -> None:
    one = release.write(tmp_path / "one.csv", detail=True)
    two = protect(PEOPLE, PLAN, seed=2).write(tmp_path / "two.csv", detail=True)
    with pytest.raises(FileError, match=r"one\.csv: not the file the detail was written with"):
        evaluate(PEOPLE, one.protected, detail=two.detail)
    with pytest.raises(FileError, match=r"one\.csv: not the file the detail was written with"):
        evaluate(PEOPLE, one.protected, detail=Detail.read(two.detail or ""))


def test_a_detail_knows_its_plan_and_file(release: Release, tmp_path: Path) -> None:
    written = release.write(tmp_path / "protected.csv", detail=True)
    detail = Detail.read(written.detail or "")
    assert detail.plan == PLAN
    about = json.loads(zipfile.ZipFile(written.detail or "").read("about.json"))
    assert detail.protected_sha256 == about["protected_sha256"]


def test_results_in_every_form(release: Release) -> None:
    evaluation = evaluate(PEOPLE, release, target="old", estimator=KNeighborsClassifier())
    frame = evaluation.to_frame()
    assert frame.columns == [
        "measure", "attribute", "value", "low", "high", "at_most", "weighted",
    ]  # fmt: skip
    assert frame["value"].is_finite().all()
    assert len(frame) == len(evaluation.figures)
    assert all("\n" not in said and said for said in map(reading, evaluation.figures))
    plain = json.loads(json.dumps(evaluation.to_dict()))
    assert plain["figures"][0]["measure"] == "utility.mean_sse"
    assert plain["not_computed"] == [
        {
            "measures": ["risk.unique_records", "risk.smallest_class"],
            "attribute": None,
            "reason": "no_quasi-identifiers",
            "facts": {},
        }
    ]
    (missing,) = evaluation.not_computed
    assert label_of_missing(missing) == "unique records and smallest class"


def test_every_measure_has_an_id_of_its_own() -> None:
    assert len({measure.label for measure in MEASURES.values()}) == len(MEASURES)
    for id_, measure in MEASURES.items():
        assert measure.id == id_
        assert re.fullmatch(r"(use|utility|linkage|risk|learning)\.[a-z][a-z0-9_]*", id_)


def test_figures_are_about_what_their_measure_says(release: Release) -> None:
    evaluation = evaluate(PEOPLE, release, target="old", quasi_identifiers=["region", "old"])
    signs = {"pair": " × ", "columns": ", ", "class": "old = "}
    for figure in evaluation.figures:
        about = MEASURES[figure.measure].about
        if about in ("table", "scenario"):
            assert figure.attribute is None
        elif about == "attribute":
            assert figure.attribute in ATTRIBUTES
        else:
            assert signs[about] in str(figure.attribute)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (("utility.mean_see",), r"no measure has the id .*; did you mean 'utility.mean_sse'\?"),
        (
            ("mean SSE",),
            r"did you mean 'utility.mean_sse'\? \(ids: use.estimate, use.model, utility.mean_sse",
        ),
        (("nearest linkag",), r"did you mean 'linkage.nearest'\?"),
        (("?",), r"no measure has the id '\?' \(ids: use.estimate, .*f_measure_original\)$"),
        (("utility.mean_sse", "age"), r"computed for 'age': its figures are about the whole table"),
        (("utility.means",), r"computed for the whole table: its figures are about an attribute"),
        (("utility.pearson", "age"), r"its figures are about two attributes, given as \"a × b\""),
        (("risk.smallest_class", "region"), r"for 'region': no quasi-identifiers were named"),
        (("learning.f_measure", "old = yes"), r"for 'old = yes': no target was named"),
    ],
)
def test_a_figure_that_is_not_there(
    release: Release, wanted: tuple[str, ...], message: str
) -> None:
    evaluation = evaluate(PEOPLE, release)
    with pytest.raises(DataError, match=message):
        evaluation.value(*wanted)


def test_the_terminal_shows_the_worst_attribute_and_every_class(release: Release) -> None:
    evaluation = evaluate(PEOPLE, release, target="old", estimator=KNeighborsClassifier())
    text = io.StringIO()
    Console(width=200, file=text).print(evaluation)
    words = re.split(r"\s{2,}", text.getvalue())
    values = {name: evaluation.value("risk.width_median", name) for name in ATTRIBUTES}
    narrowest = min(values, key=values.__getitem__)
    place = words.index("median cluster width")
    assert words[place + 1] == f"{values[narrowest]:.3g}"
    assert words[place + 3] == f"{narrowest} (worst of 2)"
    assert sum("old = " in word for word in words) == 4
    assert any("no quasi-identifiers were named" in word for word in words)


def test_readings_state_figure_chance_and_sample(release: Release) -> None:
    evaluation = evaluate(PEOPLE, release, linkage_sample=50)
    readings = {f.measure: reading(f) for f in evaluation.figures}
    assert "by chance 0.833%" in readings["linkage.nearest"]
    assert "sample of 50 of 120 people" in readings["linkage.nearest"]
    as_printed = evaluate(PEOPLE, release, scale="variance")
    original, masked = _arrays(release)
    assert as_printed.value("utility.mean_sse") == utility.mean_sse(
        original, masked, scale="variance"
    )
    assert "scale: variance" in reading(as_printed.figures[0])


def test_one_name_will_do_for_a_list_of_names(release: Release) -> None:
    evaluation = evaluate(PEOPLE, release, attributes="age", quasi_identifiers="region")
    assert evaluation.attributes == ("age",)
    assert evaluation.value("risk.unique_records", "region") == 0
    twice = evaluate(PEOPLE, release, attributes=["age", "age"], quasi_identifiers=["region"])
    assert twice == evaluation


def test_almost_all_is_not_called_all() -> None:
    assert [percent(x) for x in (0, 1e-6, 0.12345, 0.9996, 1)] == [
        "0%", "0.0001%", "12.3%", "more than 99.9%", "100%",
    ]  # fmt: skip


def test_census(paper_data: Path) -> None:
    census = pl.read_csv(paper_data / "census.csv").select("AGI", "FEDTAX", "FICA", "ERNVAL")
    plan = Plan.published(
        epsilon=1.0,
        attributes={
            "AGI": "confidential", "FEDTAX": "confidential", "FICA": "confidential",
            "ERNVAL": "kept",
        },
    )  # fmt: skip
    evaluation = evaluate(census, protect(census, plan, seed=1), target=census["ERNVAL"] > 30_000)
    chance = 1 / 1080
    assert evaluation.value("linkage.nearest") > 10 * chance
    assert evaluation.value("learning.f_measure_original", "class = True") > 0.8
    assert not [m for m in evaluation.not_computed if "quasi" not in m.reason]
