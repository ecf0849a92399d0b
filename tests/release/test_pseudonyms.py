"""Pseudonyms and shifted dates: the same for the same person and key, and nothing without it."""

import hmac
import os
import sys
from base64 import b32encode
from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from microveil import (
    Confidential,
    DataError,
    Derived,
    FileError,
    Plan,
    PlanError,
    Pseudonym,
    Shifted,
    protect,
    protect_file,
    verdict,
)
from microveil.release.key import Key
from microveil.show.verdicts import verdict_lines
from microveil.show.words.certificate_words import level_statement
from tests.conftest import Run

AGE = Confidential(kind="integer", lower=0, upper=120)
PLAN = Plan.published(epsilon=1, k=3, method="DP-UM", records_per_person=2,
            attributes={"id": "pseudonym", "age": AGE})  # fmt: skip
DAYS = [date(2020, 1, 1) + timedelta(days=31 * i) for i in range(12)]
IDS = ["anna", "bert", "anna", None, *"cdefghij"[:8]]
VISITS = pl.DataFrame({"id": [*"aabbccddeeff"], "age": range(12), "visit": DAYS})
ROLES = {"id": Pseudonym(), "age": AGE, "visit": Shifted()}
MOVED = Plan.published(epsilon=1, k=3, method="DP-UM", records_per_person=2, attributes=ROLES)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """Return the path of a new key, in a directory of its own."""
    (tmp_path / "private").mkdir()
    path = tmp_path / "private" / "people.key"
    Key.make(path)
    return path


def pseudonyms(data: Any, key: Path, plan: Plan = PLAN) -> list[str | None]:  # noqa: ANN401
    released: list[str | None] = pl.DataFrame(protect(data, plan, key=key, keep_order=True).data)[
        "id"
    ].to_list()
    return released


def test_a_pseudonym_is_128_bits_of_hmac_sha_256(key: Path) -> None:
    secret = bytes.fromhex(key.read_text().split()[-1])
    digest = hmac.new(secret, b"pseudonym\0anna", "sha256").digest()
    expected = "p" + b32encode(digest[:16]).decode().rstrip("=").lower()
    found = pseudonyms(pl.DataFrame({"id": IDS, "age": range(12)}), key)
    assert found[0] == found[2] == expected
    assert found[3] is None
    assert len(set(found)) == 11


def test_the_same_person_has_the_same_in_all_tables_made_with_one_key(
    key: Path, tmp_path: Path
) -> None:
    numbers = list(range(7, 19))
    tables: list[Any] = [
        pl.DataFrame({"id": numbers, "age": range(12)}),
        pl.DataFrame({"id": list(map(str, numbers)), "age": range(12)}),
        pd.DataFrame({"id": map(float, numbers), "age": range(12)}),
        pa.table({"id": numbers, "age": range(12)}),
        pd.DataFrame({"id": pd.Categorical([*map(str, numbers)]), "age": range(12)}),
    ]
    tables[0].write_csv(tmp_path / "people.csv")
    found = [pseudonyms(table, key) for table in [*tables, tmp_path / "people.csv"]]
    assert all(one == found[0] for one in found)
    written = protect_file(
        tmp_path / "people.csv", PLAN, tmp_path / "out.csv", key=key, keep_order=True
    )
    assert pl.read_csv(written.protected)["id"].to_list() == found[0]
    other = Key.make(key.with_name("other.key")).path
    assert other is not None
    assert not set(pseudonyms(tables[0], other)) & set(found[0])


def test_nothing_released_holds_the_identifier(key: Path, tmp_path: Path) -> None:
    ids = pd.Categorical([f"secret{i}" for i in range(12)])
    release = protect(pd.DataFrame({"id": ids, "age": range(12)}), PLAN, key=key)
    release.write(tmp_path / "out.parquet")
    assert b"secret" not in (tmp_path / "out.parquet").read_bytes()
    assert "secret" not in release.certificate.to_json()
    assert repr(release.key).count("secret=") == 0


def test_epsilon_is_that_of_a_person_so_records_are_counted(key: Path) -> None:
    with pytest.raises(DataError, match=r"up to 2 records .*, got records_per_person = 1; set it"):
        protect(VISITS, MOVED.replace(records_per_person=1), key=key)
    roles = {"id": Pseudonym(), "mother": Pseudonym(), "age": AGE}
    family = VISITS.select("age", id=pl.col("age"), mother="id")  # who is the person is not known
    protect(family, MOVED.replace(records_per_person=1, attributes=roles), key=key)


def test_a_release_says_what_pseudonyms_give_away(key: Path) -> None:
    table = VISITS.vstack(VISITS)
    release = protect(table, MOVED.replace(anonymity=4, records_per_person=4), key=key)
    certificate = release.certificate
    assert certificate.pseudonyms == ("id",)
    assert certificate.shifted == {"visit": 182}
    exposed = " ".join(certificate.reading["What is not protected"])
    assert (
        "Which records belong to one person, here and in every table made with the same" in exposed
    )
    assert "an attacker who knows one date of a person can work out all the others" in exposed
    released = level_statement(certificate, certificate.levels[2])
    assert "It is about one record on its own" in released
    assert "as visit (shifted by days) can" in released
    found = verdict(table, release, seed=1)
    assert {"Pseudonyms", "Moved dates"} <= dict(verdict_lines(found)).keys()
    assert "linkage.informed" not in [f.measure for f in found.figures]  # dates tell rows apart
    assert "pooling leaves nobody" not in str(list(verdict_lines(found)))
    with pytest.raises(DataError, match="in the release without the key"):
        verdict(table, release, known=["id"])


def test_the_key_is_needed_and_only_where_it_is_used(key: Path, tmp_path: Path) -> None:
    table = pl.DataFrame({"id": IDS, "age": range(12)})
    with pytest.raises(PlanError, match=r"need a key file.*microveil key people\.key"):
        protect(table, PLAN)
    with pytest.raises(FileError, match="no such file; create one with: microveil key"):
        protect(table, PLAN, key=tmp_path / "none.key")
    with pytest.raises(PlanError, match='the plan has no attribute with role = "pseudonym"'):
        protect(
            table, Plan.published(epsilon=1, k=3, attributes={"id": "kept", "age": AGE}), key=key
        )
    first, second = (protect(table, PLAN, seed=1, keep_order=True).data["id"] for _ in range(2))
    assert not first.equals(second)  # made with keys that are thrown away


def test_a_key_beside_the_release_is_refused(key: Path, tmp_path: Path) -> None:
    table = pl.DataFrame({"id": IDS, "age": range(12)})
    release = protect(table, PLAN, key=key)
    (tmp_path / "link").symlink_to(key.parent)
    for folder in (key.parent, tmp_path / "link"):
        with pytest.raises(FileError, match="in the directory of the release"):
            release.write(folder / "out.csv")
        assert not (folder / "out.csv").exists()
    table.write_csv(tmp_path / "in.csv")
    with pytest.raises(FileError, match="in the directory of the release"):
        protect_file(tmp_path / "in.csv", PLAN, key.parent / "out.csv", key=key)
    release.write(tmp_path / "out.csv")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_a_key_is_private_and_never_replaced(key: Path) -> None:
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    with pytest.raises(FileError, match="never replaced"):
        Key.make(key)
    assert key.read_bytes() == before
    os.chmod(key, 0o640)  # noqa: PTH101
    with pytest.raises(FileError, match=r"other users can read it.*chmod 600"):
        Key.read(key)
    os.chmod(key, 0o600)  # noqa: PTH101
    key.write_bytes(before[:-5])
    with pytest.raises(FileError, match="damaged"):
        Key.read(key)


def test_all_dates_of_a_person_move_by_one_number_of_days(key: Path, tmp_path: Path) -> None:
    VISITS.write_parquet(tmp_path / "in.parquet")
    moved = protect(VISITS, MOVED, key=key, keep_order=True).data["visit"]
    days = (moved - VISITS["visit"]).dt.total_days().to_list()
    assert all(first == second for first, second in zip(days[::2], days[1::2], strict=True))
    assert len(set(days)) > 1
    assert all(-182 <= number <= 182 for number in days)
    times = VISITS.with_columns(
        pl.col("visit").cast(pl.Datetime("ns", "Europe/Oslo")) + pl.duration(nanoseconds=1)
    )
    later = protect(times, MOVED, key=key, keep_order=True).data["visit"]
    assert (later - times["visit"]).dt.total_days().to_list() == days
    assert later.dtype == times["visit"].dtype
    pandas = protect(times.to_pandas(), MOVED, key=key, keep_order=True).data["visit"]
    assert str(pandas.dtype) == str(times.to_pandas()["visit"].dtype)
    written = protect_file(
        tmp_path / "in.parquet", MOVED, tmp_path / "out.parquet", key=key, keep_order=True
    )
    assert pl.read_parquet(written.protected)["visit"].to_list() == moved.to_list()


def test_every_number_of_days_is_as_likely() -> None:
    key = Key(bytes(32))
    counts = Counter(key.shift(str(person), 3) for person in range(7_000))
    assert sorted(counts) == [-3, -2, -1, 0, 1, 2, 3]
    chi_squared = sum((count - 1000) ** 2 / 1000 for count in counts.values())
    assert chi_squared < 22.5  # 0.1% of those with six degrees of freedom are above it


def test_what_cannot_be_moved_or_named_is_refused(key: Path) -> None:
    last = VISITS.with_columns(visit=pl.lit(date(9999, 12, 31)))
    with pytest.raises(DataError, match="would fall outside the calendar"):
        protect(last, MOVED, key=key)
    unknown = VISITS.with_columns(id=pl.lit(None, dtype=pl.String))
    with pytest.raises(DataError, match=r"'id' is missing in 12 records"):
        protect(unknown, MOVED, key=key)
    with pytest.raises(DataError, match="only dates and times with a date can be shifted"):
        protect(VISITS.with_columns(visit=pl.lit("x")), MOVED, key=key)
    with pytest.raises(DataError, match="found other values; convert the column to text"):
        protect(VISITS.with_columns(id=pl.col("age") + 0.5), MOVED, key=key)
    with pytest.raises(DataError, match="text or whole numbers, found times"):
        protect(VISITS.with_columns(id=pl.lit(datetime(2020, 1, 1))), MOVED, key=key)


def test_what_a_plan_may_not_ask_for() -> None:
    with pytest.raises(PlanError, match='need one attribute with role = "pseudonym"'):
        Plan.published(epsilon=1, attributes={"age": AGE, "visit": "shifted"})
    with pytest.raises(PlanError, match="days must be from 1 to 36,500, got 0"):
        Shifted(days=0)
    with pytest.raises(PlanError, match="names 'id', a pseudonym"):
        MOVED.replace(attributes={**MOVED.attributes, "x": Derived(expression="age + id")})
    assert Plan.from_toml(MOVED.to_toml()) == MOVED
    text = MOVED.to_toml().replace('role = "shifted"', 'role = "shifted"\nshift = "per-unit"')
    assert Plan.from_toml(text) == MOVED


def test_from_the_command_line(run: Run) -> None:
    VISITS.write_csv("in.csv")
    Path("plan.toml").write_text(MOVED.to_toml())
    command = "protect in.csv --plan plan.toml -q --no-verdict -o out.csv"
    assert "microveil key people.key" in run(command)[2]
    assert run("key people.key")[0] == 0
    code, _, err = run(f"{command} --key-file people.key")
    assert (code, "in the directory of the release" in err) == (1, True)
    Path("safe").mkdir()
    Path("people.key").rename("safe/people.key")
    assert run(f"{command} --key-file safe/people.key") == (0, "", "")
    assert sorted(Counter(pl.read_csv("out.csv")["id"]).values()) == [2] * 6
