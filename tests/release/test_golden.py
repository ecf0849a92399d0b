"""Seeded releases of twenty plans do not change unless a change is meant to change them.

After such a change, write the expected digests again: `python tests/release/test_golden.py`.
"""

import json
import sys
import tempfile
import warnings
from datetime import date, datetime, time, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, Derived, Group, Plan, PrivacyWarning, protect, protect_file

EXPECTED = Path(__file__).with_name("golden.json")
SEED = 20


def table() -> pl.DataFrame:
    """Make columns of every kind, with ties, gaps and missing values."""
    random = np.random.default_rng(11)
    n = 403
    days = [date(1950, 1, 1) + timedelta(days=int(d)) for d in random.integers(0, 20_000, n)]
    whole = pl.DataFrame(
        {
            "id": [f"P{i}" for i in range(n)],
            "region": random.choice(["N", "S", "W"], n),
            "age": random.integers(0, 95, n),
            "wages": random.lognormal(9, 1, n).round(2),
            "rate": pl.Series(random.random(n), dtype=pl.Float32),
            "born": days,
            "seen": [datetime(2020, 1, 1) + timedelta(seconds=int(s)) for s in
                     random.integers(0, 10**7, n)],
            "woke": [time(int(h), int(m)) for h, m in
                     zip(random.integers(4, 10, n), random.integers(0, 60, n), strict=True)],
            "school": random.choice(["low", "middle", "high"], n, p=[0.5, 0.3, 0.2]),
            "job": random.choice(["nurse", "doctor", "smith", "baker"], n),
            "member": random.random(n) < 0.3,
            "code": random.choice([3, 5, 8], n),
            "visits": [None if i % 7 == 0 else int(v) for i, v in enumerate(random.poisson(3, n))],
            "weight": [None if i % 11 == 5 else round(float(v), 1)
                       for i, v in enumerate(random.normal(70, 12, n))],
        }
    )  # fmt: skip
    return whole.with_columns(total=pl.col("age") + pl.col("visits"))


ROLES: dict[str, Any] = {
    "id": "identifier",
    "region": "kept",
    "age": Confidential(lower=0, upper=120),
    "wages": Confidential(lower=0, upper=500_000, decimals=2),
    "rate": Confidential(lower=0.0, upper=1.0),
    "born": Confidential(lower=date(1900, 1, 1), upper=date(2020, 1, 1)),
    "seen": Confidential(lower=date(2020, 1, 1), upper=date(2021, 1, 1), time_step="minute"),
    "woke": Confidential(lower=time(0), upper=time(12)),
    "school": Confidential(kind="ordinal", categories=["low", "middle", "high"]),
    "job": Confidential(kind="nominal", taxonomy={"health": ["nurse", "doctor"],
                                                  "craft": ["smith", "baker"]}),
    "member": Confidential(kind="nominal", categories=[False, True]),
    "code": Confidential(kind="nominal", categories=[3, 5, 8]),
    "visits": Confidential(lower=0, upper=40, budget_share=2.0),
    "weight": Confidential(lower=20, upper=300, decimals=1),
    "total": Derived(expression="age + visits"),
}  # fmt: skip
UNDECLARED: dict[str, Any] = {
    **ROLES, "age": "confidential", "wages": Confidential(decimals=2), "rate": "confidential",
    "born": "confidential", "seen": "confidential", "woke": "confidential",
    "job": Confidential(kind="nominal"), "code": Confidential(kind="nominal"),
    "visits": Confidential(resolution=0.5), "weight": "confidential",
}  # fmt: skip
NUMBERS = ("age", "wages", "rate", "born", "seen", "woke", "visits", "weight")
KEEP: dict[str, Any] = {"missing": "keep", "attributes": ROLES}
DROP: dict[str, Any] = {"missing": "drop", "attributes": ROLES}


def of_own_k(**ks: Any) -> dict[str, Any]:  # noqa: ANN401 - numbers or "auto"
    settings = {n: ROLES[n].model_dump(exclude_defaults=True) | {"k": k} for n, k in ks.items()}
    return {**ROLES, **{n: Confidential(**s) for n, s in settings.items()}}


PLANS: dict[str, Plan] = {
    "cbls": Plan.published(epsilon=3, **KEEP),
    "cbls drop": Plan.published(epsilon=3, k=7, **DROP),
    "cbls undeclared": Plan.published(epsilon=2, k=5, missing="keep", attributes=UNDECLARED),
    "cbls re-clustered": Plan.published(epsilon=2, guarantee="re-clustered", **KEEP),
    "cbls isotonic": Plan.published(epsilon=1, post="isotonic", **KEEP),
    "cbls least-squares": Plan.published(
        epsilon=3, partition="least-squares", post="penalised-isotonic", **DROP
    ),
    "cbls trimmed": Plan.published(epsilon=2, k=8, trim=0.2, missing="keep", attributes=UNDECLARED),
    "cbls trimmed re-clustered": Plan.published(
        epsilon=2, guarantee="re-clustered", trim=0.1, **KEEP
    ),
    "cbls persons": Plan.published(epsilon=3, records_per_person=2, **KEEP),
    "recommended": Plan(epsilon=3, anonymity=10, **KEEP),
    "recommended small": Plan(epsilon=0.2, anonymity=10, **DROP),
    "auto k": Plan.published(
        epsilon=3, post="penalised-isotonic", missing="keep",
        attributes=of_own_k(**dict.fromkeys(NUMBERS, "auto"), school=10),
    ),
    "ls": Plan.published(epsilon=3, method="iDP-LS", **KEEP),
    "ls re-clustered": Plan.published(
        epsilon=3, method="iDP-LS", guarantee="re-clustered", k=20, **KEEP
    ),
    "ls noise-optimal": Plan.published(
        epsilon=3, method="iDP-LS", partition="noise-optimal", cap=60, **DROP
    ),
    "ls from data": Plan.published(
        epsilon=2, method="iDP-LS", missing="keep", attributes=UNDECLARED
    ),
    "um": Plan.published(epsilon=3, method="DP-UM", **KEEP),
    "um re-clustered": Plan.published(
        epsilon=3, method="DP-UM", guarantee="re-clustered", k=30, **DROP
    ),
    "um from data": Plan.published(
        epsilon=2, method="DP-UM", domain_from_data=True, missing="keep", attributes=UNDECLARED
    ),
    "dp": Plan.published(epsilon=6, method="DP", **KEEP),
    "dp persons": Plan.published(epsilon=6, method="DP", records_per_person=3, **DROP),
    "own methods": Plan.published(
        epsilon=3, missing="keep",
        attributes={**ROLES, "age": Confidential(method="DP", lower=0, upper=120),
                    "job": Confidential(method="DP-UM", kind="nominal",
                                        categories=["nurse", "doctor", "smith", "baker"])},
    ),
    "exchange": Plan.published(epsilon=3, anonymity=6, **DROP),
    "groups": Plan.published(
        epsilon=3, anonymity=5, pooling="average",
        groups=[["age", "school", "job"],
                Group(attributes=["born", "seen"], anonymity=4, pooling="exchange")],
        **KEEP,
    ),
}  # fmt: skip
FROM_FILES = ("cbls", "cbls drop", "cbls trimmed", "recommended", "ls re-clustered", "dp", "groups")


def digest(frame: pl.DataFrame) -> str:
    """Digest types and values; a CSV file's columns are read as those of the table."""
    like = table().select(frame.columns).schema
    text = frame.cast(like).write_csv() + str(dict(like))
    return sha256(text.encode()).hexdigest()


def in_memory(name: str) -> str:
    return digest(protect(table(), PLANS[name], seed=SEED, keep_order=True).data)


def from_file(name: str, suffix: str, folder: Path) -> str:
    """Protect a file a column at a time, rows in random order; CSV has no times of day."""
    source, output, people = folder / f"in{suffix}", folder / f"out{suffix}", table().drop("woke")
    people.write_csv(source) if suffix == ".csv" else people.write_parquet(source)
    plan = PLANS[name]
    timeless = {
        attribute: role for attribute, role in plan.attributes.items() if attribute != "woke"
    }
    protect_file(source, plan.replace(attributes=timeless), output, seed=SEED)
    if suffix == ".csv":
        return digest(pl.read_csv(output, schema_overrides=table().schema))
    return digest(pl.read_parquet(output))


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("name", PLANS)
def test_a_table_in_memory(name: str) -> None:
    assert in_memory(name) == json.loads(EXPECTED.read_text())[name]


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("name", FROM_FILES)
def test_a_file_a_column_at_a_time(name: str, suffix: str, tmp_path: Path) -> None:
    assert from_file(name, suffix, tmp_path) == json.loads(EXPECTED.read_text())[f"{name}{suffix}"]


if __name__ == "__main__":
    warnings.simplefilter("ignore", PrivacyWarning)
    digests = {name: in_memory(name) for name in PLANS}
    for name in FROM_FILES:
        for suffix in (".parquet", ".csv"):
            with tempfile.TemporaryDirectory() as folder:
                digests[f"{name}{suffix}"] = from_file(name, suffix, Path(folder))
    EXPECTED.write_text(json.dumps(digests, indent=2) + "\n")
    sys.stdout.write(f"wrote {len(digests)} digests\n")
