"""Categories, dates and times on every engine."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from microveil import Confidential, DataError, Plan
from tests.engines.parity.conftest import RunOn, run_in_memory
from tests.engines.parity.test_parity import assert_same

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*iDP publishes the category", "ignore:.*voids the claim"
)
RANDOM = np.random.default_rng(3)
N = 130
START = datetime(2020, 1, 1)
TABLE = pl.DataFrame(
    {
        "sex": [None if i % 17 == 0 else "fm"[i % 2] for i in range(N)],
        "level": RANDOM.choice(["low", "middle", "high"], N),
        "smokes": RANDOM.random(N) < 0.3,
        "code": RANDOM.integers(1, 5, N).astype(np.int32),
        "born": [date(1950, 1, 1) + timedelta(days=int(d)) for d in RANDOM.integers(0, 9_000, N)],
        "seen": [START + timedelta(seconds=int(s)) for s in RANDOM.integers(0, 10**7, N)],
        "zoned": [
            START.replace(tzinfo=UTC) + timedelta(seconds=int(s))
            for s in RANDOM.integers(0, 10**7, N)
        ],
    }
)
ATTRIBUTES: dict[str, Any] = {
    "sex": Confidential(kind="nominal", categories=["f", "m", "x"]),
    "level": Confidential(kind="ordinal", categories=["low", "middle", "high"]),
    "smokes": Confidential(kind="nominal", method="DP-UM"),
    "code": Confidential(kind="nominal", categories=[4, 3, 2, 1], method="DP-UM"),
    "born": Confidential(lower=date(1900, 1, 1), upper=date(2020, 12, 31), method="DP-UM"),
    "seen": Confidential(lower=date(2000, 1, 1), upper=date(2030, 1, 1), time_step="minute"),
    "zoned": Confidential(time_step="day"),
}


def test_the_same_clusters_losses_and_certificate(run_elsewhere: RunOn) -> None:
    plan = Plan.published(
        epsilon=7, k=5, missing="keep", domain_from_data=True, attributes=ATTRIBUTES
    )
    ours = run_elsewhere(TABLE, plan)
    assert_same(ours, run_in_memory(TABLE, plan))
    assert_frame_equal(ours.data.select(pl.all().null_count()), TABLE.select(pl.all().null_count()))
    assert (ours.data["seen"].dt.second() == 0).all()
    assert (ours.data["zoned"].dt.hour() == 0).all()
    for name, attribute in ATTRIBUTES.items():
        if attribute.is_category:
            allowed = set(attribute.categories or [True, False])
            assert set(ours.data[name].drop_nulls()) <= allowed


def test_randomised_response_has_the_right_odds_on_every_engine(run_on: RunOn) -> None:
    table = pl.DataFrame({"x": ["a"] * 6_000})
    attribute = Confidential(kind="nominal", categories=["a", "b", "c"])
    released = run_on(
        table, Plan.published(epsilon=1.0, method="DP", attributes={"x": attribute})
    ).data["x"]
    share = float((released == "a").mean())  # type: ignore[arg-type]
    expected = np.e / (np.e + 2)
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / 6_000)


def test_categories_read_from_the_data_on_every_engine(run_on: RunOn) -> None:
    table = TABLE.select("level")
    with pytest.warns(match="'level': the categories were read from the data"):
        outcome = run_on(
            table, Plan.published(epsilon=1, attributes={"level": Confidential(kind="nominal")})
        )
    assert set(outcome.data["level"]) == {"low", "middle", "high"}


def test_a_value_outside_the_categories_is_counted_on_every_engine(run_on: RunOn) -> None:
    attribute = Confidential(kind="nominal", categories=["low", "high"])
    found = int((TABLE["level"] == "middle").sum())
    with pytest.raises(DataError, match=f"{found} of 130 values are none of the declared"):
        run_on(TABLE.select("level"), Plan.published(epsilon=1, attributes={"level": attribute}))
