"""The command line as a person uses it: what it writes, prints and returns."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from microveil import Certificate, Plan
from microveil.cli import demo
from microveil.plan.sample import people, people_plan

Run = Callable[[str], tuple[int, str, str]]
VALUE = 918_273  # stands for a data value: nothing printed may contain it


def write_people() -> None:
    people(300).write_csv("people.csv")
    Path("plan.toml").write_text(people_plan().to_toml(), encoding="utf-8")


def files() -> set[str]:
    return {path.name for path in Path().iterdir()}


def test_from_a_file_to_a_release_in_three_commands(run: Run) -> None:
    people().write_csv("people.csv")
    assert run("plan people.csv -o plan.toml")[0] == 0
    assert Path("plan.toml").stat().st_mode & 0o777 == 0o600  # it lists categories seen
    code, out, err = run("protect people.csv --plan plan.toml -o safe.parquet --no-verdict")
    lines = err.splitlines()
    assert code == 0
    assert all(line.startswith("warning: ") for line in lines)
    assert any("'weight': the noise grid was read from the data" in x for x in lines)
    assert any("'education', 'occupation': the categories were read" in x for x in lines)
    assert "safe.certificate.json" in out
    assert files() == {"people.csv", "plan.toml", "safe.parquet", "safe.certificate.json"}
    protected = pl.read_parquet("safe.parquet")
    assert protected.height == 1000
    assert "person" not in protected.columns
    code, out, _ = run("certificate safe.certificate.json")
    assert code == 0
    assert "matches the certificate" in out
    assert "3. As released: no bound" in out


def test_flags_alone(run: Run) -> None:
    pl.DataFrame(
        {"name": ["a"] * 30, "region": ["n"] * 30, "income": range(30), "age": range(30)}
    ).write_csv("in.csv")
    code, _, err = run(
        "protect in.csv -o out.csv --epsilon 1 --k 5 --method iDP-LS --drop name --keep region "
        "--domain income=0:500000 --domain age=0:120"
    )
    assert (code, err) == (0, "")
    certificate = Certificate.read("out.certificate.json")
    assert [(a.name, a.method, a.k, a.upper) for a in certificate.attributes] == [
        ("income", "iDP-LS", 5, 500_000),
        ("age", "iDP-LS", 5, 120),
    ]
    assert pl.read_csv("out.csv").columns == ["region", "income", "age"]


def test_the_verdict_is_printed_and_not_written(run: Run) -> None:
    rows = "".join(f"{VALUE + i},{VALUE - 37 * i % 60},{i % 4}\n" for i in range(300))
    Path("in.csv").write_text(f"x,y,sex\n{rows}", encoding="utf-8")
    command = "protect in.csv -o out.csv --overwrite --epsilon 1 --k 5 --drop sex"
    code, out, _ = run(f"{command} --anonymity 0")
    assert code == 4
    assert "Risk High: does not pass." in " ".join(out.split())
    assert "To change add anonymity = 25: linkage" in " ".join(out.split())
    assert "Publish these two together" not in out
    assert str(VALUE)[:4] not in out
    written = Path("out.csv").read_text() + Path("out.certificate.json").read_text()
    assert "erdict" not in written
    code, out, _ = run(command)
    assert ": passes." in " ".join(out.split())
    assert "Publish these two together" in out
    for flag in ("--keep-order", "--seed 1"):
        assert "Publish these two together" not in run(f"{command} {flag}")[1]
    assert "erdict" not in run(f"{command} --no-verdict")[1]


def test_attackers_are_flags(run: Run) -> None:
    Path("in.csv").write_text("x,sex\n1,f\n2,f\n3,m\n4,m\n5,d\n", encoding="utf-8")
    flags = "--epsilon 1 --k 5 --anonymity 0 --keep sex --detail --accept-risk"
    command = f"protect in.csv -o out.csv {flags}"
    code, _, err = run(f"{command} --known se")
    assert (code, files()) == (1, {"in.csv"})
    assert "scenarios: no attribute 'se'; did you mean 'sex'?" in err
    assert "people must be a share" in run(f"{command} --people 0")[2]
    code, out, _ = run(f"{command} --known sex")
    assert code == 0
    assert "attacker who knows everyone's sex and takes the nearest" in " ".join(out.split())
    code, out, _ = run("evaluate in.csv out.csv --known x --known sex --people 0.4 --json")
    assert code == 0
    tried = {figure["attribute"] for figure in json.loads(out)["figures"]
             if figure["measure"] == "linkage.nearest"}  # fmt: skip
    assert tried == {None, "knows sex", "knows x and sex of 40% of the people"}
    code, out, _ = run("evaluate in.csv out.csv --known x")
    assert "Scenarios" in out
    assert out.index("knows sex") < out.index("knows x ")


def test_flags_override_the_plan(run: Run) -> None:
    write_people()
    code, _, _ = run(
        "protect people.csv --plan plan.toml -o out.csv --epsilon 0.25 --k 20 --method iDP-LS "
        "--missing drop --records-per-person 2 --drop region --keep hours --domain age=10:110 "
        "--seed 1 --keep-order --detail --quiet --no-verdict"
    )
    assert code == 0
    certificate = Certificate.read("out.certificate.json")
    assert (certificate.epsilon, certificate.records_per_person) == (0.25, 2)
    assert (certificate.missing, certificate.kept) == ("drop", ("hours",))
    assert set(certificate.dropped) == {"person", "region"}
    age = certificate.attributes[0]
    assert (age.name, age.lower, age.upper, age.k, age.method) == ("age", 10, 110, 20, "iDP-LS")
    assert "out.detail.zip" in files()


def test_flags_for_what_follows_the_data(run: Run) -> None:
    write_people()
    command = "protect people.csv --plan plan.toml --overwrite --no-verdict -o out.csv"
    assert run(f"{command} --k auto")[0] == 0
    assert Certificate.read("out.certificate.json").attributes[0].k_from_data
    code, _, err = run(f"{command} --partition noise-optimal --k 4 --post isotonic --trim 0.25")
    assert (code, err) == (0, "")
    age = Certificate.read("out.certificate.json").attributes[0]
    assert (age.partition, age.k, age.post, age.trim) == ("noise-optimal", 4, "isotonic", 0.25)
    assert "trimmed" in run("certificate out.certificate.json")[1]
    assert "trim must be 0 or more and below 0.5" in run(f"{command} --trim 0.5")[2]
    assert run(f"{command} --partition noise-optimal --guarantee re-clustered")[0] == 1


def test_a_seed_is_shown_even_when_quiet(run: Run) -> None:
    write_people()
    command = "protect people.csv --plan plan.toml --overwrite --quiet --no-verdict -o out.parquet"
    assert run(command) == (0, "", "")
    code, out, err = run(f"{command} --seed 4")
    assert (code, out) == (0, "")
    assert "NOT FOR PUBLICATION" in err
    assert "NOT FOR PUBLICATION" in run("certificate out.certificate.json")[1]


def test_a_seed_repeats_the_file(run: Run) -> None:
    write_people()
    for name in ("a", "b"):
        run(f"protect people.csv --plan plan.toml -o {name}.csv --seed 3")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_warnings_are_one_line_each(run: Run) -> None:
    pl.DataFrame({"x": range(VALUE, VALUE + 30)}).write_csv("in.csv")
    code, _, err = run(
        "protect in.csv -o out.csv --epsilon 1 --method DP --domain-from-data --accept-risk"
    )
    assert code == 0
    domain, kind = err.splitlines()
    assert domain.startswith("warning: attribute 'x': the domain was read from the data, which vo")
    assert kind.startswith("warning: attribute 'x': whether values are whole or real numbers, or h")


def test_a_changed_file_does_not_match_its_certificate(run: Run) -> None:
    write_people()
    run("protect people.csv --plan plan.toml -o out.csv")
    with Path("out.csv").open("a", encoding="utf-8") as file:
        file.write("\n")
    code, _, err = run("certificate out.certificate.json")
    assert code == 1
    assert "not the file this certificate was written for" in err


def test_evaluate(run: Run) -> None:
    write_people()
    run("protect people.csv --plan plan.toml -o out.parquet --seed 1 --detail "
        "--use 'mean age by region'")  # fmt: skip
    code, out, err = run("evaluate people.csv out.parquet --quasi-identifier region")
    assert (code, err) == (0, "")
    assert "nearest linkage" in out
    assert "mean age by region: " in out
    more = "--use 'mean age by region' --use 'total income'"
    code, out, _ = run(f"evaluate people.csv out.parquet --detail out.detail.zip --json {more}")
    assert code == 0
    assert json.loads(out)["records"] == 300
    uses = {f["facts"]["use"] for f in json.loads(out)["figures"] if "use" in f["facts"]}
    assert uses == {"mean age by region", "total income"}
    code, _, err = run("evaluate people.csv out.parquet --use 'mean incme'")
    assert (code, "did you mean 'income'?" in err) == (1, True)
    code, _, err = run("protect people.csv --plan plan.toml -o o.csv --use 'avg age'")
    assert (code, "at character 1, found 'avg'" in err) == (1, True)
    Path("out.detail.zip").unlink()
    code, out, _ = run("evaluate people.csv out.parquet")
    assert code == 0
    line = "it is not known which record is whose"
    assert " ".join(out.split()).count(line) == 1
    assert "--detail FILE" in out
    assert "pMSE ratio" in out
    run("protect people.csv --plan plan.toml -o kept.csv --seed 1 --keep-order")
    assert "nearest linkage" in run("evaluate people.csv kept.csv")[1]


def test_evaluate_something_else(run: Run) -> None:
    write_people()
    run("protect people.csv --plan plan.toml -o out.csv --detail")
    run("protect people.csv --plan plan.toml -o other.csv")
    code, _, err = run("evaluate people.csv other.csv --detail out.detail.zip")
    assert (code, err.count("\n")) == (1, 1)
    assert "not the file the detail was written with" in err
    code, _, err = run("evaluate people.csv out.csv --quasi-identifier shoe")
    assert code == 1
    assert "'shoe', which is not there" in err


def test_audit(run: Run) -> None:
    write_people()
    code, out, err = run("audit people.csv --plan plan.toml --runs 200 --seed 1")
    assert (code, err) == (0, "")
    assert "found at least" in out
    assert "No attack found a larger loss than there should be." in out.replace("\n", " ")


def test_reproduce_without_data(run: Run) -> None:
    code, _, err = run("reproduce --data nowhere")
    assert (code, err.count("\n")) == (1, 1)
    assert "nowhere: no such directory" in err
    assert run("reproduce --runs 0")[0] == 1


def test_demo(run: Run) -> None:
    code, out, _ = run("demo")
    assert code == 0
    story = out.split("Written to")[0]
    assert len(story.splitlines()) <= 25  # a screenful
    for part in ("One person's row", "of the 25 rows", "What stays", "Risk", "Usefulness"):
        assert part in story
    assert "The release passes." in story
    assert {path.name for path in Path("microveil-demo").iterdir()} == {
        "people.csv",
        "plan.toml",
        "protected.parquet",
        "protected.certificate.json",
        "protected.detail.zip",
    }
    code, _, err = run("demo")
    assert code == 1
    assert "people.csv: the file exists" in err
    assert run("demo --overwrite")[0] == 0
    files = "microveil-demo/people.csv --plan microveil-demo/plan.toml"
    again = run(f"protect {files} -o again.csv --no-verdict")
    assert again[0] == 0


def test_demo_names_the_command_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name alone if that is found, and by its path if another one would be."""
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "microveil").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "here"))
    monkeypatch.chdir(tmp_path)
    called = {"microveil": "microveil", "here/microveil": "microveil",
              "there/microveil": "there/microveil", "__main__.py": "microveil"}  # fmt: skip
    for name, shown in called.items():
        monkeypatch.setattr(sys, "argv", [name])
        assert demo.own_command() == shown


GOOD = f"name,x\na,{VALUE}\nb,2\nc,3\nd,4\n"
FLAGS = "--epsilon 1 --k 3 --drop name --anonymity 0"


@pytest.mark.parametrize(
    ("content", "flags", "message"),
    [
        ("", FLAGS, "in.csv: the file is empty"),
        ("name,x\n", FLAGS, "expected records, found only column names"),
        (f"name,x\na,{VALUE}\n", FLAGS, "at least 2 records, found 1"),
        (GOOD, "--epsilon 1 --k 5 --drop name", "found 4 records for k = 5"),
        (GOOD, "--epsilon 1 --k 2 --drop name", "k must be 3 or more for iDP-CBLS, got 2"),
        (GOOD, "--epsilon 1 --k 0 --drop name", "k must be 1 or more, got 0"),
        (GOOD, "--epsilon 0 --k 3 --drop name", "epsilon must be a finite number above 0"),
        (GOOD, "--epsilon nan --k 3 --drop name", "epsilon must be a finite number above 0"),
        (GOOD, "--epsilon inf --k 3 --drop name", "epsilon must be a finite number above 0"),
        (GOOD, "--k 3 --drop name", "give a plan with --plan, or a privacy budget"),
        (GOOD, f"{FLAGS} --domain x=5:5", "attribute 'x': lower must be below upper"),
        (GOOD, f"{FLAGS} --domain x=0:10", "attribute 'x': 1 of 4 values lie outside the declared"),
        (GOOD, f"{FLAGS} --method DP", "attribute 'x': DP needs a declared domain"),
        (GOOD, f"{FLAGS} --keep y", "keep 'y': no such attribute"),
        (GOOD, f"{FLAGS} --keep name", "drop and keep 'name': an attribute can be one of them"),
        (GOOD, f"{FLAGS} --domain x=0:9 --domain x=0:8", "domain 'x': declared twice"),
        (f"a,{VALUE}\nb,2\nc,3\n", "--epsilon 1", "expected column names in the first line"),
        ("name,x\na,01\nb,02\nc,03\n", FLAGS, "numbers stored as text; convert the column"),
        (GOOD, "--epsilon 1 --k 3", "attribute 'name': a confidential attribute must be numeric"),
        (f"x\n1.5\ninf\n{VALUE}\n", "--epsilon 1 --k 3", "attribute 'x': values must be finite"),
        (f"x\n{10**15}\n{VALUE}\n3\n", "--epsilon 1 --k 3", "too large for its noise grid"),
        (f"x,y\n,1\n,2\n,{VALUE}\n", "--epsilon 1 --k 3", "attribute 'x': every value is missing"),
        (f"x\n1\n{VALUE},2\n", "--epsilon 1 --k 3", "in.csv, line 3: expected 1 fields, found 2"),
        (f"x,x\n1,{VALUE}\n", "--epsilon 1 --k 3", "the same name twice"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    run: Run, content: str, flags: str, message: str
) -> None:
    Path("in.csv").write_text(content, encoding="utf-8")
    code, out, err = run(f"protect in.csv -o out.csv --anonymity 0 {flags}")
    assert code == 1
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert str(VALUE) not in err
    assert files() == {"in.csv"}


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("epsilon = 1\n[attributes]\nx = 'confidential'", "none for 'name'; add it to the plan"),
        ("epsilon = 1\n[attributes]\ny = 'confidential'", "attribute 'y': in the plan, but not in"),
        ("epsilon = 1\nkk = 3\n[attributes]\nx = 'confidential'", "plan: unknown key 'kk'"),
        ("epsilon =", "plan: not valid TOML"),
        (
            "epsilon = 1\n[attributes]\nx = 'confidential'\n"
            "name = {role = 'derived', expression = 'q + 1'}",
            "attribute 'name': the expression names 'q', which is not in the plan",
        ),
        (
            "epsilon = 1\nk = 3\n[attributes]\nx = 'confidential'\n"
            "name = {role = 'derived', expression = 'x / (x - x)'}",
            "attribute 'name': its expression has no finite result in 4 of 4 records",
        ),
    ],
)
def test_mistakes_in_plans(run: Run, plan: str, message: str) -> None:
    Path("in.csv").write_text(GOOD, encoding="utf-8")
    Path("plan.toml").write_text(plan, encoding="utf-8")
    code, _, err = run("protect in.csv -o out.csv --plan plan.toml --anonymity 0")
    assert code == 1
    assert err.startswith("error: ")
    assert message in err
    assert str(VALUE) not in err
    assert files() == {"in.csv", "plan.toml"}


def test_every_mistake_in_a_plan_at_once_with_its_line(run: Run) -> None:
    Path("in.csv").write_text(GOOD, encoding="utf-8")
    plan = "epsilon = 0\nkk = 3\n[attributes]\nx = {role = 'confidential', upper = 5}\ny = 'kept'\n"
    Path("plan.toml").write_text(plan, encoding="utf-8")
    for command in ("plan --check plan.toml in.csv", "protect in.csv --plan plan.toml -o out.csv"):
        code, _, err = run(command)
        assert code == 1
        first, *lines = err.splitlines()
        assert first == "error: 6 problems:"
        assert lines[0] == "  line 1: plan: epsilon must be a finite number above 0, got 0.0"
        assert [line.split(":")[0] for line in lines[1:4]] == ["  line 2", "  line 3", "  line 4"]
        assert str(VALUE) not in err
        assert files() == {"in.csv", "plan.toml"}
    _, _, err = run("protect in.csv --plan plan.toml -o out.csv --epsilon -1")
    assert "  plan: epsilon must be a finite number above 0, got -1.0" in err.splitlines()


def test_checking_a_plan_that_fits(run: Run) -> None:
    write_people()
    code, out, _ = run("plan people.csv --check plan.toml")
    assert (code, out.partition(".toml")[2].partition(".")[0]) == (0, " fits the data")
    assert run("plan people.csv")[2].startswith("error: give -o PLAN to write a plan, or --check")
    assert files() == {"people.csv", "plan.toml"}


def test_paths_that_are_refused(run: Run) -> None:
    Path("in.csv").write_text(GOOD, encoding="utf-8")
    for output, message in (
        ("in.csv", "would replace the input"),
        ("none/out.csv", "directory does not exist"),
        ("out.docx", "ending in .csv, .parquet, "),
    ):
        code, _, err = run(f"protect in.csv -o {output} {FLAGS}")
        assert (code, err.count("\n")) == (1, 1)
        assert message in err
    assert run(f"protect in.csv -o out.csv --accept-risk {FLAGS}")[0] == 0
    old = Path("out.csv").read_bytes()
    code, _, err = run(f"protect in.csv -o out.csv {FLAGS}")
    assert code == 1
    assert "out.csv: the file exists; " in err
    assert "choose another path, or give overwrite=True (--overwrite)" in err
    assert Path("out.csv").read_bytes() == old
    assert run(f"protect in.csv -o out.csv --overwrite --accept-risk {FLAGS}")[0] == 0
    assert run("plan in.csv -o plan.txt")[0] == 1
    assert run("plan none.csv -o plan.toml")[0] == 1
    assert "plan.toml" not in files()


@pytest.mark.parametrize(
    "arguments",
    [
        "protect in.csv",
        "protect in.csv -o out.csv --method XX",
        "protect in.csv -o out.csv --epsilon 1 --domain x",
        "protect in.csv -o out.csv --epsilon one",
        "protect in.csv -o out.csv --epsilon 1 --k many",
        "nonsense",
    ],
)
def test_wrong_usage(run: Run, arguments: str) -> None:
    assert run(arguments)[0] == 2


def test_a_defect_does_not_print_data(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"value {VALUE}")

    Path("in.csv").write_text(GOOD, encoding="utf-8")
    monkeypatch.setattr("microveil.cli.job.load_table", broken)
    code, out, err = run(f"protect in.csv -o out.csv {FLAGS}")
    assert code == 3
    assert "defect: RuntimeError" in err
    assert str(VALUE) not in out + err


def test_the_installed_command() -> None:
    command = Path(sys.executable).with_name("microveil")
    environment = {**os.environ, "NO_COLOR": "1"}
    version = subprocess.run(  # noqa: S603
        [command, "--version"], capture_output=True, text=True, check=True, env=environment
    )
    assert version.stdout.startswith("microveil ")


def test_the_certificate_is_plain_json(run: Run) -> None:
    write_people()
    run("protect people.csv --plan plan.toml -o out.csv")
    certificate = json.loads(Path("out.certificate.json").read_text(encoding="utf-8"))
    assert certificate["epsilon"] == 1.0
    assert Plan.read("plan.toml").epsilon == 1.0


def test_flags_for_categories_dates_and_pooling(run: Run) -> None:
    people().select("education", "since", "age").write_csv("people.csv")
    code, _, err = run(
        "protect people.csv -o safe.csv --epsilon 1 --k 5 --nominal education --anonymity 5 "
        "--pooling average --no-verdict "
        "--domain since=1930-01-01:2025-01-01 --domain age=0:120"
    )
    assert code == 0
    assert "'education': the categories were read from the data" in err
    safe = pl.read_csv("safe.csv", try_parse_dates=True)
    assert safe.schema["since"] == pl.Date
    assert safe.group_by(pl.all()).len()["len"].min() >= 5  # type: ignore[operator]
    certificate = Certificate.read("safe.certificate.json")
    assert certificate.attributes[1].upper == "2025-01-01"
    assert (certificate.groups[0].anonymity, certificate.groups[0].smallest_class) >= (5, 5)


@pytest.mark.parametrize("pooled", [False, True])
def test_a_mixed_table_from_plan_to_audit(run: Run, pooled: bool) -> None:
    write_people()
    if pooled:
        groups = [["age", "education", "occupation"], ["hours", "wages"]]
        plan = people_plan().replace(anonymity=5, pooling="average", groups=groups)
        Path("plan.toml").write_text(plan.to_toml(), encoding="utf-8")
    code, _, err = run("protect people.csv --plan plan.toml -o safe.parquet --detail --no-verdict")
    assert (code, err) == (0, "")
    code, out, err = run("evaluate people.csv safe.parquet")
    assert (code, err) == (0, "")
    assert "share unchanged" in out
    assert ("smallest joint class" in out) == pooled
    code, out, err = run("audit people.csv --plan plan.toml --runs 200 --seed 1")
    assert code == 0, err
    assert "occupation" in out
    assert "BROKEN" not in out
