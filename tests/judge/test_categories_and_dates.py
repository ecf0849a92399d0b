"""Evaluating tables that mix numbers, categories, dates and times."""

import io
import json
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from scipy.stats.contingency import association, crosstab
from sklearn.metrics import f1_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder

from microveil import Confidential, DataError, Evaluation, Group, Plan, Release, evaluate, protect
from microveil.compare.reasons import why_not
from microveil.judge.registry import MEASURES
from microveil.measures.distances import propensity
from microveil.measures.learning import F_MEASURES
from microveil.measures.use_figures import USES
from microveil.show.words.grading import notes_on
from microveil.show.words.readings import reading
from microveil.types import Reals

RECORDS = 150
SCHOOL = ("none", "basic", "upper", "degree")
JOBS = {"health": ["nurse", "doctor"], "craft": ["smith", "joiner"]}
LEAVES = ("nurse", "doctor", "smith", "joiner")


def _people() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    age = rng.integers(18, 80, RECORDS)
    school = np.clip(age // 20 + rng.integers(-1, 2, RECORDS) - 1, 0, 3)
    return pl.DataFrame(
        {
            "name": [f"n{i}" for i in range(RECORDS)],
            "age": age,
            "school": np.array(SCHOOL)[school],
            "job": np.array(LEAVES)[rng.integers(0, 4, RECORDS)],
            "smokes": rng.random(RECORDS) < 0.3,
            "code": rng.integers(1, 4, RECORDS),
            "born": [date(2020, 1, 1) - timedelta(days=int(a) * 365) for a in age],
            "old": np.where(age > 50, "yes", "no"),
        }
    )


PEOPLE = _people()
ATTRIBUTES: dict[str, Any] = {
    "name": "identifier",
    "age": Confidential(lower=0, upper=120),
    "school": Confidential(kind="ordinal", categories=SCHOOL),
    "job": Confidential(kind="nominal", taxonomy=JOBS, method="DP"),
    "smokes": Confidential(kind="nominal"),
    "code": Confidential(kind="nominal", categories=[1, 2, 3, 9], method="DP"),
    "born": Confidential(lower=date(1930, 1, 1), upper=date(2020, 1, 1)),
    "old": "kept",
}
PLAN = Plan.published(epsilon=6.0, k=5, attributes=ATTRIBUTES)
JOINT = Plan.published(
    epsilon=6.0,
    k=5,
    anonymity=5,
    pooling="average",
    groups=[["age", "school"], ["job", "smokes"], Group(attributes=["code", "born"], anonymity=0)],
    rules=["age >= 1"],
    attributes={**ATTRIBUTES, "job": Confidential(kind="nominal", taxonomy=JOBS)},
)
CATEGORICAL = ("school", "job", "smokes", "code")

pytestmark = pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")


@pytest.fixture(scope="module")
def release() -> Release:
    return protect(PEOPLE, PLAN, seed=1, keep_order=True)


@pytest.fixture(scope="module")
def evaluation(release: Release) -> Evaluation:
    return evaluate(PEOPLE, release, target="old", estimator=KNeighborsClassifier())


Reasons = dict[tuple[str, str | None], str]


def _reasons(evaluation: Evaluation) -> Reasons:
    """By measure, or "every", and attribute why there is no figure."""
    return {
        (measure, missing.attribute): why_not(missing)
        for missing in evaluation.not_computed
        for measure in missing.measures or ("every",)
    }


def _encoded(table: pl.DataFrame) -> Reals:
    """Encode a table as a user of scikit-learn would."""
    nominal = ["job", "smokes", "code"]
    as_text = pl.col(nominal).cast(pl.String)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder.fit(PEOPLE.select(as_text).to_numpy())
    rank = table["school"].replace_strict(SCHOOL, range(4)).to_numpy()
    numbers = table.select("age", pl.col("born").to_physical()).to_numpy()
    return np.column_stack([numbers, rank, encoder.transform(table.select(as_text).to_numpy())])


def test_a_mixed_release_has_every_measure(release: Release, evaluation: Evaluation) -> None:
    pooled = protect(PEOPLE, JOINT, seed=1)
    joint = evaluate(PEOPLE, pooled, target="old", quasi_identifiers="old")
    of_units = {"utility.unit_consistency", "utility.stratum_totals", "risk.linkage_of_units"}
    with_control = {id_ for id_, row in MEASURES.items() if "control" in row.needs}
    of_exchange = {"linkage.informed", "linkage.own_values"}
    left_out = of_units | with_control | of_exchange | {*USES}
    assert {f.measure for f in joint.figures} == set(MEASURES) - left_out
    assert evaluation.attributes == tuple(PLAN.confidential)
    for name in CATEGORICAL:
        shared = (PEOPLE[name] == release.data[name]).mean()
        assert evaluation.value("utility.unchanged", name) == pytest.approx(shared)
    shares = [t["job"].value_counts(normalize=True) for t in (PEOPLE, release.data)]
    moved = shares[0].join(shares[1], on="job", how="full", coalesce=True).fill_null(0)
    by_hand = (moved["proportion"] - moved["proportion_right"]).abs().sum() / 2
    assert evaluation.value("utility.total_variation", "job") == pytest.approx(by_hand)


def test_associations_are_those_of_scipy(release: Release, evaluation: Evaluation) -> None:
    of_masked, of_original = (
        association(crosstab(t["school"].to_numpy(), t["job"].to_numpy()).count, method="cramer")
        for t in (release.data, PEOPLE)
    )
    measured = evaluation.value("utility.cramers_v", "school × job")
    assert measured == pytest.approx(of_masked - of_original)
    pairs = [f for f in evaluation.figures if f.measure == "utility.cramers_v"]
    assert len(pairs) == 6


def test_pmse_takes_ranks_and_a_column_for_each_category_of_the_original(
    release: Release, evaluation: Evaluation
) -> None:
    assert 9 in release.data["code"].to_list()  # which the original does not have
    expected = propensity(_encoded(PEOPLE), _encoded(release.data))
    assert evaluation.value("utility.pmse") == pytest.approx(expected.pmse)
    assert evaluation.value("utility.pmse_ratio") == pytest.approx(expected.ratio)


def test_pmse_of_one_nominal_attribute_by_hand() -> None:
    """The model is saturated: its score is the share of masked records within each category."""
    original = pl.DataFrame({"x": ["a"] * 5 + ["b"] * 3 + ["c"] * 2})
    masked = pl.DataFrame({"x": ["a"] * 8 + ["b"] * 2})
    by_hand = (13 * (8 / 13 - 0.5) ** 2 + 5 * (2 / 5 - 0.5) ** 2 + 2 * 0.25) / 20
    evaluation = evaluate(original, masked, attributes="x")
    assert evaluation.value("utility.pmse") == pytest.approx(by_hand, abs=1e-6)
    expected = 2 * 0.5**3 / 20  # two parameters beside the intercept
    assert evaluation.value("utility.pmse_ratio") == pytest.approx(by_hand / expected, abs=1e-3)


def test_learning_takes_the_same_columns(release: Release, evaluation: Evaluation) -> None:
    original, masked = _encoded(PEOPLE), _encoded(release.data)
    labels, first = PEOPLE["old"].to_numpy(), int(RECORDS * 0.66)
    for table, measure in zip((masked, original), F_MEASURES, strict=True):
        model = KNeighborsClassifier().fit(table[:first], labels[:first])
        score = f1_score(labels[first:], model.predict(original[first:]), pos_label="yes")
        measured = evaluation.value(measure, "old = yes")
        assert measured == pytest.approx(score)
    with pytest.raises(DataError, match="target 'school': a class must not be one of the masked"):
        evaluate(PEOPLE, release, target="school")


def test_numbers_alone_make_the_figures_of_error(evaluation: Evaluation, release: Release) -> None:
    numbers = evaluate(PEOPLE, release, attributes=["age", "born"])
    for measure in ("utility.mean_sse", "utility.il1s"):
        assert evaluation.value(measure) == numbers.value(measure)
    of_numbers = ("utility.sse_sst", "risk.rank_disclosure", "risk.width_median")
    for measure in of_numbers:
        assert [f.attribute for f in evaluation.figures if f.measure == measure] == ["age", "born"]
    assert "risk.width_median" in {f.measure for f in numbers.figures}
    assert not any(measure.startswith("risk.width") for measure, _ in _reasons(evaluation))


def _brute_force_linkage(original: pl.DataFrame, masked: pl.DataFrame) -> float:
    """Link by squared distances, attribute by attribute, as they are documented."""

    def numbers(column: str) -> Reals:
        x, y = (t[column].to_physical().to_numpy().astype(float) for t in (original, masked))
        squares: Reals = ((x[:, None] - y[None, :]) / x.std(ddof=1)) ** 2
        return squares

    def rank(table: pl.DataFrame) -> pl.DataFrame:
        return table.with_columns(rank=table["school"].replace_strict(SCHOOL, range(4)))

    def differ(column: str) -> Reals:
        x, y = original[column].to_numpy(), masked[column].to_numpy()
        unlike: Reals = np.not_equal.outer(x, y).astype(float)
        return unlike

    original, masked = rank(original), rank(masked)
    squares = numbers("age") + numbers("born") + numbers("rank")
    squares += differ("smokes") + differ("code") + differ("job")
    nearest = squares <= squares.min(axis=1, keepdims=True) * (1 + 1e-9)
    return float(np.mean(np.diag(nearest) / nearest.sum(axis=1)))


def test_linkage_is_by_documented_distances(release: Release, evaluation: Evaluation) -> None:
    by_hand = _brute_force_linkage(PEOPLE, release.data)
    assert 0 < by_hand < 1
    assert evaluation.value("linkage.nearest") == pytest.approx(by_hand)


def test_linkage_of_nominal_attributes_alone() -> None:
    original = pl.DataFrame({"x": ["a", "a", "b", "c"], "y": [True, True, False, False]})
    masked = pl.DataFrame({"x": ["a", "b", "b", "d"], "y": [True, True, False, True]})
    # At squared distances 0 1 2 1, 0 1 2 1, 2 1 0 2 and 2 2 1 2: linked are the first and third.
    evaluation = evaluate(original, masked, aligned=True)
    assert evaluation.value("linkage.nearest") == pytest.approx(2 / 4)
    reasons = _reasons(evaluation)
    for measure in ("utility.mean_sse", "utility.il1s", "risk.rank_disclosure"):
        assert reasons[measure, None] == "no attribute holds numbers"
    assert ("utility.pearson", None) not in reasons


def test_categories_of_clusters(release: Release, evaluation: Evaluation) -> None:
    clusters = release.detail.clusters.filter(attribute="school")
    as_is = clusters.filter(sensitivity=0)["records"].sum() / RECORDS
    assert 0 < as_is < 1
    measured = evaluation.value("risk.clusters_without_noise", "school")
    assert measured == pytest.approx(as_is)
    without = ("risk.clusters_without_noise", "job")
    assert _reasons(evaluation)[without] == "it was masked without clusters"


def test_joint_groups_are_counted() -> None:
    release = protect(PEOPLE, JOINT, seed=1, keep_order=True)
    evaluation = evaluate(PEOPLE, release)
    for group in (("age", "school"), ("job", "smokes")):
        smallest = release.data.group_by(group).len()["len"].min()
        names = ", ".join(group)
        assert evaluation.value("risk.smallest_joint_class", names) == smallest
        (said,) = (
            reading(f)
            for f in evaluation.figures
            if (f.measure, f.attribute) == ("risk.smallest_joint_class", names)
        )
        assert said == (
            f"every combination of averaged {names} is shared by at least {smallest} of 150 "
            "released rows, at any ε; the plan asks for 5"
        )
    detail = replace(release.detail, plan=JOINT)
    part = evaluate(PEOPLE, release.data.drop("smokes"), detail=detail, attributes="age")
    reason = _reasons(part)["risk.smallest_joint_class", "job, smokes"]
    assert reason == "not all of its columns are in the release"
    kept = {**JOINT.attributes, "code": "kept"}
    everything = PLAN.replace(anonymity=5, pooling="average", attributes=kept)
    whole = evaluate(PEOPLE, protect(PEOPLE, everything, seed=1, keep_order=True))
    assert whole.value("risk.smallest_joint_class", "age, school, job, smokes, born") >= 5


def test_missing_categories_are_left_out() -> None:
    original = pl.DataFrame(
        {"x": ["a", None, "b", "b", "a"], "y": ["u", "u", "v", "v", "v"], "z": [1, 2, 3, 4, 5]}
    )
    masked = original.with_columns(x=pl.Series(["a", "b", "b", "a", None]))
    evaluation = evaluate(original, masked, aligned=True, attributes=["x", "y", "z"])
    assert evaluation.value("utility.unchanged", "x") == pytest.approx(2 / 3)
    assert evaluation.value("utility.total_variation", "x") == 0
    complete = original.drop_nulls()
    of_original = association(crosstab(complete["x"], complete["y"]).count, method="cramer")
    complete = masked.drop_nulls()
    of_masked = association(crosstab(complete["x"], complete["y"]).count, method="cramer")
    measured = evaluation.value("utility.cramers_v", "x × y")
    assert measured == pytest.approx(of_masked - of_original)
    # A value that only one of two records has is as far apart as another category. Records 3 and 4
    # are nearer to the masked records 2 and 3, 1/s away, than to their own.
    assert evaluation.value("linkage.nearest") == pytest.approx(3 / 5)
    assert notes_on(evaluation)[0].startswith("1 records of the original have missing values")


def test_categories_without_anything_to_compare() -> None:
    original = pl.DataFrame({"a": ["u", "v", None, None], "b": [None, None, "u", "v"],
                             "c": [None] * 4, "d": ["u"] * 4})  # fmt: skip
    masked = original.with_columns(a=pl.Series([None, None, "u", "v"]))
    reasons = _reasons(evaluate(original, masked, aligned=True, attributes=["a", "b", "c", "d"]))
    assert reasons["utility.unchanged", "a"] == "no record has it in both tables"
    assert reasons["every", "c"] == "every value is missing in the original"
    assert "fewer than two categories" in reasons["utility.cramers_v", "d"]
    assert reasons["utility.cramers_v", None].startswith(
        "associations need at least two attributes"
    )
    assert ("linkage.nearest", None) not in reasons  # missing values are values like others


def test_without_a_plan_columns_like_names_are_left_out(release: Release) -> None:
    table = PEOPLE.with_columns(
        many=pl.Series([f"m{i % 120}" for i in range(RECORDS)]),
        few=pl.Series([f"m{i % 100}" for i in range(RECORDS)]),
        parts=pl.Series([[1, 2]] * RECORDS),
    )
    evaluation = evaluate(table, table, aligned=True)
    assert evaluation.attributes == (
        "age", "school", "job", "smokes", "code", "born", "old", "few",
    )  # fmt: skip
    reasons = _reasons(evaluation)
    advice = "if they are categories, name it in attributes"
    assert reasons["every", "name"].startswith("it has 150 different values, more than")
    assert reasons["every", "many"].endswith(f"more than 100; {advice}")
    assert reasons["every", "parts"] == "it holds neither numbers nor categories"
    named = evaluate(table, table, aligned=True, attributes="many")
    assert named.value("utility.unchanged", "many") == 1
    unlike = evaluate(table[:20], table[:20])
    reason = _reasons(unlike)["every", "name"]
    assert reason == f"every value in the original is different; {advice}"
    # Integer codes are numbers unless a plan says otherwise.
    assert evaluation.value("utility.sse_sst", "code") == 0
    assert evaluate(PEOPLE, release.data, aligned=True).value("utility.unchanged", "old") == 1


UNDATED = PLAN.replace(attributes={**PLAN.attributes, "born": "identifier"})


@pytest.mark.parametrize("kind", ["Enum", "pandas", "pandas with NA", "pyarrow"])
def test_tables_of_every_kind(kind: str) -> None:
    listed = PEOPLE.with_columns(
        pl.col("school").cast(pl.Enum(SCHOOL)), pl.col("job").cast(pl.Categorical)
    )
    tables: dict[str, Any] = {
        "Enum": listed,
        "pandas": listed.to_pandas(),
        "pandas with NA": PEOPLE.to_pandas().convert_dtypes(),
        "pyarrow": listed.to_arrow(),
    }
    found, expected = (
        evaluate(table, protect(table, UNDATED, seed=1), target="old", seed=1)
        for table in (tables[kind], PEOPLE)
    )
    assert found == expected


def test_codes_and_truth_values_with_gaps_in_pandas() -> None:
    people = PEOPLE.with_columns(
        code=pl.when(pl.int_range(RECORDS) % 7 > 0).then("code"),
        smokes=pl.when(pl.int_range(RECORDS) % 9 > 0).then("smokes"),
    )
    table = people.to_pandas()
    assert (str(table["code"].dtype), str(table["smokes"].dtype)) == ("float64", "object")
    plan = UNDATED.replace(missing="keep")
    found, expected = (evaluate(t, protect(t, plan, seed=1)) for t in (table, people))
    assert found == expected


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_say_the_same(
    release: Release, evaluation: Evaluation, tmp_path: Path, ending: str
) -> None:
    """Also where a CSV file holds dates as text."""
    PEOPLE.write_parquet(tmp_path / "original.parquet")
    written = release.write(tmp_path / f"protected.{ending}", detail=True)
    found = evaluate(
        tmp_path / "original.parquet",
        written.protected,
        detail=written.detail,
        target="old",
        estimator=KNeighborsClassifier(),
    )
    expected = evaluation.to_frame()
    assert found.to_frame().equals(expected)


def test_text_that_a_csv_file_shows_otherwise(tmp_path: Path) -> None:
    """Truth values written by pandas, and numbers that are text."""
    people = pl.DataFrame({"x": [True, False] * 10, "y": ["1.0", "2.50"] * 10}).to_pandas()
    categories = {
        "x": Confidential(kind="nominal"),
        "y": Confidential(kind="nominal", categories=["1.0", "2.50"]),
    }
    plan = Plan.published(epsilon=5.0, k=3, attributes=categories)
    release = protect(people, plan, seed=1)
    people.to_csv(tmp_path / "original.csv", index=False)
    written = release.write(tmp_path / "protected.csv", detail=True)
    assert "True" in written.protected.read_text()
    expected = evaluate(people, release).to_frame()
    from_files = evaluate(
        tmp_path / "original.csv", written.protected, detail=written.detail
    )  # fmt: skip
    assert from_files.to_frame().equals(expected)
    mixed = evaluate(people, written.protected, detail=written.detail)
    assert mixed.to_frame().equals(expected)


def test_dates_and_times_are_numbers_with_a_unit() -> None:
    days = pl.Series([0, 1, 2, 3, 14])
    masked = pl.Series([1, 1, 2, 3, 18])
    as_dates = [pl.DataFrame({"x": s.cast(pl.Int32).cast(pl.Date)}) for s in (days, masked)]
    as_numbers = [pl.DataFrame({"x": s}) for s in (days, masked)]
    dates, numbers = (evaluate(*t, aligned=True) for t in (as_dates, as_numbers))
    of_numbers = numbers.to_frame().filter(pl.col("measure") != "utility.totals")
    assert dates.to_frame().equals(of_numbers)
    readings = {f.measure: reading(f) for f in dates.figures}
    # The standard deviation is sqrt(130/4) days and the mean rises by 1 day.
    assert readings["utility.means"].endswith("0.175 standard deviations (1 day)")
    zoned = [
        t.select(x=pl.col("x").cast(pl.Datetime("ms")).dt.replace_time_zone("Europe/Madrid"))
        for t in as_dates
    ]
    times = evaluate(*zoned, aligned=True)
    expected = dates.value("utility.means", "x")
    assert times.value("utility.means", "x") == pytest.approx(expected)
    clock = [t.select(x=pl.col("x").cast(pl.Int64).mul(1_000_000_000).cast(pl.Time)) for t in
             as_numbers]  # fmt: skip
    seconds = {f.measure: reading(f) for f in evaluate(*clock, aligned=True).figures}
    assert seconds["utility.means"].endswith("(1 second)")


def test_dates_as_text_are_read_like_those_of_the_other_table() -> None:
    moment = [datetime(2020, 1, 1, 3, 4, 5) + timedelta(hours=i) for i in range(12)]
    original = pl.DataFrame({"x": moment}).with_columns(
        y=pl.col("x").dt.date(), z=pl.col("x").dt.time(), u=pl.col("x").dt.replace_time_zone("UTC")
    )
    masked = pl.read_csv(io.StringIO(original.write_csv()), infer_schema=False)
    evaluation = evaluate(original, masked, aligned=True, attributes=["x", "z", "u"])
    assert evaluation.value("utility.mean_sse") == 0
    unreadable = masked.with_columns(x=pl.lit("soon"))
    with pytest.raises(DataError, match=r"'x': expected numbers .* found String in the release"):
        evaluate(original, unreadable, aligned=True)
    with pytest.raises(DataError, match=r"'y': expected the same .* Date and Time"):
        evaluate(original, original.with_columns(y="z"), attributes="y")


def test_times_that_are_all_midnight_may_be_dates() -> None:
    """Pandas writes such times to CSV as dates."""
    days = pl.DataFrame({"x": [date(2020, 1, i) for i in (1, 2, 5)]})
    times = days.cast(pl.Datetime("ms"))
    assert evaluate(times, days, aligned=True).value("utility.mean_sse") == 0
    assert evaluate(times.to_pandas(), days, aligned=True).value("utility.mean_sse") == 0


def test_a_single_record_and_values_of_several_types() -> None:
    one = pl.DataFrame({"x": ["a"], "y": [1]})
    assert evaluate(one, one, aligned=True).value("utility.unchanged", "x") == 1
    table = PEOPLE.select("age", "job").to_pandas()
    table["mixed"] = [i if i % 2 else "odd" for i in range(RECORDS)]
    evaluation = evaluate(table, table, aligned=True)
    assert evaluation.attributes == ("age", "job")
    reason = _reasons(evaluation)["every", "mixed"]
    assert reason == "it holds neither numbers nor categories"
    plan = Plan.published(
        epsilon=1.0,
        attributes={"age": "kept", "job": "kept", "mixed": Confidential(kind="nominal")},
    )
    with pytest.raises(
        DataError, match="'mixed': categories must be text, whole numbers of 64 bits or true"
    ):
        protect(table, plan)


def test_bad_categories(release: Release) -> None:
    fractions = release.data.with_columns(code=pl.lit(0.5))
    with pytest.raises(DataError, match=r"'code': expected categories .* found Float64"):
        evaluate(PEOPLE, fractions, detail=replace(release.detail, plan=PLAN))


def test_no_value_is_shown(release: Release) -> None:
    """Neither categories nor dates, in any figure, reading, reason or note."""
    shown = json.dumps(evaluate(PEOPLE, release).to_dict(), ensure_ascii=False)
    shown = shown.replace('"weighted": false', "")
    for value in (*SCHOOL, *LEAVES, "false", "19"):
        assert f" {value}" not in shown
        assert f'"{value}"' not in shown


def test_the_terminal_shows_the_lowest_and_the_highest_share(evaluation: Evaluation) -> None:
    text = io.StringIO()
    Console(width=160, file=text).print(evaluation)
    shares = {name: evaluation.value("utility.unchanged", name) for name in CATEGORICAL}
    lowest, highest = min(shares, key=shares.__getitem__), max(shares, key=shares.__getitem__)
    assert f"{lowest} (lowest of 4)" in text.getvalue()
    assert f"{highest} (highest of 4)" in text.getvalue()
