"""Three intruders: what each finds, and what none of them can find."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, DataError, Plan, protect
from microveil.attacks import sight
from microveil.attacks.nearest import nearest_in_parts, nearest_linkage
from microveil.attacks.one_to_one import one_to_one_linkage
from microveil.attacks.structure import structure_linkage
from microveil.core.mdav import mdav, standardise
from microveil.types import Reals

ATTACKS = (nearest_linkage, one_to_one_linkage, structure_linkage)


def clustered(records: int, attributes: int, k: int, noise: float) -> tuple[Reals, Reals]:
    """Microaggregate random values by individual ranking and add noise to every cluster."""
    random = np.random.default_rng(3)
    original = random.normal(size=(records, attributes))
    masked = np.empty_like(original)
    for a, column in enumerate(original.T):
        cluster = column.argsort().argsort() // k
        means = np.bincount(cluster, column) / np.bincount(cluster)
        masked[:, a] = (means + random.laplace(scale=noise, size=len(means)))[cluster]
    return original, masked


def test_an_assignment_finds_what_distances_alone_do_not() -> None:
    original = np.array([[1.0], [2.0], [8.0], [9.0]])
    masked = np.array([[0.0], [1.2], [6.0], [8.1]])
    assert nearest_linkage(original, masked).share == 0.5
    assert one_to_one_linkage(original, masked).share == 1


def test_noise_does_not_stop_the_attack_on_structure() -> None:
    original, masked = clustered(400, 8, k=8, noise=2.0)
    nearest, one_to_one, structure = (attack(original, masked).share for attack in ATTACKS)
    assert max(nearest, one_to_one) < 0.2
    assert structure > 0.9


def test_without_clusters_there_is_no_structure() -> None:
    """Noise of its own for every value, as DP has it."""
    random = np.random.default_rng(5)
    original = random.normal(size=(300, 5))
    masked = original + random.laplace(scale=20, size=original.shape)
    for attack in ATTACKS:
        assert attack(original, masked).share < 0.05


def test_what_is_independent_is_linked_by_chance() -> None:
    random = np.random.default_rng(6)
    original, masked = random.normal(size=(2, 400, 4))
    masked = np.round(masked)  # with values that are shared
    for attack in ATTACKS:
        assert attack(original, masked).share < 0.02


def test_categories_missing_values_and_the_order_of_rows() -> None:
    original, masked = clustered(300, 6, k=6, noise=5.0)
    sex = np.random.default_rng(1).integers(0, 3, 300).astype(float)
    absent = np.random.default_rng(2).random(300) < 0.1
    original, masked = (np.column_stack([table, sex]) for table in (original, masked))
    original[absent, 0] = masked[absent, 0] = np.nan
    found = structure_linkage(original, masked, nominal=[6])
    assert found.share > 0.9
    order = np.random.default_rng(4).permutation(300)
    again = structure_linkage(original[order], masked[order], nominal=[6])
    assert again.share == pytest.approx(found.share, abs=0.02)


def test_equal_rows_count_in_proportion() -> None:
    """A release in which five records are equal each time links one in five at best."""
    original, _ = clustered(200, 3, k=5, noise=0)
    joint = mdav(standardise(original), 5)
    masked = np.column_stack([np.bincount(joint, c) / np.bincount(joint) for c in original.T])[
        joint
    ]
    for attack in ATTACKS:
        assert attack(original, masked).share <= 1 / 5 + 1e-9


def test_exchanged_values_hide_people_in_their_joint_clusters() -> None:
    original, masked = clustered(300, 6, k=6, noise=0.05)
    joint, random = mdav(standardise(original), 10), np.random.default_rng(8)
    exchanged = masked.copy()
    for members in (np.flatnonzero(joint == label) for label in range(joint.max() + 1)):
        for a in range(6):
            exchanged[members, a] = masked[random.permutation(members), a]
    assert structure_linkage(original, masked).share > 0.95
    for attack in ATTACKS:
        assert attack(original, exchanged).share < 0.2  # 0.1 expected, of 300 people


def test_what_an_intruder_knows() -> None:
    original, masked = clustered(300, 6, k=6, noise=0.05)
    whole = nearest_linkage(original, masked)
    part = nearest_linkage(original, masked, known=[0, 1])
    assert (whole.records, whole.known, whole.chance) == (300, 300, 1 / 300)
    assert part.share < whole.share
    some = structure_linkage(original, masked, people=0.5)
    assert (some.known, some.attacked, some.records) == (150, 150, 300)
    assert some.share > 0.5
    with pytest.raises(DataError, match="known must be columns from 0 to 5"):
        structure_linkage(original, masked, known=[6])
    with pytest.raises(DataError, match="people must be a share"):
        structure_linkage(original, masked, people=0)


@pytest.mark.parametrize("pairs", [sight.EXACT, 0])
def test_columns_published_as_they_are_rule_records_out(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: by them alone two are linked to one of two each time, and one for sure."""
    monkeypatch.setattr(sight, "EXACT", pairs)
    original = np.array([[30, 0], [31, 0], [60, 1], [62, 1], [np.nan, np.nan]], dtype=float)
    masked = np.array([[31, 0], [30, 0], [30, 1], [99, 1], [31, np.nan]], dtype=float)
    for attack in ATTACKS:
        assert attack(original, masked, known=[1], exact=[1]).share == pytest.approx(0.6)
    by_age = nearest_linkage(original, masked, known=[0])  # 31 is nearest to what is missing
    assert by_age.share == pytest.approx((0 + 0 + 0 + 0 + 1 / 2) / 5)
    both = nearest_linkage(original, masked, exact=[1])
    assert both.share == pytest.approx((0 + 0 + 1 + 0 + 1) / 5)  # 62 is nearer to 30 than to 99
    assert one_to_one_linkage(original, masked, exact=[1]).share == pytest.approx(3 / 5)


def test_parts_are_the_whole() -> None:
    original, masked = clustered(300, 3, k=6, noise=0.05)
    kinds = np.random.default_rng(9).integers(0, 3, (300, 2)).astype(float)
    original, masked = np.hstack([original, kinds]), np.hstack([masked, kinds])
    masked[::7, 3] = 9  # which nobody had
    masked[::11, 0] = np.nan
    chosen = np.arange(0, 300, 3)
    known = np.isin(np.arange(300), chosen)
    whole = nearest_linkage(original, masked, nominal=[3], exact=[4], people=known)
    parts = nearest_in_parts(
        original[chosen], masked[chosen], np.array_split(masked, 4), nominal=[3], exact=[4],
        known=100,
    )  # fmt: skip
    assert parts == whole
    assert 0 < parts.share < 1


def test_large_tables_are_attacked_by_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    original, masked = clustered(1_000, 6, k=8, noise=0.05)
    monkeypatch.setattr(sight, "EXACT", 1_000)
    monkeypatch.setattr(sight, "MOST_PEOPLE", 600)
    for attack in ATTACKS[1:]:
        found = attack(original, masked)
        assert (found.attacked, found.known, found.records) == (600, 1_000, 1_000)
        assert found.low < found.share < found.high or found.share == 1
        assert found.share > 0.8


def test_census_is_linked_at_any_epsilon(paper_data: Path) -> None:
    """Published iDP-CBLS at ε = 0.01: noise hides nobody from who shares values with whom."""
    table = pl.read_csv(paper_data / "census.csv").drop("PTOTVAL")
    attributes = {
        name: Confidential(lower=0, upper=1.5 * float(table[name].max()))  # type: ignore[arg-type]
        for name in table.columns
    }
    release = protect(
        table, Plan.published(epsilon=0.01, k=10, attributes=attributes), seed=1, keep_order=True
    )
    original, masked = table.to_numpy().astype(float), release.data.to_numpy().astype(float)
    assert nearest_linkage(original, masked).share < 0.01
    assert structure_linkage(original, masked).share > 0.99
    assert structure_linkage(original, masked, people=0.5).share > 0.6
