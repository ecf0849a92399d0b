"""Pooling through the whole line: what it keeps, what it hides, and what it says of itself."""

import itertools
from collections import Counter
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from bench.pooling import linked_by_joint_clusters
from microveil import (
    Confidential,
    DataError,
    Derived,
    Detail,
    Group,
    Plan,
    PlanError,
    evaluate,
    protect,
    protect_file,
)
from microveil.attacks.one_to_one import one_to_one_linkage
from microveil.core.choices import Pooling
from microveil.engines.local import LocalTable
from microveil.show.words.certificate_words import how_hidden, level_statement
from microveil.show.words.readings import reading

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*iDP publishes the category", "ignore:.*the data decided", "ignore:.*voids the claim"
)
N = 200
ROLES: dict[str, Any] = {
    "region": "kept",
    "sex": Confidential(kind="nominal", categories=["f", "m"]),
    "level": Confidential(kind="ordinal", categories=[1, 2, 3, 4]),
    "born": Confidential(lower=date(1900, 1, 1), upper=date(2020, 12, 31)),
    "pay": Confidential(lower=0, upper=100_000),
    "rent": Confidential(lower=0, upper=5_000, decimals=2),
    "left": Derived(expression="pay - rent"),
}
POOLED = ("sex", "level", "born", "pay", "rent")


def table(missing: float = 0.1) -> pl.DataFrame:
    random = np.random.default_rng(5)
    whole = pl.DataFrame(
        {
            "region": random.choice(["N", "S"], N),
            "sex": random.choice(["f", "m"], N),
            "level": random.integers(1, 5, N),
            "born": pl.Series(random.integers(-10_000, 10_000, N)).cast(pl.Int32).cast(pl.Date),
            "pay": random.lognormal(9, 0.7, N).round().clip(0, 100_000).astype(int),
            "rent": random.lognormal(6, 0.5, N).round(2),
            "left": np.zeros(N),
        }
    )
    return whole.with_columns(
        pl.when(pl.Series(random.random(N) < missing))
        .then(None)
        .otherwise(pl.col(name))
        .alias(name)
        for name in POOLED
    )


def plan(**settings: Any) -> Plan:  # noqa: ANN401
    common = {"epsilon": 5.0, "k": 5, "missing": "keep", "anonymity": 8, "attributes": ROLES}
    return Plan.published(**{**common, **settings})


def before_and_after(chosen: Plan, data: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Any]:
    """Return masked values before and after pooling, with the joint clusters of the only group."""
    alone = chosen.replace(anonymity=0, groups=())
    release = protect(data, chosen, seed=3, keep_order=True)
    (labels,) = release.detail.joint.values()
    return protect(data, alone, seed=3, keep_order=True).data, release.data, labels


@pytest.mark.parametrize("method", ["DP", "DP-UM", "iDP-LS", "iDP-CBLS"])
@pytest.mark.parametrize("guarantee", ["fixed-clusters", "re-clustered"])
def test_exchange_keeps_every_value_in_its_joint_cluster(method: str, guarantee: str) -> None:
    masked, pooled, labels = before_and_after(plan(method=method, guarantee=guarantee), table())
    assert np.bincount(labels).min() >= 8
    moved = 0
    for name in POOLED:
        for label in range(labels.max() + 1):
            members = np.flatnonzero(labels == label)
            was, became = masked[name][members], pooled[name][members]
            assert Counter(was) == Counter(became)  # missing ones are among them
            moved += was.to_list() != became.to_list()
    assert moved > len(POOLED) * (labels.max() + 1) * 0.8
    assert_frame_equal(pooled.select("region"), table().select("region"))
    whole = pooled.drop_nulls(["pay", "rent"])
    assert whole["left"].to_list() == pytest.approx((whole["pay"] - whole["rent"]).to_list())


@pytest.mark.parametrize("method", ["DP", "iDP-CBLS"])
def test_average_makes_joint_clusters_alike(method: str) -> None:
    data = table()
    masked, pooled, labels = before_and_after(plan(method=method, pooling="average"), data)
    classes = pooled.group_by(*POOLED).len()["len"]
    assert classes.min() >= 8  # type: ignore[operator]
    for label in range(labels.max() + 1):
        members = np.flatnonzero(labels == label)
        for name in ("pay", "rent"):
            (value,) = pooled[name][members].unique().to_list()
            known = masked[name][members].drop_nulls()
            if 2 * len(known) < len(members):
                assert value is None
            else:
                rounding = 0.51 if name == "pay" else 0.0051
                assert value == pytest.approx(float(known.mean()), abs=rounding)  # type: ignore[arg-type]
        (sex,) = pooled["sex"][members].unique().to_list()
        counts = Counter(masked["sex"][members].drop_nulls())
        assert sex is None or counts[sex] == max(counts.values())
    assert pooled.schema == data.schema


def test_the_least_class_of_averages_is_counted_and_certified() -> None:
    release = protect(table(), plan(pooling="average"), seed=1, keep_order=True)
    (group,) = release.certificate.groups
    classes = release.data.group_by(*POOLED).len()["len"]
    assert (group.anonymity, group.pooling, group.smallest_class) == (8, "average", classes.min())


@pytest.mark.parametrize("pooling", ["exchange", "average"])
@pytest.mark.parametrize("partition", ["fixed", "noise-optimal", "least-squares"])
@pytest.mark.parametrize("post", ["none", "isotonic", "penalised-isotonic"])
def test_every_partition_and_post_processing_is_pooled(
    pooling: str, partition: str, post: str
) -> None:
    chosen = plan(pooling=pooling, partition=partition, post=post)
    protect(table(), chosen, seed=1)  # which checks what came out


def test_relations_survive_and_own_pairs_do_not() -> None:
    random = np.random.default_rng(2)
    common = random.normal(size=2_000)
    data = pl.DataFrame(
        {
            "region": np.where(common + random.normal(size=2_000) > 0, "N", "S"),
            "sex": np.where(common + random.normal(size=2_000) > 0, "f", "m"),
            "pay": (common + 0.5 * random.normal(size=2_000)) * 1e4 + 5e4,
            "rent": (common + 0.5 * random.normal(size=2_000)) * 500 + 2_500,
        }
    )
    domains = {"pay": (0, 1e5), "rent": (0, 5e3)}
    roles: dict[str, Any] = {
        "region": "kept",
        "sex": ROLES["sex"],
        **{n: Confidential(lower=a, upper=b) for n, (a, b) in domains.items()},
    }
    chosen = Plan(epsilon=50, k=3, anonymity=50, attributes=roles)
    release = protect(data, chosen, seed=3)
    assert release.certificate.groups[0].block == 5
    masked = protect(data, chosen.replace(anonymity=0), seed=3).data

    def related(frame: pl.DataFrame) -> list[float]:
        north, female = frame["region"] == "N", frame["sex"] == "f"
        pairs = [(frame["pay"], frame["rent"]), (frame["pay"], female), (frame["rent"], north),
                 (female, north)]  # fmt: skip
        return [float(np.corrcoef(a.cast(pl.Float64), b.cast(pl.Float64))[0, 1]) for a, b in pairs]

    for before, after in zip(related(masked), related(release.data), strict=True):
        assert after == pytest.approx(before, abs=0.05)
    own = masked.join(release.data, on=["pay", "rent"], how="semi")
    assert len(own) < 0.1 * len(masked)


def test_groups_have_clusters_and_pooling_of_their_own() -> None:
    groups = [
        Group(attributes=("pay", "rent"), anonymity=20, pooling="average"),
        ["sex"],
        Group(attributes=("born",), anonymity=0),
    ]
    release = protect(table(), plan(groups=groups), seed=1, keep_order=True)
    found = [(g.attributes, g.anonymity, g.pooling) for g in release.certificate.groups]
    assert found == [
        (("pay", "rent"), 20, "average"), (("sex",), 8, "exchange"), (("level",), 8, "exchange"),
    ]  # fmt: skip
    assert release.data.group_by("pay", "rent").len()["len"].min() >= 20
    alone = protect(table(), plan(anonymity=0), seed=1, keep_order=True)
    assert release.data["born"].equals(alone.data["born"])
    statement = level_statement(release.certificate, release.certificate.levels[2])
    assert "share a masked value in born" in statement
    assert "as region (kept) and born (masked, not pooled) can" in statement
    assert "an attacker who knows attributes of several groups can narrow" in statement
    exposed = " ".join(release.certificate.reading["What is not protected"])
    assert "Which values are missing in born: nulls stay where they are." in exposed
    assert "How many values are missing in each joint cluster." in exposed


def test_one_line_does_not_promise_more_than_the_certificate() -> None:
    whole = protect(table(), plan(), seed=1).certificate
    assert how_hidden(whole).endswith("row is picked with probability at most 1/8")
    several = protect(table(), plan(groups=[["pay", "rent"]]), seed=1).certificate
    assert "picked by the attributes of one group with probability at most 1/8" in (
        how_hidden(several)
    )
    part = protect(table(), plan(groups=[Group(attributes=("born",), anonymity=0)]), seed=1)
    assert how_hidden(part.certificate) == ""


def test_someone_who_knows_several_groups_does_better_than_one_in_k() -> None:
    """The limit that the certificate states: joint clusters of two groups overlap in few rows."""
    random = np.random.default_rng(1)
    data = pl.DataFrame({name: random.normal(size=400).round(3) for name in "abcd"})
    roles = dict.fromkeys("abcd", "confidential")
    two = Plan.published(
        epsilon=100, anonymity=10, groups=[["a", "b"], ["c", "d"]], attributes=roles
    )
    one = two.replace(groups=())
    several = protect(data, two, seed=1).detail.joint
    overlap = Counter(zip(several["a, b"].tolist(), several["c, d"].tolist(), strict=True))
    assert min(overlap.values()) < 10
    worst = {
        name: max(
            evaluate(data, protect(data, chosen, seed=1)).value(f"linkage.{attack}") or 0
            for attack in ("nearest", "one_to_one", "structure")
        )
        for name, chosen in (("one", one), ("two", two))
    }
    assert worst["one"] < 0.18  # on average 0.1 at most; the standard deviation is 0.015
    assert worst["two"] > worst["one"] + 0.04


@pytest.mark.parametrize("pooling", ["exchange", "average"])
def test_someone_who_forms_the_joint_clusters_anew_finds_one_in_k(pooling: Pooling) -> None:
    """The strongest attack we know: it reaches the theorem's bound and does not pass it."""
    random = np.random.default_rng(7)
    data = pl.DataFrame({name: random.normal(size=300) for name in "xyz"})
    roles = dict.fromkeys("xyz", Confidential(lower=-9, upper=9))
    chosen = Plan.published(epsilon=300, k=3, anonymity=10, pooling=pooling, attributes=roles)
    masked = protect(data, chosen, seed=1, keep_order=True).data.to_numpy()
    found = linked_by_joint_clusters(data.to_numpy(), masked, 10)
    assert 0.06 < found <= 0.1 + 1e-9
    alone = protect(data, chosen.replace(anonymity=0), seed=1, keep_order=True).data.to_numpy()
    assert one_to_one_linkage(data.to_numpy(), alone).share > 0.9


def posterior(exchanges: Any, masked: tuple[tuple[int, int], ...]) -> set[Fraction]:  # noqa: ANN401
    """Every chance with which a released row is the first person's, over all that can happen."""
    people = range(len(masked))
    seen: dict[Any, Counter[int]] = {}
    for one, other in exchanges:
        rows = [(masked[one[i]][0], masked[other[i]][1]) for i in people]
        for order in itertools.permutations(people):
            released = tuple(rows[i] for i in order)
            seen.setdefault(released, Counter())[order.index(0)] += 1
    return {
        Fraction(counts[row], sum(counts.values())) for counts in seen.values() for row in people
    }


@pytest.mark.parametrize("masked", [((1, 5), (2, 6), (3, 7)), ((1, 5), (1, 6), (2, 5), (9, 9))])
def test_the_theorem_by_all_permutations_of_a_tiny_table(masked: Any) -> None:  # noqa: ANN401
    every = list(itertools.permutations(range(len(masked))))
    assert posterior(itertools.product(every, every), masked) == {Fraction(1, len(masked))}
    still = tuple(range(len(masked)))
    assert posterior([(still, still)], masked) != {Fraction(1, len(masked))}
    assert posterior(((still, one) for one in every), masked) != {Fraction(1, len(masked))}


@given(st.integers(2, 12), st.sampled_from(["exchange", "average"]), st.integers(0, 9))
@settings(max_examples=25)
def test_any_anonymity(anonymity: int, pooling: str, seed: int) -> None:
    data = table().head(12 + seed)
    chosen = plan(k=3, anonymity=anonymity, pooling=pooling)
    release = protect(data, chosen, seed=seed, keep_order=True)
    (labels,) = release.detail.joint.values()
    assert np.bincount(labels).min() >= anonymity
    assert release.data.schema == data.schema


def test_without_clusters_pooling_looks_only_at_masked_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise differential privacy would end where joint clusters begin."""
    numbers = {name: ROLES[name] for name in ("pay", "rent")}
    chosen = Plan.published(epsilon=5.0, method="DP", anonymity=8, attributes=numbers)
    data = table(missing=0).select("pay", "rent")
    release = protect(data, chosen, seed=1)
    assert release.certificate.groups[0].distances == "masked values"
    level = release.certificate.levels[2]
    assert (level.enforced, level.epsilon) == (True, 5.0)
    assert "at most 1/8" in level_statement(release.certificate, level)
    seen: list[str] = []
    steps = LocalTable.steps

    def watched(self: LocalTable, attribute: Any) -> Any:  # noqa: ANN401
        seen.append(attribute.name)
        return steps(self, attribute)

    monkeypatch.setattr(LocalTable, "steps", watched)
    protect(data, chosen, seed=1)
    assert seen == ["pay", "rent"]  # when they are masked, and not again


@pytest.mark.parametrize("kind", ["pandas", "pyarrow"])
@pytest.mark.parametrize("pooling", ["exchange", "average"])
def test_other_kinds_of_tables(kind: str, pooling: str) -> None:
    data = table(missing=0).drop("born")
    roles = {name: role for name, role in ROLES.items() if name != "born"}
    chosen = plan(pooling=pooling, attributes=roles)
    other: Any = data.to_pandas() if kind == "pandas" else data.to_arrow()
    released: Any = protect(other, chosen, seed=2, keep_order=True).data
    ours = protect(data, chosen, seed=2, keep_order=True).data
    if kind == "pandas":
        assert isinstance(released, pd.DataFrame)
        assert released.index.tolist() == list(range(N))
        assert released.dtypes.equals(other.dtypes)
    theirs = pl.DataFrame(released) if kind == "pyarrow" else pl.from_pandas(released)
    for name in data.columns:
        assert theirs[name].cast(ours[name].dtype).to_list() == ours[name].to_list()


def test_what_the_detail_and_the_certificate_say(tmp_path: Path) -> None:
    table().write_parquet(tmp_path / "in.parquet")
    written = protect_file(tmp_path / "in.parquet", plan(), tmp_path / "out.parquet", detail=True)
    joint = Detail.read(tmp_path / "out.detail.zip").joint
    assert list(joint) == [", ".join(POOLED)]
    assert len(joint[", ".join(POOLED)]) == N
    certificate = written.certified
    fixed, reclustered, released = (
        level_statement(certificate, level) for level in certificate.levels
    )
    assert fixed.startswith("With fixed clusters, including joint clusters, and noise scales fixed")
    assert "masked cluster values of an attribute, before pooling, then" in reclustered
    assert "at most 1/8" in released
    assert "assumes that rows are in random order" in released
    assert "region (kept) can" in released
    exposed = {one.kind for one in certificate.not_protected}
    assert "missing-per-joint-cluster" in exposed
    assert not exposed & {"missing-values", "shared-values"}


def test_l_diversity_and_t_closeness_are_measured() -> None:
    data = table(missing=0).with_columns(sex=pl.lit("f"))
    evaluation = evaluate(data, protect(data, plan(), seed=1))
    assert evaluation.value("risk.joint_distinct_least", "pay") >= 2
    assert 0 < evaluation.value("risk.joint_distance_median", "pay") < 1
    (constant,) = [f for f in evaluation.figures
                   if (f.measure, f.attribute) == ("risk.joint_distinct_least", "sex")]  # fmt: skip
    assert constant.value == 1
    assert "in 100% of joint clusters all agree" in reading(constant)
    assert evaluation.value("risk.joint_distance_largest", "sex") == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"anonymity": 1}, "anonymity must be 2 records or more, or 0 for no pooling, got 1"),
        ({"anonymity": -3}, "anonymity must be 2 records or more"),
        ({"groups": [["pay", "pay"]]}, "attribute 'pay': named twice in groups"),
        ({"groups": [["pay"], ["rent", "pay"]]}, "attribute 'pay': named twice in groups"),
        ({"groups": [["pay", "wage"]]}, "groups: no attribute 'wage'"),
        (
            {"groups": [["pay", "region"]]},
            "'region': only confidential attributes can",
        ),
        ({"groups": [[]]}, "a group must name attributes, got none"),
        ({"groups": [["pay"]], "anonymity": 0}, "set anonymity = 10, for example, or give each"),
        ({"groups": [Group(attributes=("pay",), anonymity=1)]}, "2 records or more"),
        ({"together": [["pay", "rent"]]}, "together is not a setting any more: .* remove it"),
        ({"pooling": "swap"}, "pooling must be 'exchange' or 'average'"),
    ],
)
def test_a_wrong_pool_is_one_clear_message(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(**settings)


def test_more_anonymity_than_records_is_refused_before_any_work() -> None:
    with pytest.raises(DataError, match="at most the number of records, found 200 records for"):
        protect(table(), plan(anonymity=201))
    groups = [Group(attributes=("pay",), anonymity=500)]
    with pytest.raises(DataError, match="anonymity = 500; choose a smaller one"):
        protect(table(), plan(groups=groups))


def test_a_pool_that_went_wrong_is_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    rolled = [(place, np.roll(np.arange(N), 1)) for place in range(len(POOLED))]
    monkeypatch.setattr("microveil.engines.local.RelatedExchange.draw", lambda *_: rolled)
    with pytest.raises(DataError, match="left its joint cluster; nothing was released"):
        protect(table(), plan(), seed=1)
    monkeypatch.undo()
    monkeypatch.setattr(
        "microveil.core.pooling.average_numbers", lambda *_: np.arange(float(N))[:25]
    )
    monkeypatch.setattr(
        "microveil.core.pooling.JointClusters.spread", lambda *_: np.arange(float(N))
    )
    with pytest.raises(DataError, match="1-anonymous; nothing was released"):
        protect(table().select("pay"), plan(pooling="average", attributes={"pay": ROLES["pay"]}))
