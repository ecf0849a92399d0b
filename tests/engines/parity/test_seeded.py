"""Seeded releases on Spark do not change unless a change is meant to change them."""

import json
from pathlib import Path

import pytest

from tests.engines.parity.conftest import RunOn
from tests.release.test_golden import PLANS, SEED, digest, table

EXPECTED = Path(__file__).with_name("golden.json")
COLUMNS = ["region", "age", "school", "visits"]


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("name", ["cbls undeclared", "ls re-clustered", "dp persons"])
def test_a_seeded_release_on_spark(name: str, run_on_spark: RunOn) -> None:
    plan = PLANS[name]
    some = plan.replace(attributes={a: plan.attributes[a] for a in COLUMNS})
    data = run_on_spark(table().select(COLUMNS), some, partitions=2, seed=SEED).data
    assert digest(data.sort(COLUMNS)) == json.loads(EXPECTED.read_text())[name]
