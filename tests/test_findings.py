"""The findings say what the results say, and the results show what they claim."""

import json

import polars as pl
import pytest

from bench.findings import LINKAGES, pages
from bench.map import FINDINGS
from microveil.attacks.attack_rows import INFORMED
from microveil.lab.benchmark.map_points import by_attack, points_of_map
from microveil.lab.benchmark.peers import PromiseKind

RESULTS = pl.read_parquet(FINDINGS / "results.parquet")
AUDITS = json.loads((FINDINGS / "theorems.json").read_text(encoding="utf-8"))["audits"]
DATA = ("Census", "Wine Quality")


def test_the_pages_are_what_the_results_say() -> None:
    for path, text in pages().items():
        assert path.read_text(encoding="utf-8") == text, "write it again: python -m bench.findings"


@pytest.mark.parametrize("name", DATA)
def test_the_map_is_complete(name: str) -> None:
    results = RESULTS.filter(data=name)
    with_epsilon = results.filter(pl.col("epsilon").is_not_null())
    cells = with_epsilon.group_by("method", "epsilon").agg(pl.col("attack").n_unique())
    assert cells["attack"].min() >= 6  # type: ignore[operator]
    assert cells.group_by("method").len().filter(pl.col("len") >= 3).height >= 12
    assert results["auc_boosting"].null_count() == 0
    assert set(results["promise"]) <= set(PromiseKind)
    assert (FINDINGS / f"map-{name.lower().replace(' ', '-')}.svg").is_file()


@pytest.mark.parametrize("name", DATA)
def test_no_method_is_shown_better_than_the_attacks_allow(name: str) -> None:
    results = RESULTS.filter(data=name)
    shown = {(row["method"], row["epsilon"]): row for row in points_of_map(results).to_dicts()}
    for row in results.to_dicts():
        point = shown[row["method"], row["epsilon"]]
        at_most = point["informed_high"] if row["attack"] == INFORMED else point["high"]
        assert at_most >= row["high"] >= row["risk"]


def test_published_noise_loses_more_than_five_times_epsilon_when_clusters_are_formed_again() -> (
    None
):
    published = AUDITS["published"]
    assert published["reclustered_found"] > 5 * published["epsilon"]
    assert published["fixed_found"] < published["epsilon"]


def test_calibrated_noise_does_not_with_scales_fixed_but_recomputed_scales_tell() -> None:
    calibrated = AUDITS["calibrated"]
    assert calibrated["reclustered_found"] <= calibrated["reclustered_exact"] <= 1.0
    assert calibrated["told_apart"] > calibrated["allowed"]
    plain = AUDITS["differential privacy"]
    assert plain["told_apart"] < plain["allowed"]
    assert not any(audit["broken"] for audit in AUDITS.values())


def test_structure_links_at_any_epsilon_and_pooling_bounds_it() -> None:
    attacks = RESULTS.filter(pl.col("attack").is_in(LINKAGES))
    by_structure = attacks.filter(attack="structure linkage")
    for name in DATA:
        published = by_structure.filter(method="iDP-CBLS, k = 10", data=name)
        [original] = by_structure.filter(method="original", data=name)["rate"]
        assert published.height >= 3
        assert published["rate"].min() > 0.99 * original
    for k in (5, 10, 25):
        pooled = attacks.filter(pl.col("method").is_in([f"exchange {k}", f"average {k}"]))
        assert pooled.height >= 2 * 3 * 3 * 2
        assert pooled["low"].max() <= 1 / k  # type: ignore[operator]


def test_differential_privacy_of_the_table_keeps_its_bound() -> None:
    plain = by_attack(RESULTS).filter(method="DP", epsilon=1.0, attack=INFORMED)
    assert plain["low"].max() <= 2 * (0.7311 - 0.5)  # type: ignore[operator]
