"""Joint clusters that last: what the file keeps, what it refuses, and which plans it goes with."""

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Confidential, DataError, FileError, Plan, PlanError, protect, protect_file
from microveil.release.key import Key
from microveil.release.ledger import Ledger, declare, declare_limit
from microveil.release.persistent import LastingClusters, declare_turnover, forget
from microveil.release.private_files import locked
from tests.conftest import Run

K = 4
NUMBER = Confidential(lower=0, upper=1000)
ROLES: dict[str, Any] = {"id": "pseudonym", "age": NUMBER, "wage": NUMBER}
PLAN = Plan.published(epsilon=1, k=4, anonymity=K, attributes=ROLES)
YEARLY = Plan.published(epsilon=1, k=4, anonymity=K, unit="id", records_per_person=4,
                        attributes=ROLES)  # fmt: skip


SYNTHETIC: dict[str, Any] = {
    "release": "synthetic", "missing": "drop",
    "attributes": {n: Confidential(kind="integer", lower=0, upper=9) for n in ("age", "wage")}
    | {"id": "identifier"},
}  # fmt: skip


def people(numbers: "range | list[int]", **more: list[Any]) -> pl.DataFrame:
    random = np.random.default_rng(1).integers(0, 1000, (500, 2))
    rows = list(numbers)
    ids = pl.Series([f"secret{number}" for number in rows])
    return pl.DataFrame({"id": ids, "age": random[rows, 0], "wage": random[rows, 1], **more})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return the paths of a new key, and of a new file of joint clusters."""
    key, joint = tmp_path / "private" / "people.key", tmp_path / "people.clusters"
    key.parent.mkdir()
    Key.make(key)
    declare_turnover(joint, 0.0)
    return key, joint


def threads_of(release: Any) -> list[str]:  # noqa: ANN401
    return pl.DataFrame(release.data)["id"].to_list()


def wave(
    data: pl.DataFrame,
    files: tuple[Path, Path],
    plan: Plan = PLAN,
    **given: Any,  # noqa: ANN401
) -> dict[str, str]:
    """Release a table; return each person's pseudonym."""
    release = protect(data, plan, key=files[0], joint=files[1], **given)
    rows = release.detail.positions
    assert isinstance(rows, np.ndarray)
    ids = data["id"].gather(rows)
    return dict(zip(ids, threads_of(release), strict=True))


def test_people_keep_pseudonyms_until_too_few_share_their_history(
    files: tuple[Path, Path],
) -> None:
    first = wave(people(range(40)), files)
    second = wave(people(range(1, 44)), files)
    third = wave(people(range(1, 44)), files)
    known = LastingClusters.read(files[1])
    kept = [one.kept for one in known.releases]
    assert (known.releases[1].new, known.releases[1].absent) == (4, 1)
    assert 0 < known.releases[1].cut < 8  # the leaver's joint cluster, of at most 2K − 1
    assert kept[1] == sum(first[p] == second[p] for p in first.keys() & second.keys())
    assert second == third
    assert known.releases[2].cut == 0
    assert known.classes.min() >= K
    assert len(set(first.values()) | set(second.values())) == len(known.threads)


def test_histories_are_shared_by_what_a_release_shows_too(files: tuple[Path, Path]) -> None:
    """Recomputed from pseudonyms and joint clusters alone, with kept values that change."""
    plan = PLAN.replace(attributes={**ROLES, "sex": "kept"})
    trails: dict[str, list[tuple[Any, ...] | None]] = {}
    for number, rows in enumerate([range(60), range(3, 66), [*range(5), *range(8, 70)]]):
        sexes = ["f" if (row + (number and row % 7 == 0)) % 2 else "m" for row in rows]
        table = people(list(rows), sex=sexes)
        release = protect(table, plan, key=files[0], joint=files[1])
        (joint,) = release.detail.joint.values()
        shown = zip(threads_of(release), np.asarray(joint)[release.detail.positions],
                    release.data["sex"], strict=True)  # fmt: skip
        for trail in trails.values():
            trail.append(None)
        for thread, label, sex in shown:
            trails.setdefault(thread, [None] * (number + 1))[-1] = int(label), sex
    shared = Counter(map(tuple, trails.values()))
    assert min(shared.values()) >= K
    assert len(shared) == len(LastingClusters.read(files[1]).classes)


def test_pseudonyms_link_nothing_made_without_the_file(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    alone = protect(people(range(20)), PLAN, key=files[0])
    lasting = wave(people(range(20)), files)
    declare_turnover(tmp_path / "other.clusters", 0.0)
    other = wave(people(range(20)), (files[0], tmp_path / "other.clusters"))
    assert not set(threads_of(alone)) & set(lasting.values())
    assert not set(other.values()) & set(lasting.values())
    assert b"secret" not in files[1].read_bytes()
    assert not any(name.encode() in files[1].read_bytes() for name in lasting.values())


@pytest.mark.parametrize("change", ["average", "DP", "DP-UM", "strata", "rules and derived"])
def test_all_ways_to_mask_and_pool(files: tuple[Path, Path], change: str) -> None:
    more: dict[str, list[Any]] = {}
    plan = {
        "average": PLAN.replace(pooling="average"),
        "DP": PLAN.replace(method="DP"),
        "DP-UM": PLAN.replace(method="DP-UM"),
        "strata": PLAN.replace(attributes={**ROLES, "where": "identifier"}, within=["where"]),
        "rules and derived": PLAN.replace(
            attributes={**ROLES, "sum": {"role": "derived", "expression": "age + wage"}},
            rules=["age <= wage"],
        ),
    }[change]
    for rows in (range(40), range(2, 44)):
        if change == "strata":
            more = {"where": ["a" if row % 2 else "b" for row in rows]}
        if change == "rules and derived":
            more = {"sum": [0] * len(rows)}
        release = protect(people(rows, **more), plan, key=files[0], joint=files[1])
        if change == "strata":
            (joint,) = release.detail.joint.values()
            assert len(set(zip(joint, more["where"], strict=True))) == len(set(joint))
    known = LastingClusters.read(files[1])
    assert known.classes.min() >= K
    assert known.releases[1].kept > 20


def visits(rows: "range | list[int]", often: Callable[[int], int]) -> pl.DataFrame:
    repeated = [row for row in rows for _ in range(often(row))]
    table = people(repeated)
    return table.with_columns(age=(table["age"] + np.arange(len(table)) * 7) % 1000)


def test_two_tables_of_one_year_share_joint_clusters_and_pseudonyms(
    files: tuple[Path, Path],
) -> None:
    """Visits first: who has as many visits; then persons, whose clusters are the same."""
    seen = protect(visits(range(60), lambda row: 1 + row % 3), YEARLY, key=files[0], joint=files[1])
    once = wave(people(range(60)), files)
    known = LastingClusters.read(files[1])
    assert known.releases[1].cut == 0
    assert set(threads_of(seen)) == set(once.values())
    joined = seen.data.join(pl.DataFrame({"id": list(once.values())}), on="id")
    assert len(joined) == len(seen.data)
    sizes = Counter(Counter(threads_of(seen)).values())
    assert sizes == {1: 20, 2: 20, 3: 20}
    assert known.classes.min() >= K
    wave(visits(range(60), lambda row: 1 + row % 3 if row % 20 else 1), files, YEARLY)
    known = LastingClusters.read(files[1])
    assert known.classes.min() >= K
    assert 0 < known.releases[2].cut < 30


def test_records_of_units_are_exchanged_in_places_with_one_kept_value(
    files: tuple[Path, Path],
) -> None:
    """Half of the persons have their records the other way round, and look alike all the same."""
    table = visits(range(40), lambda _: 2)
    kinds = [kind for row in range(40) for kind in ("xy" if row % 2 else "yx")]
    plan = YEARLY.replace(attributes={**ROLES, "kind": "kept"})
    release = protect(table.with_columns(kind=pl.Series(kinds)), plan, key=files[0], joint=files[1])
    (joint,) = release.detail.joint.values()
    assert len(set(zip(joint, kinds, strict=True))) == len(set(joint)) > 2
    ways = {way for label in set(joint) for way in np.flatnonzero(np.asarray(joint) == label) % 4}
    assert ways == {0, 1, 2, 3}
    assert len(LastingClusters.read(files[1]).classes) < 40 / K + 1


def test_which_values_are_missing_changes_places_by_chance(files: tuple[Path, Path]) -> None:
    """Of n in a joint cluster m lack a value: m²/n of them, on average, are without one again."""
    plan, gaps = PLAN.replace(missing="keep"), [None if row % 4 == 0 else row for row in range(200)]
    table = people(range(200)).with_columns(wage=pl.Series(gaps))
    was, again, expected, variance = table["wage"].is_null(), 0, 0.0, 0.0
    for seed in range(3):
        release = protect(table, plan, key=files[0], joint=files[1], seed=seed)
        rows = release.detail.positions
        assert isinstance(rows, np.ndarray)
        again += int((was.gather(rows) & release.data["wage"].is_null()).sum())
        (joint,) = release.detail.joint.values()
        size, lack = np.bincount(joint), np.bincount(joint, weights=was.to_numpy())
        expected += float(np.sum(lack**2 / size))
        variance += float(np.sum((lack * (size - lack) / size) ** 2 / (size - 1)))
    assert abs(again - expected) < 4 * variance**0.5 < 150 - expected


def test_a_correction_of_an_earlier_release_and_people_who_come_back(
    files: tuple[Path, Path],
) -> None:
    first = wave(people(range(40)), files)
    wave(people(range(3, 50)), files)
    corrected = people(range(40)).with_columns(wage=pl.col("wage").reverse())
    third = wave(corrected, files)
    known = LastingClusters.read(files[1])
    assert known.classes.min() >= K
    assert sum(first[p] == third[p] for p in first) >= 20
    assert not any(third[f"secret{p}"] == first[f"secret{p}"] for p in range(3))  # they had ended


def test_a_file_larger_than_memory(files: tuple[Path, Path], tmp_path: Path) -> None:
    people(range(40)).write_csv(tmp_path / "in.csv")
    written = protect_file(
        tmp_path / "in.csv", PLAN, tmp_path / "out.csv", key=files[0], joint=files[1]
    )
    before = set(pl.read_csv(written.protected)["id"])
    assert before == set(wave(people(range(40)), files).values())
    assert written.threads[0].new == 40
    assert written.certified.lasting == 0


def test_a_seeded_release_and_one_that_fails_leave_the_file_as_it_was(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    before = files[1].read_bytes()
    wave(people(range(40)), files, seed=1)
    with pytest.raises(KeyboardInterrupt):
        wave(people(range(40)), files, progress=_interrupt)
    declare(tmp_path / "l.json", 5)
    people(range(40)).write_csv("in.csv")
    PLAN.write("plan.toml")
    command = (
        f"protect in.csv --plan plan.toml --ledger {tmp_path / 'l.json'} --key-file {files[0]} "
        f"--joint {files[1]} --no-verdict -o out.csv"
    )
    monkeypatch.setattr("microveil.release.store.write_table", _full)
    code, _, err = run(command)
    assert (code, err) == (1, "error: no space left\n")
    assert files[1].read_bytes() == before
    assert Ledger.read(tmp_path / "l.json").releases == ()


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _full(*_: object) -> None:
    raise FileError("no space left")


def test_from_the_command_line(run: Run) -> None:
    Path("private").mkdir()
    run("key private/people.key")
    people(range(60)).write_csv("one.csv")
    people(range(2, 64)).write_csv("two.csv")
    PLAN.write("plan.toml")
    command = "--plan plan.toml --key-file private/people.key --joint people.clusters --no-verdict"
    code, _, err = run(f"protect one.csv {command} -o one.parquet")
    assert code == 1
    assert "create it once for these people with: microveil joint people.clusters" in err
    assert run("joint people.clusters --turnover 0.03")[1] == (
        "Expected turnover 0.03. No release yet.\n"
    )
    out = run(f"protect one.csv {command} -o one.parquet")[1]
    assert "60 are new and get a pseudonym." in out
    out = run(f"protect two.csv {command} -o two.parquet")[1]
    assert "4 are new, and " in out
    shown = " ".join(run("joint people.clusters")[1].split())
    assert f"shares its history in all releases with {K - 1} others or more" in shown
    last = LastingClusters.read("people.clusters").releases[-1]
    assert f"{last.id} {last.made} 62 {last.kept} {last.cut} 4 2" in shown
    certificate = Path("two.certificate.json").read_text()
    assert '"lasting": 1' in certificate
    assert "It covers what the pseudonyms in id link" in certificate
    assert "It is about one record on its own" not in certificate
    assert run(f"joint people.clusters --withdraw {last.id}")[0] == 0
    assert [one.new for one in LastingClusters.read("people.clusters").releases] == [60]
    assert "has no release 'x'" in run("joint people.clusters --withdraw x")[2]
    code, _, err = run(f"protect two.csv {command} --keep-order -o three.parquet")
    assert "needs rows in random order" in err


def test_a_release_taken_out_was_never_there(files: tuple[Path, Path]) -> None:
    first = wave(people(range(40)), files)
    before = LastingClusters.read(files[1])
    wave(people(range(5, 50)), files)
    after = forget(files[1], LastingClusters.read(files[1]).releases[1].id)
    assert after.threads.equals(before.threads)
    assert wave(people(range(40)), files) == first


# What is refused


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda _: b"", "damaged, or not a file of joint clusters"),
        (lambda content: content[:-3], "damaged"),
        (lambda content: content.replace(b'"kept":0', b'"kept":1'), "damaged"),
        (lambda content: content.replace(b"clusters 1", b"clusters 9"), "another version"),
        (lambda _: b"id,age\n1,2\n3,4\n", "damaged, or not"),
    ],
)
def test_a_damaged_file_is_an_error_and_stays_as_it_is(
    files: tuple[Path, Path], damage: Callable[[bytes], bytes], message: str
) -> None:
    wave(people(range(20)), files)
    files[1].write_bytes(damage(files[1].read_bytes()))
    before = files[1].read_bytes()
    for change in (lambda: wave(people(range(20)), files), lambda: declare_turnover(files[1], 0.1)):
        with pytest.raises(FileError, match=message):
            change()
    assert files[1].read_bytes() == before
    assert sorted(path.name for path in files[1].parent.iterdir() if "lock" not in path.name) == [
        "people.clusters", "private",
    ]  # fmt: skip


def test_another_key_other_people_and_a_second_process(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    wave(people(range(20)), files)
    other = Key.make(files[0].with_name("other.key")).path
    assert other is not None
    before = files[1].read_bytes()
    with pytest.raises(PlanError, match=r"the key is not the one that people\.clusters was begun"):
        wave(people(range(20)), (other, files[1]))
    with pytest.raises(DataError, match="none of its 30 persons is in"):
        wave(people(range(100, 130)), files)
    monkeypatch.setattr("microveil.release.private_files._PATIENCE", 0.05)
    with locked(files[1], "joint clusters"):
        found: list[BaseException] = []
        thread = threading.Thread(target=lambda: found.append(_refused(files)))
        thread.start()
        thread.join()
    assert "another process has been using it" in str(found[0])
    assert files[1].read_bytes() == before


def test_a_run_that_is_killed_leaves_the_file_as_it_was_and_free(files: tuple[Path, Path]) -> None:
    first = wave(people(range(20)), files)
    before = files[1].read_bytes()
    PLAN.write(files[0].with_name("plan.toml"))
    program = (
        "import os, sys; from microveil import Plan; from microveil.release.key import Key;"
        "from microveil.release.persistent import joining;"
        "held = joining(Plan.read(sys.argv[1]), sys.argv[3], Key.read(sys.argv[2]), None, "
        "keep_order=False); held.__enter__(); os.kill(os.getpid(), 9)"
    )
    arguments = [str(files[0].with_name("plan.toml")), *map(str, files)]
    ended = subprocess.run([sys.executable, "-c", program, *arguments], check=False)  # noqa: S603
    assert ended.returncode == -9
    assert files[1].read_bytes() == before
    assert wave(people(range(20)), files) == first


def _refused(files: tuple[Path, Path]) -> BaseException:
    with pytest.raises(FileError) as raised:
        wave(people(range(20)), files)
    return raised.value


def test_persons_who_stand_out_are_counted_and_refused(files: tuple[Path, Path]) -> None:
    twice = people([*range(20), 3, 4])
    with pytest.raises(DataError, match=r"'id': 2 records are of persons who have others.*unit"):
        wave(twice, files)
    unnamed = people(range(20)).with_columns(id=pl.Series(["a", None] * 10))
    with pytest.raises(DataError, match=r"missing in 10 of 20 records, and --joint needs"):
        wave(unnamed, files)
    kept = PLAN.replace(attributes={**ROLES, "town": "kept"})
    with pytest.raises(DataError, match=r"3 persons can be told .* fewer than anonymity = 4 have"):
        wave(people(range(20), town=["x"] * 17 + ["y"] * 3), files, kept)
    with pytest.raises(DataError, match=r"2 persons can be told .* have as many records and the"):
        wave(visits(range(20), lambda row: 2 if row < 2 else 1), files, YEARLY)
    assert LastingClusters.read(files[1]).releases == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attributes": {**ROLES, "mother": "pseudonym"}}, 'one attribute with role = "pseudonym"'),
        ({"anonymity": 0}, "all confidential attributes in one group"),
        ({"groups": [["age"], ["wage"]]}, "all confidential attributes in one group"),
        ({"attributes": {**ROLES, "on": "shifted"}}, "cannot be used with shifted dates"),
        ({"attributes": {**ROLES, "home": "identifier"}, "unit": "home"}, "the unit must be the"),
        (SYNTHETIC, r"--joint needs records that are masked, but release = "),
        ({"anonymity": 5}, "anonymity must be 4 as in the earlier releases"),
    ],
)
def test_plans_that_tell_persons_apart_are_refused_before_anything_is_read(
    files: tuple[Path, Path], tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    wave(people(range(20)), files)
    key = None if change is SYNTHETIC else files[0]
    with pytest.raises(PlanError, match=message):
        protect(tmp_path / "none.csv", PLAN.replace(**change), key=key, joint=files[1])


def test_spark_is_refused_before_any_work(files: tuple[Path, Path], tmp_path: Path) -> None:
    frame = type("DataFrame", (), {"__module__": "pyspark.sql.dataframe"})()
    with pytest.raises(PlanError, match="kept on one machine, not on Spark"):
        protect(frame, PLAN, key=files[0], joint=files[1])
    declare(tmp_path / "l.json", 5)
    declare_limit(tmp_path / "l.json", 0.5)
    with pytest.raises(PlanError, match=r"and not on Spark; change the plan, or use a ledger"):
        protect(frame, PLAN, key=files[0], ledger=tmp_path / "l.json")


def test_only_its_owner_can_read_it_and_bad_settings_are_refused(files: tuple[Path, Path]) -> None:
    os.chmod(files[1], 0o644)  # noqa: PTH101
    wave(people(range(20)), files)
    assert files[1].stat().st_mode & 0o777 == 0o600
    for wrong in (1.0, -0.1, float("nan")):
        with pytest.raises(PlanError, match="turnover must be from 0 to below 1"):
            declare_turnover(files[1], wrong)
    with pytest.raises(FileError, match="the directory does not exist"):
        declare_turnover(files[1].parent / "none" / "c", 0.0)
