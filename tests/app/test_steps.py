"""What the page asks the library for, without a page."""

import json
import socket
from collections.abc import Callable
from datetime import date
from io import BytesIO
from pathlib import Path
from statistics import mean
from typing import Any
from zipfile import ZipFile

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import (
    Certificate,
    Confidential,
    DataError,
    Detail,
    FileError,
    MicroveilError,
    Plan,
    PlanError,
    protect,
)
from microveil.app.attributes import edited_plan, is_about_rows, rows_of
from microveil.app.download_step import zipped
from microveil.app.downloads import release_files
from microveil.app.edit import _label
from microveil.app.markup import items, message, readings
from microveil.app.outlook import outlook, some_records
from microveil.app.server import options
from microveil.app.session_state import guarantee_notes
from microveil.app.upload import Upload
from microveil.compare.pairing import pair_tables
from microveil.formats import sha256_of
from microveil.formats.metadata import ColumnMeta
from microveil.measures.distances import mean_sse
from microveil.plan.groups import Group
from microveil.plan.propose.proposal import propose_plan
from microveil.plan.roles import Derived, Kept
from microveil.plan.sample import people, people_plan
from microveil.show.shapes import shapes, shapes_of_masked

SCHEMA = people().schema
SETTINGS = (
    "epsilon", "method", "guarantee", "partition", "missing", "k", "trim", "anonymity", "pooling",
    "records_per_person", "domain_from_data",
)  # fmt: skip


def edited(**cells: object) -> list[dict[str, object]]:
    """The rows of the sample's plan with cells of the attribute «age» changed."""
    rows = rows_of(people_plan(), SCHEMA)
    rows[2] |= cells
    return rows


def test_an_untouched_table_is_the_plan_it_came_from() -> None:
    for plan in (people_plan(), Plan.from_toml(propose_plan(people(), "people.csv"))):
        assert edited_plan(rows_of(plan, SCHEMA), plan, SCHEMA) == plan


def test_cells_change_what_they_name_and_nothing_else() -> None:
    plan = edited_plan(
        edited(lower="18", budget_share=2.0, k="20"), people_plan(), SCHEMA, epsilon=0.5
    )
    assert plan.epsilon == 0.5
    assert plan.attributes["age"] == Confidential(lower=18, upper=120, budget_share=2.0, k=20)
    others = {name: a for name, a in plan.attributes.items() if name != "age"}
    assert others == {n: a for n, a in people_plan().attributes.items() if n != "age"}
    assert isinstance(
        edited_plan(edited(role="kept"), people_plan(), SCHEMA).attributes["age"], Kept
    )


def test_values_are_coded_by_cells_and_roles_without_settings_chosen() -> None:
    plan = edited_plan(edited(upper=None, top="90", round_to="5"), people_plan(), SCHEMA)
    assert plan.attributes["age"] == Confidential(lower=0, top=90, round_to=5)
    assert edited_plan(rows_of(plan, SCHEMA), plan, SCHEMA) == plan
    rows = rows_of(plan, SCHEMA)
    assert (rows[2]["upper"], rows[2]["top"]) == (None, "90")
    rows[2]["top"] = None
    assert edited_plan(rows, plan, SCHEMA).attributes["age"] == Confidential(lower=0, round_to=5)
    weighted = edited_plan(edited(role="sampling_weight"), people_plan(), SCHEMA)
    assert weighted.sampling_weights == ("age",)


def test_groups_are_words() -> None:
    group = Group(attributes=["age", "wages"], anonymity=5, pooling="average")
    plan = people_plan().replace(anonymity=10, groups=[group])
    rows = rows_of(plan, SCHEMA)
    assert edited_plan(rows, plan, SCHEMA) == plan
    assert [row["attribute"] for row in rows if row["group"]] == ["age", "wages"]
    for row in rows:
        row["group"] = row["group"] or (
            " money " if row["attribute"] in ("other", "income") else None
        )
    changed = edited_plan(rows, plan, SCHEMA)
    assert [g.attributes for g in changed.groups] == [("age", "wages"), ("other",)]
    assert [g.anonymity for g in changed.groups] == [5, None]
    assert edited_plan(rows, plan, SCHEMA, anonymity=0).groups == ()


def test_labels_of_columns_and_values_are_shown() -> None:
    sex = ColumnMeta(label="Sex of person", value_labels={1.0: "male", 2.0: "female"})
    assert _label(sex) == "Sex of person: 1 = male, 2 = female"
    assert _label(None) is None


def test_what_is_the_same_in_all_records_of_a_person_is_ticked() -> None:
    plan = people_plan().replace(unit="person")
    rows = rows_of(plan, SCHEMA)
    rows[2]["per_unit"] = True
    changed = edited_plan(rows, plan, SCHEMA)
    assert changed.per_unit == ("age",)
    again = rows_of(changed, SCHEMA)
    again[2]["per_unit"] = None  # as an empty cell
    assert edited_plan(again, changed, SCHEMA).per_unit == ()


def test_every_type_is_read_as_its_column_has_it() -> None:
    rows = rows_of(people_plan(), SCHEMA)
    rows[5]["lower"] = "1920-02-29"
    rows[6] |= {"kind": "ordinal", "categories": "0, 1, 2", "lower": None, "upper": None}
    rows[3]["categories"] = 'primary, secondary, "tertiary, or more"'
    rows[11] |= {"role": "derived", "expression": "other + wages"}
    attributes = edited_plan(rows, people_plan(), SCHEMA).attributes
    assert attributes["since"].lower == date(1920, 2, 29)  # type: ignore[union-attr]
    assert attributes["children"] == Confidential(kind="ordinal", categories=[0, 1, 2])
    three = ("primary", "secondary", "tertiary, or more")
    assert attributes["education"].categories == three  # type: ignore[union-attr]
    assert attributes["income"] == Derived(expression="other + wages")


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"lower": "low"}, "attribute 'age': lower must be a number, got 'low'"),
        ({"k": "few"}, "attribute 'age': its own k must be a whole number or \"auto\", got 'few'"),
        ({"lower": "130"}, "attribute 'age': lower must be below upper"),
        ({"budget_share": None}, "attribute 'age': budget_share must be above 0"),
        ({"role": "derived"}, "attribute 'age': "),
        ({"categories": "1, x"}, "attribute 'age': categories must be whole numbers"),
    ],
)
def test_a_wrong_cell_is_named(cells: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError) as error:
        edited_plan(edited(**cells), people_plan(), SCHEMA)
    assert said in str(error.value)
    assert error.value.attribute == "age"
    assert error.value.setting == ("expression" if "role" in cells else next(iter(cells)))
    assert is_about_rows(error.value, edited(**cells), SETTINGS)


@pytest.mark.parametrize(
    ("settings", "cells", "in_rows"),
    [
        ({"missing": "error"}, {}, False),  # about «other», which has missing values
        ({"k": 2}, {}, False),
        ({}, {"k": "2"}, True),
        ({"k": 2_000}, {}, False),
        ({}, {"k": "2000"}, True),
        ({"method": "DP"}, {"lower": None}, True),
        ({"partition": "noise-optimal"}, {"method": "DP-UM"}, False),
        ({"anonymity": 1}, {}, False),
        ({"anonymity": 2_000}, {}, False),
        ({"guarantee": "re-clustered", "records_per_person": 2}, {}, False),
        ({"trim": 0.5}, {}, False),
        ({"epsilon": -1.0}, {}, False),
        ({}, {"lower": "30"}, True),  # some are younger
        ({}, {"kind": "nominal"}, True),
    ],
)
def test_an_error_is_shown_where_it_can_be_fixed(
    settings: dict[str, Any], cells: dict[str, object], in_rows: bool
) -> None:
    rows = edited(**cells)
    with pytest.raises(MicroveilError) as error:
        guarantee_notes(people(), edited_plan(rows, people_plan(), SCHEMA, **settings))
    assert is_about_rows(error.value, rows, SETTINGS) == in_rows


def test_a_table_without_confidential_attributes_is_fixed_in_the_rows() -> None:
    rows = [{**row, "role": "kept"} for row in rows_of(people_plan(), SCHEMA)]
    with pytest.raises(PlanError, match="at least one with role confidential") as error:
        edited_plan(rows, people_plan(), SCHEMA)
    assert is_about_rows(error.value, rows, SETTINGS)


def test_what_was_edited_is_no_longer_said_to_come_from_the_data() -> None:
    proposed = Plan.from_toml(propose_plan(people(), "people.csv"))
    rows = rows_of(proposed, SCHEMA)
    assert rows[1]["from data"] == "categories"
    rows[1]["categories"] = "North, East, South, West, Abroad"
    rows[10] |= {"lower": "0", "upper": "300"}
    plan = edited_plan(rows, proposed, SCHEMA, missing="drop")
    gone = set(proposed.from_data) - set(plan.from_data)
    assert gone == {"region: categories", "missing"}


@given(st.lists(st.text(max_size=6), min_size=2, max_size=5, unique=True))
def test_any_categories_survive_the_table(categories: list[str]) -> None:
    attribute = Confidential(kind="nominal", categories=categories)
    plan = Plan.published(epsilon=1.0, attributes={"a": attribute})
    schema = {"a": pl.String()}
    rows = rows_of(plan, schema)
    rows[0]["budget_share"] = 2.0
    assert edited_plan(rows, plan, schema).attributes["a"].categories == tuple(categories)  # type: ignore[union-attr]


def test_an_upload_is_read_as_a_file_and_leaves_no_trace() -> None:
    table, notes = Upload("a.csv", b"n;x\n01;1,5\n02;2,5\n", {"decimal": ","}).read()
    assert table.data.to_dicts() == [{"n": "01", "x": 1.5}, {"n": "02", "x": 2.5}]
    assert (notes, table.meta.path) == ([], None)
    _, notes = Upload("a.csv", "n,x\né,1\n".encode("windows-1252")).read()
    assert notes[0].startswith("a.csv: not UTF-8")
    with pytest.raises(DataError, match=r"^a\.csv: expected unique column names"):
        Upload("../../a.csv", b"n,n\n1,2\n").read()
    with pytest.raises(FileError, match=r"^a\.exe: expected a file ending in"):
        Upload("C:\\a.exe", b"MZ").read()


def test_kept_columns_are_read_to_the_letter() -> None:
    upload = Upload("a.csv", b"price\n1.50\n2.00\n")
    assert upload.read()[0].data["price"].to_list() == [1.5, 2.0]
    assert upload.read(["price"])[0].data["price"].to_list() == ["1.50", "2.00"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_downloads_belong_together(ending: str, tmp_path: Path) -> None:
    release = protect(people(), people_plan())
    files = release_files(release, "people.csv", ending)
    for name, content in (files.protected, files.certificate, files.detail):
        (tmp_path / name).write_bytes(content)
    certificate = Certificate.read(tmp_path / "people-protected.certificate.json")
    sha256 = sha256_of(tmp_path / f"people-protected{ending}")
    assert certificate.file is not None
    assert certificate.file.sha256 == sha256
    with ZipFile(BytesIO(zipped(files.protected, files.certificate))) as both:
        assert both.namelist() == [f"people-protected{ending}", "people-protected.certificate.json"]
        assert both.read(f"people-protected{ending}") == files.protected[1]
    detail = Detail.read(tmp_path / "people-protected.detail.zip")
    assert detail.protected_sha256 == sha256


def test_shares_before_and_after_add_up() -> None:
    table = people()
    release = protect(table, people_plan(), seed=1, keep_order=True)
    found = {shape.shares.name: shape.shares for shape in shapes_of_masked(table, release)}
    assert list(found) == [n for n in table.columns if n not in ("person", "region")]
    assert (found["since"].clock, found["education"].labels[0]) == ("date", "primary")
    for shares in found.values():
        outside = [n / int(table[shares.name].count()) for n in shares.outside]
        assert sum(shares.before) + outside[0] == pytest.approx(1)
        assert sum(shares.after) + outside[1] == pytest.approx(1)
    assert found["education"].before[0] == (table["education"] == "primary").mean()
    for shape in shapes(
        pair_tables(table, release.data, release.detail, release.plan)
    ):  # what the report draws
        assert shape.shares == found[shape.shares.name]


def test_an_attribute_of_a_type_that_is_not_compared_is_not_drawn() -> None:
    table = people().select("age").with_columns(pair=pl.concat_list("age", "age"))
    roles = {"age": Confidential(), "pair": Kept()}
    release = protect(table, Plan.published(epsilon=1.0, attributes=roles))
    assert [shape.shares.name for shape in shapes_of_masked(table, release)] == ["age"]


@pytest.mark.parametrize("trim", [0.0, 0.2])
def test_the_outlook_is_what_evaluate_measures(trim: float) -> None:
    table = people()
    plan = people_plan(epsilon=5.0).replace(trim=trim)
    found = outlook(table, plan)
    runs = [protect(table, plan, seed=seed, keep_order=True) for seed in range(20)]
    pairs = [pair_tables(table, run.data, run.detail, run.plan) for run in runs]
    measured = mean(mean_sse(*pair.complete_records()) for pair in pairs)
    assert found.error**2 / 7 == pytest.approx(measured, rel=0.25)
    assert found.attributes["attribute"].to_list()[:2] == ["age", "since"]


def test_a_large_table_is_predicted_on_some_records() -> None:
    table = pl.DataFrame({f"a{i}": range(60_000) for i in range(10)})
    assert some_records(table).height == 20_000
    assert some_records(table).equals(some_records(table))
    assert some_records(table.head(100)).height == 100


def test_a_domain_from_the_data_is_warned_of() -> None:
    table = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58]})
    plan = Plan.published(epsilon=1.0, k=3, method="iDP-LS", attributes={"age": "confidential"})
    assert "the domain was read from the data" in guarantee_notes(table, plan)[0]


def test_markup_lets_no_markup_through() -> None:
    hostile = "<img src=x onerror=alert(1)>&"
    for html in (message("error", hostile), items([hostile]), readings([(hostile,) * 3])):
        assert "<img" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;&amp;" in html


def test_the_page_listens_here_only_and_reports_nothing() -> None:
    told = options(8600)
    assert told["server.address"] == "127.0.0.1"
    assert told["server.port"] == 8600
    assert told["browser.gatherUsageStats"] is False
    assert told["server.headless"] is True
    assert told["server.fileWatcherType"] == "none"


def test_a_port_that_is_taken_is_refused(run: Callable[[str], tuple[int, str, str]]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        code, out, err = run(f"app --no-browser --port {other.getsockname()[1]}")
    assert (code, out) == (1, "")
    assert "choose another with --port" in err


def test_a_certificate_is_json() -> None:
    files = release_files(protect(people(), people_plan()), "people.csv", ".csv")
    assert json.loads(files.certificate[1])["file"]["name"] == "people-protected.csv"
