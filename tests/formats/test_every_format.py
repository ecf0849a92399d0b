"""Every kind of file in, every kind out: from the command line to a certificate that matches."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from microveil import FileError, Plan, protect
from microveil.formats import READABLE, WRITABLE, read_table, write_table

Run = Callable[[str], tuple[int, str, str]]

PEOPLE = pl.DataFrame(
    {
        "person": [f"P{i}" for i in range(60)],
        "region": ["North", "Süd", None] * 20,
        "born": [date(1950 + i, 1, 1) for i in range(60)],
        "age": [None, *(20 + i % 50 for i in range(59))],
        "height": [round(1.5 + i / 128, 2) for i in range(60)],
    }
)
FLAGS = (
    "--epsilon 1 --k 5 --missing keep --drop person --keep region --keep born --domain height=0:3 "
    "--no-verdict"
)


def write_people() -> None:
    for ending in WRITABLE:
        write_table(PEOPLE, Path(f"people{ending}"))


@pytest.mark.parametrize("ending", WRITABLE)
def test_a_release_from_and_to_every_kind_of_file(run: Run, ending: str) -> None:
    write_people()
    expected = PEOPLE.drop("person")
    for source in WRITABLE:
        target = f"out-{source[1:]}{ending}"
        code, _, err = run(f"protect people{source} -o {target} --keep-order {FLAGS}")
        assert (code, err) == (0, "")
        code, out, _ = run(f"certificate out-{source[1:]}.certificate.json")
        assert code == 0
        assert f"{target}: matches the certificate" in out
        back = read_table(target)
        assert back.columns == expected.columns
        assert back["region"].to_list() == expected["region"].to_list()
        assert back["age"].null_count() == 1
        assert back["age"].dtype == pl.Int64
        assert back["height"].dtype == pl.Float64
        if ".csv" not in (source, ending):  # whose dates are text
            assert back["born"].to_list() == expected["born"].to_list()
    assert run(f"evaluate people{ending} {target}")[0] == 0


@pytest.mark.parametrize("ending", WRITABLE)
def test_endings_may_be_of_upper_case(run: Run, ending: str) -> None:
    write_people()
    source, target = f"PEOPLE{ending.upper()}", f"OUT{ending.upper()}"
    Path(f"people{ending}").rename(source)
    code, _, err = run(f"protect {source} -o {target} --keep-order {FLAGS}")
    assert (code, err) == (0, "")
    assert "matches the certificate" in run("certificate OUT.certificate.json")[1]
    assert read_table(target)["region"].to_list() == PEOPLE["region"].to_list()
    assert run(f"evaluate {source} {target}")[0] == 0


def test_a_changed_file_of_every_kind_is_noticed(run: Run) -> None:
    write_people()
    for ending in WRITABLE:
        assert run(f"protect people{ending} -o out{ending} --overwrite {FLAGS}")[0] == 0
        with Path(f"out{ending}").open("ab") as file:
            file.write(b"\n")
        code, _, err = run("certificate out.certificate.json")
        assert (code, "not the file this certificate was written for" in err) == (1, True)


def test_a_plan_is_proposed_for_every_kind_of_file(run: Run) -> None:
    write_people()
    for ending in WRITABLE:
        assert run(f"plan people{ending} -o plan.toml --overwrite")[0] == 0
        assert set(Plan.read("plan.toml").confidential) == {"age", "height", "region", "born"}


def test_files_of_another_dialect_from_end_to_end(run: Run) -> None:
    people = PEOPLE.with_columns(region=pl.col("region").replace("Süd", "Süd; 'x'"))
    people.write_csv("in.csv", separator=";", decimal_comma=True)
    latin = Path("in.csv").read_text(encoding="utf-8").encode("latin-1")
    Path("in.csv").write_bytes(latin)
    code, _, err = run("plan in.csv -o plan.toml")
    assert (code, err.count("\n")) == (0, 1)
    assert err.startswith("warning: in.csv: not UTF-8, read as windows-1252")
    given = "--encoding latin-1 --delimiter ';' --decimal ,"
    code, _, err = run(f"protect in.csv -o out.csv --detail {FLAGS} {given}")
    assert (code, err) == (0, "")
    text = Path("out.csv").read_text(encoding="utf-8")
    assert text.startswith("region;born;age;height\n")
    assert "\"Süd; 'x'\";" in text
    assert read_table("out.csv")["height"].dtype == pl.Float64
    assert run(f"evaluate in.csv out.csv {given}")[0] == 0
    assert run(f"audit in.csv --plan plan.toml --runs 100 {given}")[0] == 0
    assert run(f"explore in.csv --plan plan.toml --runs 1 {given}")[0] == 0


def test_a_warning_is_shown_also_when_the_command_fails(run: Run) -> None:
    Path("in.csv").write_bytes("x,y\n1,ü\n2,b\n3,c\n".encode("latin-1"))
    code, _, err = run("protect in.csv -o out.csv --epsilon 1 --k 3 --anonymity 0")
    lines = err.splitlines()
    assert code == 1
    assert lines[0].startswith("warning: in.csv: not UTF-8")
    assert lines[1].startswith("error: attribute 'y'")


def test_sheets_from_the_command_line(run: Run) -> None:
    write_people()
    assert run(f"protect people.xlsx -o a.xlsx --sheet Sheet1 {FLAGS}")[0] == 0
    code, _, err = run(f"protect people.xlsx -o b.xlsx --sheet Other {FLAGS}")
    assert code == 1
    assert "expected a sheet named 'Other'" in err
    assert run(f"protect people.csv -o b.csv --sheet Other {FLAGS}")[0] == 1


@pytest.mark.parametrize("ending", WRITABLE)
def test_a_failure_while_writing_leaves_the_old_release(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = {"age": "confidential", "height": "confidential"}
    plan = Plan.published(
        epsilon=1, k=5, missing="keep", domain_from_data=True, attributes=roles, method="DP-UM"
    )
    with pytest.warns(UserWarning, match="domain was read from the data"):
        release = protect(PEOPLE.select("age", "height"), plan)
    release.write(tmp_path / f"out{ending}")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("microveil.release.store.sha256_of", full)
    with pytest.raises(FileError, match="cannot be written: No space left on device"):
        release.write(tmp_path / f"out{ending}", overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


WITHOUT = """
import sys
for name in ("pyreadstat", "fastexcel", "xlsxwriter", "adbc_driver_postgresql"):
    sys.modules[name] = None
from microveil import Plan, Source, protect
from microveil.errors import FileError
from microveil.plan.sample import people, people_plan
release = protect(people(50), people_plan())
for attempt in (
    lambda: protect("in.sav", people_plan()),
    lambda: protect("in.xlsx", people_plan()),
    lambda: protect(Source("postgresql://localhost/x", query="select 1"), people_plan()),
    lambda: release.write("out.dta"),
    lambda: release.write("out.xlsx"),
):
    try:
        attempt()
    except FileError as error:
        print(error)
"""


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    for name in ("in.sav", "in.xlsx"):
        (tmp_path / name).write_bytes(b"x")
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    expected = [
        ("pyreadstat", "stats"),
        ("fastexcel", "excel"),
        ("adbc_driver_postgresql", "database"),
        ("pyreadstat", "stats"),
        ("fastexcel", "excel"),
    ]
    lines = run.stdout.splitlines()
    for line, (library, extra) in zip(lines, expected, strict=True):
        assert line.startswith(f"this needs {library}, which is not installed")
        assert line.endswith(f'pip install "microveil[{extra}]"')
    assert len(list(tmp_path.iterdir())) == 2


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "read-files.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for block in blocks:
        subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)  # noqa: S603
    assert (tmp_path / "protected.csv").read_text(encoding="utf-8").startswith("age;wage\n")


def test_files_that_are_not_there_or_of_another_kind(tmp_path: Path) -> None:
    for ending in READABLE:
        with pytest.raises(FileError, match="no such file"):
            read_table(tmp_path / f"none{ending}")
        (tmp_path / f"empty{ending}").touch()
        with pytest.raises(FileError, match="the file is empty"):
            read_table(tmp_path / f"empty{ending}")
    with pytest.raises(FileError, match=r"ending in \.csv, \.parquet, .* or \.sas7bdat"):
        read_table(tmp_path / "in.xls")


def test_content_of_another_kind(tmp_path: Path) -> None:
    for ending in WRITABLE:
        write_table(PEOPLE, tmp_path / f"people{ending}")
    for named in set(READABLE) - {".feather"}:
        for ending in set(WRITABLE) - {named, ".feather"}:
            wrong = tmp_path / f"wrong{named}"
            wrong.write_bytes((tmp_path / f"people{ending}").read_bytes())
            with pytest.raises(
                FileError, match=r"not an? \w+ \w+|expected text, found binary data"
            ):
                read_table(wrong)
