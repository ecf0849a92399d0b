"""Every engine gives the same clusters, scales, losses, certificates and errors."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from microveil import Confidential, DataError, Derived, Plan, PlanError, PrivacyWarning
from microveil.core.choices import GuaranteeName, MethodName
from microveil.engines.spark import spark_engine
from microveil.engines.spark import spark_table as line
from microveil.release.ledger import declare
from tests.engines.parity.conftest import Outcome, RunOn, run_in_memory

RANDOM = np.random.default_rng(7)
DOMAIN = Confidential(lower=0, upper=1000)
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "engines.md"


def table_of(values: Any) -> pl.DataFrame:  # noqa: ANN401
    return pl.DataFrame({"x": values})


def by(method: MethodName, **settings: Any) -> Confidential:  # noqa: ANN401
    return Confidential(lower=0, upper=1000, method=method, **settings)


COLUMNS = {
    "ties": RANDOM.integers(0, 9, 209),  # and four records more than clusters of five
    "constant": [4] * 209,
    "unique": RANDOM.permutation(209) * 4,
    "skew": np.append(np.zeros(190), RANDOM.lognormal(3, 1, 19)).round(3),
    "nulls": [None if i % 3 == 0 else i for i in range(209)],
    "reals": RANDOM.uniform(0, 1000, 209),
}
CASES: dict[GuaranteeName, list[tuple[str, MethodName, float]]] = {
    "fixed-clusters": [
        *((name, "iDP-CBLS", 0.0) for name in COLUMNS),
        ("ties", "iDP-CBLS", 0.2), ("skew", "iDP-CBLS", 0.4), ("reals", "iDP-CBLS", 0.15),
        ("skew", "iDP-LS", 0.0), ("reals", "DP-UM", 0.0), ("reals", "DP", 0.0),
    ],
    "re-clustered": [
        ("ties", "iDP-CBLS", 0.0), ("reals", "iDP-CBLS", 0.2), ("nulls", "iDP-LS", 0.0),
        ("unique", "DP-UM", 0.0),
    ],
}  # fmt: skip


def assert_same(ours: Outcome, theirs: Outcome) -> None:
    assert_frame_equal(ours.clusters, theirs.clusters, rel_tol=1e-12, check_column_order=False)
    assert_frame_equal(ours.losses, theirs.losses, rel_tol=1e-9)
    assert ours.facts == theirs.facts


def test_every_engine_enters_a_release_into_the_ledger(run_on: RunOn, tmp_path: Path) -> None:
    path = tmp_path / "people.ledger.json"
    declare(path, 1.0)
    plan = Plan.published(epsilon=1, k=5, attributes={"x": DOMAIN}, ledger=path)
    certificate = run_on(table_of(range(20)), plan).certificate
    assert certificate.ledger is not None
    assert certificate.ledger.epsilon_after == 1.0
    with pytest.raises(PlanError, match="budget of 1: 0 after 1 release"):
        run_on(table_of(range(20)), plan)


def test_the_same_values_are_masked_after_coding(run_elsewhere: RunOn) -> None:
    reals = pl.Series(RANDOM.uniform(-400, 1400, 209).round(2))
    table = pl.DataFrame(
        {"x": reals, "job": ["nurse", "smith", "joiner", "nurse"] * 52 + ["smith"]}
    )
    job = Confidential(kind="nominal", taxonomy={"health": ["nurse"], "craft": ["smith", "joiner"]},
                       level=1, method="DP-UM")  # fmt: skip
    coded = Confidential(bottom=0, top=1000, round_to=2.5, method="DP-UM")
    plan = Plan.published(epsilon=1, k=5, attributes={"x": coded, "job": job})
    theirs = run_elsewhere(table, plan)
    assert_same(run_in_memory(table, plan), theirs)
    assert set(theirs.data["job"]) == {"health", "craft"}


@pytest.mark.parametrize("guarantee", CASES)
def test_the_same_summaries_centroids_scales_losses_and_certificate(
    guarantee: GuaranteeName, run_elsewhere: RunOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line, "VALUES_PER_TASK", 180)  # ranges of about sixty records
    cases = {
        f"{name} {method} {trim}": (name, method, trim) for name, method, trim in CASES[guarantee]
    }
    table = pl.DataFrame({case: COLUMNS[name] for case, (name, _, _) in cases.items()})
    plan = Plan.published(
        epsilon=0.7 * len(cases), k=5, guarantee=guarantee, missing="keep",
        attributes={case: by(method, trim=trim) for case, (_, method, trim) in cases.items()},
    )  # fmt: skip
    ours = run_elsewhere(table, plan)
    assert_same(ours, run_in_memory(table, plan))
    assert ours.data.schema == table.schema
    assert ours.data.null_count().equals(table.null_count())
    for case, (_, method, _) in cases.items():
        counts = ours.data[case].drop_nulls().value_counts()["count"]
        assert method == "DP" or min(counts) >= 5


def test_a_table_of_one_cluster(run_elsewhere: RunOn) -> None:
    table, plan = (
        table_of([5, 1, 3, 9, 8]),
        Plan.published(epsilon=0.7, k=5, attributes={"x": DOMAIN}),
    )
    ours = run_elsewhere(table, plan)
    assert_same(ours, run_in_memory(table, plan))
    assert ours.data["x"].n_unique() == 1


@pytest.mark.parametrize(("partitions", "values"), [(1, 40), (40, 9)])
def test_partitions_do_not_matter(
    partitions: int, values: int, run_on_spark: RunOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One partition in many ranges, and more than there are records, so that some are empty."""
    monkeypatch.setattr(line, "VALUES_PER_TASK", values)
    table = table_of(RANDOM.integers(0, 50, 31))
    plan = Plan.published(
        epsilon=1, k=4, method="iDP-LS", guarantee="re-clustered", attributes={"x": DOMAIN}
    )
    ours, theirs = run_on_spark(table, plan, partitions=partitions), run_in_memory(table, plan)
    assert_same(ours, theirs)


def test_records_keep_their_cluster(run_on: RunOn) -> None:
    """With unique values a record's cluster is its rank over k, and it has one masked value."""
    order = RANDOM.permutation(301)
    table = pl.DataFrame({"x": order * 3, "y": (order * 8) % 301, "who": order})
    plan = Plan.published(
        epsilon=1e6, k=4, method="DP-UM",
        attributes={"x": DOMAIN, "y": DOMAIN, "who": "kept"},
    )  # fmt: skip
    data = run_on(table, plan).data.sort("who")
    rank = np.arange(301)
    for name, ranks in (("x", rank), ("y", (rank * 8) % 301)):
        cluster = np.minimum(ranks // 4, 74)
        values = ranks * 3 if name == "x" else ranks
        means = np.array([values[cluster == j].mean() for j in range(75)])
        assert np.abs(data[name].to_numpy() - means[cluster]).max() <= 1


VALUES = [7, 1, 20, 4, 5, 2, 11]
BY_HAND: dict[MethodName, tuple[list[float], list[float]]] = {
    # clusters {1, 2, 4} and {5, 7, 11, 20} in [0, 32], as in test_protect
    "DP-UM": ([7 / 3, 43 / 4], [32 / 3, 32 / 4]),
    "iDP-LS": ([7 / 3, 43 / 4], [31 / 3, 27 / 4]),
    "iDP-CBLS": ([6 / 3, 36 / 4], [6 / 3, 26 / 4]),
}


def test_methods_by_hand(run_on: RunOn) -> None:
    attributes: dict[str, Confidential] = {
        method: Confidential(lower=0, upper=32, method=method) for method in BY_HAND
    }
    plan = Plan.published(epsilon=6, k=3, records_per_person=1, attributes=attributes)  # 2 for each
    outcome = run_on(pl.DataFrame(dict.fromkeys(BY_HAND, VALUES)), plan)
    for method, (centroids, sensitivities) in BY_HAND.items():
        clusters = outcome.clusters.filter(attribute=method)
        assert clusters["centroid"].to_list() == pytest.approx(centroids)
        assert clusters["sensitivity"].to_list() == pytest.approx(sensitivities)
        assert clusters["scale"].to_list() == pytest.approx([s / 2 for s in sensitivities])
        assert clusters["smallest"].to_list() == [1, 5]
        assert clusters["largest"].to_list() == [4, 20]
        assert clusters["records"].to_list() == [3, 4]


def test_trimmed_clusters_by_hand(run_on: RunOn) -> None:
    """Clusters {1, 2, 4}, too small to trim, and {5, 7, 11, 20} without 5 and 20."""
    plan = Plan.published(
        epsilon=2, k=3, trim=0.25, attributes={"x": Confidential(lower=0, upper=32)}
    )
    clusters = run_on(table_of(VALUES), plan).clusters
    assert clusters["centroid"].to_list() == pytest.approx([2, 9])
    assert clusters["sensitivity"].to_list() == pytest.approx([6 / 3, 13 / 2])
    assert clusters["scale"].to_list() == pytest.approx([1, 13 / 4])
    assert clusters["left_out"].to_list() == [0, 1]


def test_noise_has_the_right_scale_and_no_other(run_on: RunOn) -> None:
    """Noise on clusters of equal values, far from the ends of the domain."""
    ends: dict[str, Any] = {"lower": -1000.0, "upper": 1000.0}
    methods: dict[MethodName, tuple[int, int]]
    methods = {"DP": (1, 2000), "DP-UM": (2, 2000), "iDP-LS": (1, 1000)}
    attributes: dict[str, Confidential] = {
        method: Confidential(method=method, k=None if method == "DP" else k, **ends)
        for method, (k, _) in methods.items()
    }
    plan = Plan.published(epsilon=300, attributes=attributes)  # 100 for each
    data = run_on(pl.DataFrame(dict.fromkeys(methods, [0.0] * 4000)), plan).data
    for method, (k, width) in methods.items():
        noise, scale = data[method].unique().to_numpy(), width / k / 100
        assert len(noise) == 4000 / k
        size = np.abs(noise)
        assert stats.binomtest(int((noise > 0).sum()), len(noise)).pvalue > 1e-5
        assert stats.kstest(size, stats.expon(scale=scale).cdf).pvalue > 1e-5
        assert stats.kstest(size, stats.expon(scale=scale * 1.3).cdf).pvalue < 1e-9
        assert stats.kstest(size, stats.expon(scale=scale * 0.7).cdf).pvalue < 1e-9


MIXED = pl.DataFrame(
    {
        "who": [f"p{i}" for i in range(40)],
        "a.b": pl.Series([i % 11 for i in range(40)], dtype=pl.Int8),
        "A.B": pl.Series([i % 7 * 1000 for i in range(40)], dtype=pl.Int64),
        "f": pl.Series([i / 8 for i in range(40)], dtype=pl.Float32),
        "sum of it": pl.Series([0.0] * 40, dtype=pl.Float64),
        "band": ["low"] * 40,
        "when": pl.Series([i * 86_400_000_000 for i in range(40)], dtype=pl.Datetime("us", "UTC")),
        "place": [["x"], None] * 20,
    }
)
MIXED_ROLES: dict[str, Any] = {
    "who": "identifier",
    "a.b": "confidential",
    "A.B": Confidential(lower=0, upper=7000),
    "f": Confidential(decimals=3),
    "sum of it": Derived(expression='"a.b" + "A.B"'),
    "band": Derived(expression="CASE WHEN \"sum of it\" > 3000 THEN 'high' ELSE 'low' END"),
    "when": "kept",
    "place": "kept",
}


def test_names_types_derived_and_kept_columns(run_on: RunOn) -> None:
    plan = Plan.published(epsilon=0.5, k=3, attributes=MIXED_ROLES)
    data = run_on(MIXED, plan).data.sort("when")
    assert data.columns == MIXED.columns[1:]
    assert {**data.schema} == {**MIXED.drop("who").schema}
    assert (data["sum of it"] == data["a.b"].cast(pl.Float64) + data["A.B"]).all()
    expected = ["high" if value > 3000 else "low" for value in data["sum of it"]]
    assert data["band"].to_list() == expected
    assert data["when"].equals(MIXED["when"])
    assert data["place"].to_list() == MIXED["place"].to_list()
    assert data["A.B"].is_between(0, 7000).all()


def test_missing_values_can_be_kept_or_dropped(run_on: RunOn) -> None:
    table = pl.DataFrame(
        {"x": [None, *range(1, 30)], "y": [*map(float, range(29)), None], "n": range(30)}
    )
    attributes = {"x": "confidential", "y": Confidential(decimals=0), "n": "kept"}
    plan = Plan.published(epsilon=1, k=3, missing="keep", attributes=attributes)
    data = run_on(table, plan).data.sort("n")
    assert data["x"].is_null().to_list() == table["x"].is_null().to_list()
    assert data["y"].is_null().to_list() == table["y"].is_null().to_list()
    dropped = run_on(table, plan.replace(missing="drop"))
    assert dropped.data["n"].sort().to_list() == list(range(1, 29))
    assert dropped.certificate.records == 28
    assert dropped.clusters["records"].to_list() == [3] * 8 + [4] + [3] * 8 + [4]


def test_grids_from_the_data(run_elsewhere: RunOn) -> None:
    values = RANDOM.lognormal(2, 2, 60)
    table = pl.DataFrame(
        {
            "cents": values.round(2),
            "full": values,
            "full iDP-LS": values,
            "single": values.astype(np.float32),
            "zero": np.zeros(60),
        }
    )
    roles = dict.fromkeys(table.columns, Confidential(resolution="data"))
    roles["full iDP-LS"] = Confidential(method="iDP-LS")
    plan = Plan.published(epsilon=5, k=5, attributes=roles)
    outcomes, messages = [], []
    for run in (run_elsewhere, run_in_memory):
        with pytest.warns(PrivacyWarning) as said:
            outcomes.append(run(table, plan))
        messages.append([str(w.message) for w in said if w.category is PrivacyWarning])
    assert messages[0] == messages[1]
    said_of_grids = "attributes 'cents', 'full', 'single', 'zero': the noise grid was read from the"
    assert any(message.startswith(said_of_grids) for message in messages[0])
    assert_same(*outcomes)


TEXT = "CASE WHEN x > 0 THEN 'a' ELSE 'b' END"
ERRORS: dict[str, tuple[Any, Any]] = {
    "at least 2 records, found 0": (pl.Series([], dtype=pl.Int64), "confidential"),
    "found 2 records for k = 3": ([1, 2], "confidential"),
    "1 of 4 values are missing": ([1, None, 3, 4], "confidential"),
    "every value is missing": (pl.Series([None, None], dtype=pl.Int64), "confidential"),
    "found 2 that are infinite or NaN": ([1.0, float("inf"), float("nan")], "confidential"),
    "2 of 4 values lie outside": ([1, 2, 3, 4], Confidential(lower=2, upper=3)),
    "1 of 3 values are not whole": ([1.5, 2, 3], Confidential(kind="integer")),
    r"found text \(1 of 3 records are not numbers\)": (["a", "1", None], "confidential"),
    "found numbers stored as text": (["3", "1", None], "confidential"),
    "so coarse that all values": ([1.0, 2, 3], Confidential(resolution=1e9)),
    "too large for its noise grid": ([1.0, 1e30, 3], Confidential(decimals=2)),
    "epsilon is too small for its noise grid": ([0.0, 1e5, 2e5], Confidential(resolution=1e-12)),
    "when 8 of them are added": ([0.0, 2e5] * 4, Confidential(resolution=2.0**-42, k=8)),
    "attribute 'z': .* no finite result in 3 of 3": ([1, 2, 3], Derived(expression="x / (x - x)")),
    "attribute 'z': its expression cannot be computed": ([1, 2, 3], Derived(expression=TEXT)),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_are_the_same(message: str, run_on: RunOn) -> None:
    values, role = ERRORS[message]
    table, roles = table_of(values), {"x": role}
    if isinstance(role, Derived):
        table = table.with_columns(z=pl.lit(1.0))
        roles = {"x": "confidential", "z": role}
    plan = Plan.published(epsilon=1e-6 if "epsilon" in message else 1, k=3, attributes=roles)
    with pytest.raises(DataError, match=message) as error:
        run_on(table, plan)
    assert error.value.attribute == (None if "at least" in message else list(roles)[-1])
    assert (error.value.setting == "epsilon") == message.startswith("epsilon")


def test_columns_and_roles_must_match(run_on: RunOn) -> None:
    plan = Plan.published(epsilon=1, k=3, attributes={"x": "confidential"})
    with pytest.raises(DataError, match="the plan has none for 'z'"):
        run_on(pl.DataFrame({"x": [1], "z": [1]}), plan)
    with pytest.raises(DataError, match="attribute 'x': in the plan, but not in the data"):
        run_on(pl.DataFrame({"z": [1]}), plan)


def seeded_table() -> tuple[pl.DataFrame, Plan]:
    records = 150
    numbers = np.arange(records)
    table = pl.DataFrame({"x": numbers * 30.0, "y": numbers * 30.0, "n": numbers})
    wide: dict[str, Any] = {"lower": 0, "upper": 10_000}
    attributes = {
        "x": Confidential(method="iDP-LS", **wide), "y": Confidential(method="DP", **wide),
        "n": "kept",
    }  # fmt: skip
    return table, Plan.published(epsilon=2, k=4, attributes=attributes)


def test_a_seed_repeats_a_release(run_on: RunOn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "VALUES_PER_TASK", 180)
    monkeypatch.setattr(spark_engine, "_SEEDED_BLOCK", 16)
    table, plan = seeded_table()
    one, same, other = (run_on(table, plan, seed=seed).data.sort("n") for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)
    unseeded = run_on(table, plan).data.sort("n")
    assert not {*unseeded["y"]} & {*one["y"]} - {0.0, 10_000.0}
    clusters = one.group_by((pl.col("n") // 4).clip(upper_bound=36)).agg(pl.col("x").unique())
    assert clusters["x"].list.len().to_list() == [1] * 37
    for drawn in (clusters["x"].explode(), one["y"]):  # no noise is drawn twice
        inside = drawn.filter((drawn > 0) & (drawn < 10_000))
        assert inside.n_unique() == len(inside) > 10


def test_the_order_of_records_is_not_told(run_on: RunOn) -> None:
    """Neither rows nor equal values follow the table's order, nor one another's."""
    table = pl.DataFrame({"x": [5.0] * 3000, "n": np.arange(3000)})
    wide = {"x": Confidential(lower=-10_000, upper=10_000), "n": "kept"}
    plan = Plan.published(epsilon=100, k=3, method="iDP-LS", attributes=wide)
    data = run_on(table, plan, **({"partitions": 1} if run_on.engine == "spark" else {})).data
    assert abs(np.corrcoef(data["n"], np.arange(3000))[0, 1]) < 0.1
    assert (data["x"] == data["x"].shift(1)).sum() < 30  # 2,000 if ties were broken by row
    by_position = data.sort("n")["x"]
    assert (by_position == by_position.shift(1)).sum() < 30


def test_rules_are_kept_and_weights_stay_as_they_are(run_on: RunOn) -> None:
    table = pl.DataFrame(
        {"a": RANDOM.integers(0, 500, 200), "b": RANDOM.integers(0, 500, 200),
         "w": RANDOM.integers(1, 9, 200) / 2}
    ).with_columns(t=pl.col("a") + pl.col("b"))  # fmt: skip
    roles = {"a": DOMAIN, "b": DOMAIN, "t": DOMAIN, "w": "sampling_weight"}
    rules = ["a + b == t", "w <= a"]
    with pytest.warns(PrivacyWarning, match="sampling weights"):
        outcome = run_on(
            table, Plan.published(epsilon=1, k=5, anonymity=5, rules=rules, attributes=roles)
        )
    data = outcome.data
    assert (data["a"] + data["b"] == data["t"]).all()
    assert (data["w"] <= data["a"]).all()
    assert data["w"].sort().equals(table["w"].sort())
    assert outcome.certificate.rules == tuple(rules)


def test_positions_tell_where_each_record_stood(run_on: RunOn) -> None:
    table = pl.DataFrame({"x": [*range(60), None], "n": np.arange(61) + 7})
    plan = Plan.published(epsilon=1, k=4, missing="drop", attributes={"x": DOMAIN, "n": "kept"})
    outcome = run_on(table, plan, **({"positions": True} if run_on.engine == "spark" else {}))
    assert outcome.positions is not None
    assert (outcome.positions + 7).tolist() == outcome.data["n"].to_list()


def test_an_expression_over_all_records(run_on: RunOn) -> None:
    """One is computed from another, and a third from that, record by record."""
    roles = {
        "x": DOMAIN, "z": Derived(expression="x - AVG(x)"),
        "y y": Derived(expression='z + SUM("z z")'), "z z": Derived(expression="2 * z + x"),
    }  # fmt: skip
    table = table_of([3, 9, 27, 81]).with_columns(z=pl.lit(0.0), yy=pl.lit(0.0), zz=pl.lit(0.0))
    table = table.rename({"yy": "y y", "zz": "z z"})
    data = run_on(table, Plan.published(epsilon=1, k=3, attributes=roles)).data
    z = data["x"] - data["x"].mean()
    assert data["z"].to_list() == pytest.approx(z.to_list())
    total = (2 * z + data["x"]).sum()
    assert data["y y"].to_list() == pytest.approx((z + total).to_list())


def test_one_thing_is_refused_on_one_engine() -> None:
    """The table in docs/reference/engines.md says so, and no test is skipped for an engine."""
    rows = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    listed = [row[1:] for row in rows if len(row) == 4 and row[0].startswith("| ")]
    assert len(listed) > 10
    refused = [cell for row in listed for cell in row if cell.startswith("no")]
    assert refused == ["no, refused |"]  # joint clusters that last, on Spark
