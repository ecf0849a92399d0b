"""Rare categories: proposals merge them, plans recode them, the verdict names them."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import Confidential, Plan, PlanError, protect, verdict
from microveil.core.attribute import CROWD
from microveil.plan.propose.columns import Proposal
from microveil.plan.propose.rare import merging_rare

JOBS = ["nurse"] * 40 + ["baker"] * 30 + ["mayor"] + ["judge"] * 3 + ["smith"] * 12


@given(st.lists(st.integers(0, 40), min_size=2, max_size=9), st.booleans(), st.booleans())
def test_no_proposed_group_is_rare(counts: list[int], ordinal: bool, text: bool) -> None:
    listed = [f"c{i}" if text else i for i in range(len(counts))]
    values = pl.Series([c for c, count in zip(listed, counts, strict=True) for _ in range(count)],
                       dtype=pl.String if text else pl.Int64)  # fmt: skip
    own = pl.int_range(len(values), eager=True)
    kind = "ordinal" if ordinal else "nominal"
    settings = {"role": "confidential", "kind": kind, "categories": listed}
    proposed = merging_rare(Proposal(settings, ""), values, own).settings
    if "merge" not in proposed:
        rest = [count for count in counts if count >= CROWD]
        assert sum(counts) - sum(rest) == 0 or len(rest) <= 2 or sum(counts) < 2 * CROWD
        return
    attribute = Confidential(**{**proposed, "categories": tuple(listed)})
    groups: dict[str, int] = {}
    for category, count in zip(listed, counts, strict=True):
        group = attribute.recoded.get(str(category), str(category))
        groups[group] = groups.get(group, 0) + count
    assert len(groups) > 1
    assert tuple(groups) == attribute.declared_categories
    assert all(count >= CROWD or not count for count in groups.values())
    plan = Plan(epsilon=1.0, attributes={"x": attribute})
    assert Plan.from_toml(plan.to_toml()) == plan


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_a_proposed_plan_publishes_no_rare_category() -> None:
    table = pl.DataFrame({"job": JOBS, "age": range(len(JOBS))})
    plan = Plan.propose(table)
    job = plan.confidential["job"]
    assert job.merge == {"other": ("judge", "mayor", "smith")}
    assert "job: merge" in plan.from_data
    release = protect(table, plan, seed=1)
    assert set(release.data["job"]) <= {"nurse", "baker", "other"}
    bare = plan.replace(
        attributes={**plan.attributes, "job": job.model_copy(update={"merge": None})}
    )
    rare = [
        {f.attribute: f.value for f in verdict(table, protect(table, one, seed=1), seed=1).figures
         if f.measure == "risk.rare_categories"}
        for one in (plan, bare)
    ]  # fmt: skip
    assert rare[0] == {"job": 0}
    assert rare[1] == {"job": pytest.approx(4 / 86)}


@pytest.mark.parametrize(
    "changes",
    [{"merge": {"other": ["a", "z"]}}, {"merge": {"one": ["a"], "two": ["a"]}},
     {"merge": {"other": ["a", "b"]}, "categories": None, "taxonomy": {"x": ["a", "b", "c"]}}],
)  # fmt: skip
def test_merges_that_make_no_sense_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(PlanError, match="merge lists some of the declared categories"):
        Confidential(**{"kind": "nominal", "categories": [*"abc"], **changes})  # type: ignore[arg-type]
