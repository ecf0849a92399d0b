"""Every engine gives the same clusters, scales, losses, certificates and errors."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from microveil import Confidential, DataError, Derived, Plan, PrivacyWarning
from microveil.core.choices import GuaranteeName, MethodName
from microveil.engines.spark import engine as line
from tests.engines.parity.conftest import RunOn, run_in_memory

RANDOM = np.random.default_rng(7)
DOMAIN = Confidential(lower=0, upper=1000)


def table_of(values: Any) -> pl.DataFrame:  # noqa: ANN401
    return pl.DataFrame({"x": values})


TABLES = {
    "ties": table_of(RANDOM.integers(0, 9, 205)),
    "constant": table_of([4] * 50),
    "remainder": table_of(RANDOM.permutation(209) * 4),
    "smallest": table_of([5, 1, 3, 9, 8]),
    "skew": table_of(np.append(np.zeros(190), RANDOM.lognormal(3, 1, 17)).round(3)),
    "nulls": table_of([None if i % 3 == 0 else i % 400 for i in range(307)]),
    "reals": table_of(RANDOM.uniform(0, 1000, 211)),
}
CASES = [
    *((name, "iDP-CBLS", "fixed-clusters") for name in TABLES),
    ("ties", "iDP-CBLS", "re-clustered"),
    ("skew", "iDP-LS", "fixed-clusters"),
    ("nulls", "iDP-LS", "re-clustered"),
    ("reals", "DP-UM", "fixed-clusters"),
    ("remainder", "DP-UM", "re-clustered"),
    ("reals", "DP", "fixed-clusters"),
]


@pytest.mark.parametrize(("name", "method", "guarantee"), CASES)
def test_the_same_summaries_centroids_scales_losses_and_certificate(
    name: str,
    method: MethodName,
    guarantee: GuaranteeName,
    run_on_spark: RunOn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line, "VALUES_PER_TASK", 180)  # ranges of about sixty records
    plan = Plan(
        epsilon=0.7, k=5, method=method, guarantee=guarantee, missing="keep",
        attributes={"x": DOMAIN},
    )  # fmt: skip
    ours = run_on_spark(TABLES[name], plan)
    theirs = run_in_memory(TABLES[name], plan)
    assert_frame_equal(ours.clusters, theirs.clusters, rel_tol=1e-12)
    assert_frame_equal(ours.losses, theirs.losses, rel_tol=1e-9)
    assert without_date(ours) == without_date(theirs)
    assert ours.data["x"].dtype == TABLES[name]["x"].dtype
    assert ours.data["x"].null_count() == TABLES[name]["x"].null_count()
    counts = ours.data["x"].drop_nulls().value_counts()["count"]
    assert method == "DP" or min(counts) >= 5


def without_date(outcome: Any) -> dict[str, Any]:  # noqa: ANN401
    return dict(outcome.certificate.model_dump(exclude={"created"}))


@pytest.mark.parametrize(("partitions", "values"), [(1, 10**6), (1, 40), (40, 10**6), (40, 9)])
def test_partitions_do_not_matter(
    partitions: int, values: int, run_on_spark: RunOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, many, and more partitions than records, so that some are empty; k larger than all."""
    monkeypatch.setattr(line, "VALUES_PER_TASK", values)
    table = table_of(RANDOM.integers(0, 50, 31))
    plan = Plan(epsilon=1, k=4, method="iDP-LS", guarantee="re-clustered", attributes={"x": DOMAIN})
    ours, theirs = run_on_spark(table, plan, partitions=partitions), run_in_memory(table, plan)
    assert_frame_equal(ours.clusters, theirs.clusters, rel_tol=1e-12)
    assert_frame_equal(ours.losses, theirs.losses, rel_tol=1e-9)


def test_records_keep_their_cluster(run_on: RunOn) -> None:
    """With unique values a record's cluster is its rank over k, and it has one masked value."""
    order = RANDOM.permutation(301)
    table = pl.DataFrame({"x": order * 3, "y": (order * 8) % 301, "who": order})
    plan = Plan(
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


@pytest.mark.parametrize(
    ("method", "centroids", "sensitivities"),
    [
        # clusters {1, 2, 4} and {5, 7, 11, 20} in [0, 32], as in test_protect
        ("DP-UM", [7 / 3, 43 / 4], [32 / 3, 32 / 4]),
        ("iDP-LS", [7 / 3, 43 / 4], [31 / 3, 27 / 4]),
        ("iDP-CBLS", [6 / 3, 36 / 4], [6 / 3, 26 / 4]),
    ],
)
def test_methods_by_hand(
    method: MethodName, centroids: list[float], sensitivities: list[float], run_on: RunOn
) -> None:
    attributes = {"x": Confidential(lower=0, upper=32)}
    plan = Plan(epsilon=2, method=method, k=3, records_per_person=1, attributes=attributes)
    clusters = run_on(table_of(VALUES), plan).clusters
    assert clusters["centroid"].to_list() == pytest.approx(centroids)
    assert clusters["sensitivity"].to_list() == pytest.approx(sensitivities)
    assert clusters["scale"].to_list() == pytest.approx([s / 2 for s in sensitivities])
    assert clusters["smallest"].to_list() == [1, 5]
    assert clusters["largest"].to_list() == [4, 20]
    assert clusters["records"].to_list() == [3, 4]


def residuals(run_on: RunOn, method: MethodName, k: int) -> tuple[Any, float]:
    """Noise on 4,000 clusters of equal values, far from the ends of the domain, and its scale."""
    half = 1000.0
    attributes = {"x": Confidential(lower=-half, upper=half)}
    plan = Plan(epsilon=100, method=method, k=k, attributes=attributes)
    masked = run_on(table_of([0.0] * 4000 * k), plan).data["x"].unique().to_numpy()
    width = 2 * half if method in ("DP", "DP-UM") else half
    return masked, width / k / 100


@pytest.mark.parametrize(("method", "k"), [("DP", 1), ("DP-UM", 2), ("iDP-LS", 1)])
def test_noise_has_the_right_scale_and_no_other(method: MethodName, k: int, run_on: RunOn) -> None:
    noise, scale = residuals(run_on, method, k)
    assert len(noise) == 4000
    size = np.abs(noise)
    assert stats.binomtest(int((noise > 0).sum()), 4000).pvalue > 1e-5
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
    plan = Plan(epsilon=0.5, k=3, attributes=MIXED_ROLES)
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
    plan = Plan(epsilon=1, k=3, missing="keep", attributes=attributes)
    data = run_on(table, plan).data.sort("n")
    assert data["x"].is_null().to_list() == table["x"].is_null().to_list()
    assert data["y"].is_null().to_list() == table["y"].is_null().to_list()
    dropped = run_on(table, plan.replace(missing="drop"))
    assert dropped.data["n"].sort().to_list() == list(range(1, 29))
    assert dropped.certificate.records == 28
    assert dropped.clusters["records"].to_list() == [3] * 8 + [4] + [3] * 8 + [4]


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_grids_from_the_data(run_on_spark: RunOn) -> None:
    values = RANDOM.lognormal(2, 2, 60)
    table = pl.DataFrame(
        {
            "cents": values.round(2),
            "full": values,
            "single": values.astype(np.float32),
            "zero": np.zeros(60),
        }
    )
    for method in ("iDP-CBLS", "iDP-LS"):
        roles = dict.fromkeys(table.columns if method == "iDP-CBLS" else ["full"], "confidential")
        plan = Plan(epsilon=1, method=method, k=5, attributes=roles)
        ours, theirs = (run(table.select(*roles), plan) for run in (run_on_spark, run_in_memory))
        assert_frame_equal(ours.clusters, theirs.clusters, rel_tol=1e-12)
        assert without_date(ours) == without_date(theirs)


def test_warnings_are_the_same(run_on: RunOn) -> None:
    plan = Plan(epsilon=1, k=3, attributes={"x": "confidential"})
    with pytest.warns(PrivacyWarning, match="attribute 'x': its noise grid follows the last"):
        run_on(table_of([0.25, 1.5, 2.0, 3.0]), plan)


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
    plan = Plan(epsilon=1e-6 if "epsilon" in message else 1, k=3, attributes=roles)
    with pytest.raises(DataError, match=message) as error:
        run_on(table, plan)
    assert error.value.attribute == (None if "at least" in message else list(roles)[-1])
    assert (error.value.setting == "epsilon") == message.startswith("epsilon")


def test_columns_and_roles_must_match(run_on: RunOn) -> None:
    plan = Plan(epsilon=1, k=3, attributes={"x": "confidential"})
    with pytest.raises(DataError, match="the plan has none for 'z'"):
        run_on(pl.DataFrame({"x": [1], "z": [1]}), plan)
    with pytest.raises(DataError, match="attribute 'x': in the plan, but not in the data"):
        run_on(pl.DataFrame({"z": [1]}), plan)
