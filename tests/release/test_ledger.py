"""The ledger: releases of the same people keep to one budget, whatever happens to their runs."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from microveil import (
    Confidential,
    FileError,
    Plan,
    PlanError,
    protect,
    protect_file,
)
from microveil.formats import sha256_of
from microveil.release.key import Key
from microveil.release.ledger import Ledger, declare, declare_limit, reserved, withdraw
from microveil.release.persistent import declare_turnover
from microveil.show.words.certificate_words import ledger_statement
from tests.conftest import Run

PEOPLE = pl.DataFrame({"age": range(20, 80), "wage": range(0, 6000, 100)})
ATTRIBUTES = {"age": Confidential(lower=0, upper=120), "wage": Confidential(lower=0, upper=9999)}


def plan(epsilon: float = 1.0, **settings: str | Path) -> Plan:
    return Plan.published(epsilon=epsilon, k=5, attributes=ATTRIBUTES, **settings)  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Return the path of a ledger with a budget of 3."""
    path = tmp_path / "people.ledger.json"
    declare(path, 3.0)
    return path


def test_releases_add_up_until_the_budget_is_spent(ledger: Path) -> None:
    first = protect(PEOPLE, plan(2.0), ledger=ledger).certificate.ledger
    only_age = Plan.published(epsilon=1, k=5, attributes={"age": "confidential"})
    second = protect(PEOPLE.select("age"), only_age, ledger=ledger).certificate.ledger
    assert first is not None
    assert second is not None
    assert (first.releases_before, first.epsilon_before, first.epsilon_after) == (0, 0.0, 2.0)
    assert (second.releases_before, second.epsilon_before, second.epsilon_after) == (1, 2.0, 3.0)
    assert second.budget == 3.0
    assert second.attributes_before == {"age": 1.0}
    assert "1 release of these people spent epsilon 2 of a declared budget of 3; with" in (
        ledger_statement(second, 1.0)
    )
    found = Ledger.read(ledger)
    assert [one.attributes for one in found.releases] == [{"age": 1.0, "wage": 1.0}, {"age": 1.0}]
    assert found.spent_on("age") == 2.0
    assert found.level(1) == 3.0
    with pytest.raises(PlanError, match=r"budget of 3: 0 after 2 releases, got 0\.01"):
        protect(PEOPLE, plan(0.01), ledger=ledger)


def test_it_is_refused_before_anything_is_read(ledger: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="budget"):
        protect(tmp_path / "none.csv", plan(3.5), ledger=ledger)
    PEOPLE.write_csv(tmp_path / "people.csv")
    with pytest.raises(PlanError, match="budget"):
        protect_file(tmp_path / "people.csv", plan(3.5), tmp_path / "out.csv", ledger=ledger)
    assert not (tmp_path / "out.csv").exists()


def test_three_tenths_are_three_tenths(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    declare(path, 0.3)
    for _ in range(3):
        protect(PEOPLE, plan(0.1), ledger=path)
    assert Ledger.read(path).left == 0.0


def test_runs_at_the_same_time_do_not_spend_the_same_rest(ledger: Path) -> None:
    def spend(_: int) -> bool:
        try:
            protect(PEOPLE, plan(1.0), ledger=ledger)
        except PlanError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(spend, range(8)))
    assert sum(done) == 3
    assert Ledger.read(ledger).spent == 3.0


def test_a_run_that_fails_gives_back_what_it_reserved(ledger: Path) -> None:
    def fail(*_: object) -> None:
        assert Ledger.read(ledger).spent == 2.0
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        protect(PEOPLE, plan(2.0), ledger=ledger, progress=fail)
    assert Ledger.read(ledger).releases == ()


def test_a_run_that_is_killed_counts_until_it_is_withdrawn(ledger: Path) -> None:
    program = (
        "import os; from microveil import Plan; from microveil.release.ledger import reserved;"
        f"held = reserved(Plan.published(epsilon=2.5, attributes={{'x': 'confidential'}}), "
        f"{str(ledger)!r}, None); held.__enter__(); os.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False)  # noqa: S603
    assert ended.returncode == -9
    with pytest.raises(PlanError, match=r"0\.5 after 1 release \(1 of them still running, or kil"):
        protect(PEOPLE, plan(1.0), ledger=ledger)
    (killed,) = Ledger.read(ledger).releases
    assert killed.state == "running"
    with pytest.raises(PlanError, match="no release 'other'"):
        withdraw(ledger, "other")
    withdraw(ledger, killed.id)
    protect(PEOPLE, plan(3.0), ledger=ledger)
    assert [one.state for one in Ledger.read(ledger).releases] == ["withdrawn", "released"]


def test_files_are_entered_by_their_digest(ledger: Path, tmp_path: Path) -> None:
    release = protect(PEOPLE, plan(), ledger=ledger)
    for name in ("one.csv", "two.parquet"):
        written = release.write(tmp_path / name)
        assert written.certified.ledger == release.certificate.ledger
    (one,) = Ledger.read(ledger).releases
    expected = [(name, sha256_of(tmp_path / name)) for name in ("one.csv", "two.parquet")]
    assert [(file.name, file.sha256) for file in one.files] == expected
    assert release.certificate.reading["Ledger"][0].startswith("This is the first release of")


def test_a_large_file_is_entered_too(ledger: Path, tmp_path: Path) -> None:
    PEOPLE.write_csv(tmp_path / "people.csv")
    written = protect_file(tmp_path / "people.csv", plan(ledger=ledger), tmp_path / "out.csv")
    (one,) = Ledger.read(ledger).releases
    assert [file.sha256 for file in one.files] == [sha256_of(written.protected)]
    assert written.certified.ledger is not None


def test_what_is_seeded_spends_nothing(ledger: Path) -> None:
    assert protect(PEOPLE, plan(9.0), ledger=ledger, seed=1).certificate.ledger is None
    assert Ledger.read(ledger).releases == ()


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: "",
        lambda _: "{}",
        lambda _: "[]",
        lambda text: text[:-20],
        lambda text: text.replace("2.0", "1.0"),
        lambda text: text.replace('"released"', '"withdrawn"'),
        lambda text: text.replace('"chance": null', '"chance": Infinity'),
        lambda text: json.dumps({**json.loads(text), "releases": []}),
        lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "sha256"}),
    ],
)
def test_a_damaged_ledger_is_an_error_and_stays_as_it_is(ledger: Path, damage) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    protect(PEOPLE, plan(2.0), ledger=ledger)
    ledger.write_text(damage(ledger.read_text()), encoding="utf-8")
    before = ledger.read_bytes()
    with pytest.raises(FileError, match="damaged"):
        protect(PEOPLE, plan(0.1), ledger=ledger)
    with pytest.raises(FileError, match="damaged"):
        declare(ledger, 9.0)
    assert ledger.read_bytes() == before


def test_a_ledger_that_is_missing_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"no such file; create .* --budget 5"):
        protect(PEOPLE, plan(), ledger=tmp_path / "none.json")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileError, match="cannot be"):
        declare(tmp_path / "none" / "l.json", 1.0)
    with pytest.raises(PlanError, match="finite number above 0, got inf"):
        declare(tmp_path / "l.json", float("inf"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_its_owner_can_read_a_ledger_and_links_stay_links(
    ledger: Path, tmp_path: Path
) -> None:
    link = tmp_path / "sub" / "link.json"
    link.parent.mkdir()
    link.symlink_to(ledger)
    os.chmod(ledger, 0o644)  # noqa: PTH101
    protect(PEOPLE, plan(), ledger=link)
    assert link.is_symlink()
    assert ledger.stat().st_mode & 0o777 == 0o600
    assert Ledger.read(ledger).spent == 1.0


def test_the_budget_can_be_declared_again_and_says_so(ledger: Path) -> None:
    declare(ledger, 4.0)
    assert [budget.epsilon for budget in Ledger.read(ledger).budgets] == [3.0, 4.0]
    with reserved(plan(4.0), ledger, None) as spending:
        assert spending is not None


def test_a_plan_names_its_ledger_from_its_own_folder(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    declare(folder / "l.json", 1.0)
    (folder / "plan.toml").write_text(plan(ledger="l.json").to_toml(), encoding="utf-8")
    read = Plan.read(folder / "plan.toml")
    read.write(tmp_path / "copy.toml")
    assert Plan.read(tmp_path / "copy.toml").ledger == str(folder / "l.json")
    protect(PEOPLE, read)
    assert Ledger.read(folder / "l.json").left == 0.0


def test_from_the_command_line(run: Run) -> None:
    PEOPLE.write_csv("people.csv")
    domains = "--domain age=0:120 --domain wage=0:9999"
    command = (
        f"protect people.csv --epsilon 1 --k 5 --partition fixed {domains} --ledger l.json -q -o"
    )
    code, _, err = run(f"{command} a.csv")
    assert code == 1
    assert "microveil ledger l.json --budget 5" in err
    assert run("ledger l.json --budget 1.5")[0] == 0
    assert run(f"{command} a.csv")[0] == 0
    code, _, err = run(f"{command} b.csv")
    assert code == 1
    assert "0.5 after 1 release, got 1" in err
    assert not Path("b.csv").exists()
    code, out, _ = run("ledger l.json")
    text = " ".join(out.split())
    assert "Budget 1.5 per person" in text
    assert "1 spent, 0.5 left. By attribute: age 0.5, wage 0.5." in text
    assert "All releases together: level 1 epsilon 1, level 2 epsilon 12," in text
    release = Ledger.read("l.json").releases[0]
    assert f"{release.id} {release.began} released 1 4.0% 3.3% a.csv" in text  # two crowds
    assert "by all releases together: 4.0% at most." in text
    assert run(f"ledger l.json --withdraw {release.id}")[0] == 0
    assert run(f"{command} b.csv")[0] == 0


def test_a_file_that_cannot_be_written_spends_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    PEOPLE.write_csv("people.csv")
    declare("l.json", 1.0)

    def fail(*_: object) -> None:
        raise FileError("no space left")

    monkeypatch.setattr("microveil.release.store.write_table", fail)
    code, _, err = run("protect people.csv --epsilon 1 --ledger l.json -q -o a.csv")
    assert (code, err) == (1, "error: no space left\n")
    assert Ledger.read("l.json").releases == ()


# How many share what all releases show


NAMED = PEOPLE.with_columns(id=pl.Series([f"secret{row}" for row in range(60)]))
POOLED = Plan.published(epsilon=0.1, k=5, anonymity=5, attributes={**ATTRIBUTES, "id": "pseudonym"})
UNNAMED = POOLED.replace(attributes={**ATTRIBUTES, "id": "identifier"})


@pytest.fixture
def key(tmp_path: Path) -> Path:
    (tmp_path / "private").mkdir()
    Key.make(tmp_path / "private" / "people.key")
    return tmp_path / "private" / "people.key"


def chances(ledger: Path) -> list[float | None]:
    return [one.chance for one in Ledger.read(ledger).releases]


def test_pseudonyms_without_lasting_clusters_add_up_and_are_refused_at_a_limit(
    ledger: Path, key: Path
) -> None:
    """One person leaves; of the joint clusters of two releases many are alone in both."""
    declare_limit(ledger, 0.2)
    protect(NAMED, POOLED, ledger=ledger, key=key)
    before = Ledger.read(ledger)
    with pytest.raises(PlanError, match=r"chance of 100\.0% by all releases .* limit is 20\.0%"):
        protect(NAMED[1:], POOLED, ledger=ledger, key=key)
    assert Ledger.read(ledger) == before
    assert chances(ledger) == [0.2]
    assert len(list(ledger.parent.glob("*.histories"))) == 1
    declare_limit(ledger, 1.0)
    protect(NAMED[1:], POOLED, ledger=ledger, key=key)
    assert chances(ledger) == [0.2, 1.0]
    mean = [one.mean_chance for one in Ledger.read(ledger).releases]
    assert mean[0] is not None
    assert mean[1] is not None
    assert mean[0] <= 0.2 < mean[1]


@pytest.mark.filterwarnings("ignore:there are so few records for epsilon")  # as the noise has it
def test_lasting_clusters_and_releases_without_pseudonyms_keep_to_it(
    ledger: Path, key: Path, tmp_path: Path
) -> None:
    declare_limit(ledger, 0.2)
    joint = tmp_path / "people.clusters"
    declare_turnover(joint, 0.1)
    for rows in (slice(0, 50), slice(2, 55), slice(0, 60)):
        protect(NAMED[rows], POOLED, ledger=ledger, key=key, joint=joint)
        protect(NAMED[rows], UNNAMED, ledger=ledger)
    assert len(chances(ledger)) == 6
    assert all(chance is not None and chance <= 0.2 for chance in chances(ledger))
    numbers = {name: Confidential(kind="integer", lower=0, upper=9999) for name in ATTRIBUTES}
    synthetic = Plan(
        epsilon=0.1, release="synthetic", missing="drop", attributes={**numbers, "id": "identifier"}
    )
    protect(NAMED, synthetic, ledger=ledger)
    assert chances(ledger)[-1] == 0.0  # no row is a person's
    other = Key.make(key.with_name("other.key")).path
    protect(NAMED, POOLED, ledger=ledger, key=other)  # which links nothing to what was before
    assert chances(ledger)[-1] == 0.2


def test_what_cannot_be_counted_is_unknown_and_refused_where_there_is_a_limit(
    ledger: Path, key: Path, tmp_path: Path
) -> None:
    protect(NAMED, POOLED.replace(anonymity=0), ledger=ledger, key=key)
    protect(NAMED, POOLED, ledger=ledger, key=key)  # which is linked to it
    assert chances(ledger) == [None, None]
    declare_limit(ledger, 0.2)
    with pytest.raises(PlanError, match=r"all confidential attributes must be pooled.*limit$"):
        protect(tmp_path / "none.csv", UNNAMED.replace(anonymity=0), ledger=ledger)
    with pytest.raises(PlanError, match=r"of its release .* it is not known"):
        protect(tmp_path / "none.csv", POOLED, ledger=ledger, key=key)
    protect(NAMED, UNNAMED, ledger=ledger)
    for one in Ledger.read(ledger).releases[:2]:
        withdraw(ledger, one.id)
    protect(NAMED, POOLED, ledger=ledger, key=key)
    assert Ledger.read(ledger).chance == 0.2


def test_histories_are_private_and_their_loss_is_noticed(ledger: Path, key: Path) -> None:
    release = protect(NAMED, POOLED, ledger=ledger, key=key)
    (histories,) = ledger.parent.glob("*.histories")
    assert histories.stat().st_mode & 0o777 == 0o600
    assert not any(p.encode() in histories.read_bytes() for p in release.data["id"])
    before = ledger.read_bytes()
    histories.write_bytes(histories.read_bytes()[:-1])
    with pytest.raises(FileError, match=r"histories .*: missing or damaged, .* restore it"):
        protect(NAMED, POOLED, ledger=ledger, key=key)
    assert Ledger.read(ledger).spent == 0.1
    assert ledger.read_bytes() == before
    for wrong in (0.0, 1.1, float("nan")):
        with pytest.raises(PlanError, match="limit must be above 0 and at most 1"):
            declare_limit(ledger, wrong)


@pytest.mark.parametrize(
    ("change", "chance"), [("kept", 1.0), ("units", 0.2), ("gaps", 1.0), ("groups", 1.0)]
)
def test_all_that_a_release_shows_counts(
    ledger: Path, key: Path, change: str, chance: float
) -> None:
    plan, table = POOLED, NAMED
    if change == "kept":
        plan = plan.replace(attributes={**POOLED.attributes, "town": "kept"})
        table = table.with_columns(town=pl.Series(["x"] + ["y"] * 59))
    if change == "units":
        plan = plan.replace(unit="id", records_per_person=2)
        table = pl.concat([NAMED, NAMED[:30]])
    if change == "gaps":
        table = table.with_columns(id=pl.when(pl.col("age") > 20).then(pl.col("id")))
    if change == "groups":
        plan = plan.replace(groups=[["age"], ["wage"]])
        table = table.with_columns(wage=pl.col("wage").shuffle(1))
    protect(table, plan, ledger=ledger, key=key)
    assert chances(ledger) == [chance]


def test_a_limit_from_the_command_line(run: Run) -> None:
    NAMED.write_csv("people.csv")
    POOLED.replace(attributes={**ATTRIBUTES, "id": "identifier"}).write("plan.toml")
    out = run("ledger l.json --budget 3 --limit 0.25")[1]
    assert (
        run("protect people.csv --plan plan.toml --ledger l.json --no-verdict -q -o a.csv")[0] == 0
    )
    out = " ".join(run("ledger l.json")[1].split())
    assert "released 0.1 20.0% 20.0% a.csv" in out
    assert "by all releases together: 20.0% at most; the limit is 25.0%." in out
