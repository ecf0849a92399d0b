"""Strata: clusters and joint clusters never have records of two of them."""

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microveil import Confidential, DataError, Plan, PlanError, evaluate, protect
from microveil.attacks.known import proved
from microveil.core.choices import GuaranteeName, MethodName, Partition
from microveil.errors import noted
from microveil.measures.expected_error import expected_error
from microveil.plan.scenarios import Scenario
from microveil.show.words.certificate_words import level_statement
from microveil.show.words.readings import reading
from tests.release.brute import centroids_of

RANDOM = np.random.default_rng(6)
SIDE = RANDOM.integers(0, 3, 120)
TABLE = pl.DataFrame({
    "side": pl.Series(SIDE).replace_strict([0, 1, 2], ["north", "south", None]),
    "x": 3 * RANDOM.integers(0, 60, 120) + SIDE,  # which tells the stratum
    "y": RANDOM.integers(0, 60, 120),
    "kind": pl.Series(RANDOM.integers(0, 4, 120)).replace_strict(range(4), list("abcd")),
})  # fmt: skip
ROLES = {
    "side": "kept", "x": Confidential(lower=0, upper=200), "y": Confidential(lower=0, upper=60),
    "kind": Confidential(kind="nominal", categories=list("abcd"), method="DP-UM"),
}  # fmt: skip
PLAN = Plan.published(epsilon=3, k=4, within=["side"], attributes=ROLES)


@pytest.mark.parametrize("partition", ["fixed", "noise-optimal", "least-squares"])
def test_clusters_never_cross_a_stratum(partition: Partition) -> None:
    clusters = protect(TABLE, PLAN.replace(partition=partition), seed=1).detail.clusters
    of_x = clusters.filter(pl.col("attribute") == "x").select("smallest", "largest", "records")
    sides = [{int(end) % 3 for end in row[:2]} for row in of_x.iter_rows()]
    assert all(len(side) == 1 for side in sides)
    assert of_x["records"].min() >= 4
    sizes = sorted(np.bincount(SIDE).tolist())
    found = [
        sum(r for r, s in zip(of_x["records"], sides, strict=True) if n in s) for n in range(3)
    ]
    assert sorted(found) == sizes


def test_values_rise_with_their_originals_within_a_stratum_only() -> None:
    plan = PLAN.replace(partition="noise-optimal", post="penalised-isotonic", epsilon=0.3)
    release = protect(TABLE, plan, seed=1, keep_order=True)
    both = TABLE.select("x", side=pl.Series(SIDE)).with_columns(masked=release.data["x"]).sort("x")
    for side in range(3):
        assert both.filter(pl.col("side") == side)["masked"].is_sorted()
    assert not both["masked"].is_sorted()


@pytest.mark.parametrize("pooling", ["exchange", "average"])
def test_joint_clusters_never_cross_a_stratum(pooling: Any) -> None:  # noqa: ANN401
    release = protect(TABLE, PLAN.replace(anonymity=5, pooling=pooling), seed=1)
    (label,) = release.detail.joint.values()
    members = pl.DataFrame({"joint": label, "side": SIDE}).group_by("joint")
    found = members.agg(pl.len(), pl.col("side").n_unique())
    assert (found["side"].max(), found["len"].min()) == (1, 5)
    assert not release.certificate.levels[2].has("kept-can-identify")


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5)), min_size=8, max_size=12),
    st.sampled_from(["DP-UM", "iDP-LS", "iDP-CBLS"]),
)
@settings(max_examples=30, deadline=None)
def test_the_guarantee_over_all_neighbours_that_agree_on_strata(
    rows: list[tuple[int, int]], method: MethodName
) -> None:
    """Brute force: one record takes any other value, and clusters are formed again."""
    strata = sorted({stratum for stratum, _ in rows})
    sizes = [sum(stratum == own for own, _ in rows) for stratum in strata]
    if min(sizes) < 3:
        return
    table = pl.DataFrame(rows, schema=["side", "x"], orient="row")
    plan = Plan.published(
        epsilon=1, k=3, method=method, guarantee="re-clustered", within=["side"],
        attributes={"side": "kept", "x": Confidential(lower=0, upper=5)},
    )  # fmt: skip
    detail = protect(table, plan, seed=1).detail

    def centroids(rows: list[tuple[int, int]]) -> list[float]:
        values = [[value for own, value in rows if own == stratum] for stratum in strata]
        return [mean for one in values for mean in centroids_of(one, 3, method)]

    here, scales = np.array(centroids(rows)), detail.clusters["scale"].to_numpy()
    assert detail.clusters["centroid"].to_numpy() == pytest.approx(here, abs=1e-9)
    worst = 0.0
    for record, new in product(range(len(rows)), range(6)):
        other = [*rows[:record], (rows[record][0], new), *rows[record + 1 :]]
        moves = np.abs(here - centroids(other))
        unmasked = np.where(moves > 1e-9, np.inf, 0.0)
        loss = np.divide(moves, scales, out=unmasked, where=scales > 0).sum()
        worst = max(worst, float(loss))
    assert worst <= 1 + 1e-9
    if method != "iDP-CBLS":  # whose records may move beyond the domain
        assert detail.losses["re_clustered"].item() == pytest.approx(worst, abs=1e-6)


@pytest.mark.parametrize("guarantee", ["fixed-clusters", "re-clustered"])
def test_every_stratum_is_masked_as_a_table_of_its_own(guarantee: GuaranteeName) -> None:
    """Scales and losses are those of each stratum protected by itself, and no sums of them."""
    whole = protect(TABLE, PLAN.replace(guarantee=guarantee), seed=1).detail
    alone = []
    for _, part in TABLE.group_by("side"):
        plan = Plan.published(**{**PLAN.given(), "within": (), "guarantee": guarantee})
        alone.append(protect(part, plan, seed=1).detail)
    for name in ("x", "y", "kind"):
        chosen = pl.col("attribute") == name
        of_whole = whole.clusters.filter(chosen).select("records", "sensitivity", "scale")
        of_parts = pl.concat([d.clusters for d in alone]).filter(chosen).select(of_whole.columns)
        assert of_whole.sort(pl.all()).equals(of_parts.sort(pl.all()))
        again = pl.concat([d.losses for d in alone]).filter(chosen)["re_clustered"].max()
        assert whole.losses.filter(chosen)["re_clustered"].item() == again


def test_missing_values_and_strata_without_any() -> None:
    x = pl.when(pl.col("side") == "north").then(None).otherwise("x").alias("x")
    release = protect(
        TABLE.with_columns(x), PLAN.replace(missing="keep", anonymity=5), seed=1, keep_order=True
    )
    by_side = release.data.group_by("side").agg(pl.col("x").null_count(), pl.len())
    assert by_side.filter(pl.col("x") > 0).select(pl.col("x") == pl.col("len")).to_series().all()
    few = pl.when((pl.col("side") == "north") & (pl.col("x") > 9)).then(None).otherwise("x")
    with pytest.raises(DataError, match=r"found 1 of 3 strata with fewer than k = 4 records with "
                       r"a value; every stratum needs 4 or more") as raised:  # fmt: skip
        protect(TABLE.with_columns(few.alias("x")), PLAN.replace(missing="keep"))
    assert (raised.value.attribute, raised.value.setting) == ("x", "within")
    assert "north" not in str(raised.value)


def test_strata_smaller_than_anonymity() -> None:
    with pytest.raises(DataError, match=r"found \d of 3 strata with fewer than anonymity = 45"):
        protect(TABLE, PLAN.replace(anonymity=45))


@pytest.mark.parametrize(
    ("within", "said"),
    [
        (["sides"], "within: no attribute 'sides'; did you mean 'side'"),
        (["x"], "within 'x' must have role kept, sampling_weight or identifier"),
        (["side", "side"], "within 'side' is named twice"),
    ],
)
def test_a_plan_whose_strata_cannot_be_kept(within: list[str], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        PLAN.replace(within=within)


def test_units_have_one_stratum_each() -> None:
    table = TABLE.with_columns(home=pl.int_range(pl.len()) // 2, income=5)
    income = Confidential(per_unit=True, lower=0, upper=9)
    plan = PLAN.replace(
        unit="home", records_per_person=2, method="DP-UM",
        attributes={**ROLES, "home": "identifier", "income": income},
    )  # fmt: skip
    with pytest.raises(DataError, match=r"\d+ units have records in several strata"):
        protect(table, plan)
    split = plan.replace(attributes={**plan.attributes, "income": "identifier"})
    protect(table, split, seed=1)  # visits of a patient may be in several years


def test_k_is_chosen_that_every_stratum_has_records_for() -> None:
    numbers = {**ROLES, "kind": "identifier"}
    with noted():
        release = protect(
            TABLE,
            PLAN.replace(k="auto", post="penalised-isotonic", epsilon=0.01, attributes=numbers),
            seed=1,
        )
        assert all((a.k or 0) <= 20 for a in release.certificate.attributes)
        assert expected_error(TABLE, PLAN.replace(attributes=numbers)).mean_sse > 0


def test_the_certificate_says_who_the_neighbours_are() -> None:
    certificate = protect(TABLE, PLAN, seed=1).certificate
    assert certificate.within == ("side",)
    for level in certificate.levels[:2]:
        assert level.about("same-strata") == ("side",)
        assert "provided that every record stays in its stratum (side)" in (
            level_statement(certificate, level)
        )
    dropped = PLAN.replace(attributes={**ROLES, "side": "identifier"})
    said = protect(TABLE, dropped, seed=1).certificate.reading["What is not protected"]
    assert any("belong to one stratum: side" in item for item in said)


def test_who_knows_the_stratum_too_finds_no_more() -> None:
    plan = PLAN.replace(anonymity=5)
    known = Scenario(known=("x", "side"))
    assert (proved(plan, known), proved(plan.replace(within=[]), known)) == (5, None)


def test_totals_by_stratum_are_measured() -> None:
    release = protect(TABLE, PLAN.replace(epsilon=30), seed=1, keep_order=True)
    found = evaluate(TABLE, release).value("utility.stratum_totals", "y")
    sums = [
        frame.group_by(pl.Series(SIDE).alias("s")).agg(pl.col("y").sum()).sort("s")["y"].to_numpy()
        for frame in (TABLE, release.data)
    ]
    assert found == pytest.approx(np.abs(sums[1] - sums[0]).sum() / sums[0].sum())
    assert found < 0.05


def test_totals_by_stratum_are_weighted_by_the_sampling_weight() -> None:
    weight = pl.Series(RANDOM.integers(1, 9, len(TABLE)).astype(float))
    table = TABLE.with_columns(weight=weight)
    plan = PLAN.replace(attributes={**ROLES, "weight": "sampling_weight"}, epsilon=0.5)
    with noted():
        release = protect(table, plan, seed=1, keep_order=True)
        figures = evaluate(table, release).figures
    [found] = [f for f in figures if (f.measure, f.attribute) == ("utility.stratum_totals", "y")]
    positions = np.asarray(release.detail.positions)
    was = table.with_columns(masked=release.data["y"][np.argsort(positions)])
    totals = was.group_by("side").agg(
        (pl.col(name) * pl.col("weight")).sum().alias(name) for name in ("y", "masked")
    )
    before, after = (totals[name].to_numpy() for name in ("y", "masked"))
    moved = np.abs(after - before).sum() / before.sum()
    assert found.value == pytest.approx(moved)
    assert found.weighted
    assert reading(found).startswith("weighted totals of 3 strata")
