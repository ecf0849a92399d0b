"""Names, values and plans that once ended in a foreign exception, or in wrong values."""

import zipfile
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from microveil import (
    Confidential,
    DataError,
    Derived,
    FileError,
    Plan,
    PlanError,
    Source,
    evaluate,
    protect,
    protect_file,
    verdict,
)
from microveil.formats import write_table
from microveil.plan.propose.proposal import propose_plan
from microveil.release.detail import Detail

Libraries = {
    "polars": pl.DataFrame,
    "pandas": pl.DataFrame.to_pandas,
    "pyarrow": pl.DataFrame.to_arrow,
}
VALUE = 918_273  # stands for a data value: no message may contain it
NOMINAL = Confidential(kind="nominal", categories=["a", "b"])


@pytest.fixture(params=Libraries)
def library(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401
    return Libraries[request.param]


def plan(pooling: Any = "exchange", **attributes: Any) -> Plan:  # noqa: ANN401
    return Plan.published(epsilon=1, k=3, anonymity=4, pooling=pooling, attributes=attributes)


def named(name: str) -> pl.DataFrame:
    numbers = np.random.default_rng(1).normal(size=24).round(2)
    return pl.DataFrame({name: numbers, "x": range(24), f"{name} ": ["a", "b"] * 12})


@pytest.mark.parametrize("name", ["len", "^x$", "*", 'a"b'])
@pytest.mark.parametrize("pooling", ["exchange", "average"])
def test_any_name_will_do(name: str, pooling: str, library: Any) -> None:  # noqa: ANN401
    table = named(name)
    roles = plan(pooling, **{name: "confidential", "x": "kept", f"{name} ": NOMINAL})
    release = protect(library(table), roles, seed=1, keep_order=True)
    released = nw.from_native(release.data, eager_only=True)
    assert released.columns == table.columns
    assert released["x"].to_list() == list(range(24))
    evaluate(library(table), release)
    verdict(library(table), release, seed=1)


@pytest.mark.parametrize("name", ["", "^x$", "*", 'a"b'])
def test_synthetic_rows_have_any_name(name: str, library: Any) -> None:  # noqa: ANN401
    table = pl.DataFrame({name: ["a", "b"] * 200, "x": range(400)})
    attributes = {name: NOMINAL, "x": Confidential(kind="integer", lower=0, upper=400)}
    plan = Plan(epsilon=1, release="synthetic", missing="drop", attributes=attributes)
    released = nw.from_native(protect(library(table), plan, seed=1).data, eager_only=True)
    assert released.columns == [name, "x"]
    assert set(released[name].to_list()) == {"a", "b"}


@pytest.mark.parametrize("name", ["", "^x$", "*"])
def test_plans_are_proposed_for_any_name(name: str, library: Any) -> None:  # noqa: ANN401
    table = pl.DataFrame({name: ["a", "b"] * 20, "x": range(40)})
    assert [*Plan.propose(library(table)).attributes] == [name, "x"]


@pytest.mark.parametrize("name", ["^x$", "*"])
def test_dates_and_missing_values_have_any_name(name: str, library: Any) -> None:  # noqa: ANN401
    days = pl.date_range(date(2020, 1, 1), date(2020, 1, 24), eager=True)
    lasted = pl.Series([timedelta(days=1), None] * 12)
    table = pl.DataFrame({name: [None, *days[1:]], "lasted": lasted})
    roles = Plan.published(
        epsilon=1, k=3, missing="keep", attributes={name: "confidential", "lasted": "kept"}
    )
    release = protect(library(table), roles, seed=1, keep_order=True)
    released = nw.from_native(release.data, eager_only=True)
    assert released["lasted"].null_count() == 12
    assert released[name].null_count() == 1
    verdict(library(table), release, seed=1)


@pytest.mark.parametrize("name", ["len", "^x$", "*", 'a"b'])
@pytest.mark.parametrize("ending", ["csv", "parquet", "xlsx"])
def test_any_name_survives_files(name: str, ending: str, tmp_path: Path) -> None:
    table, path, out = named(name), tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    write_table(table, path)
    roles = plan(**{name: "confidential", "x": "kept", f"{name} ": NOMINAL})
    release = protect(path, roles, seed=1, keep_order=True)
    assert release.data.columns == table.columns
    if ending != "xlsx":
        protect_file(path, roles, out, keep_order=True, seed=1)
        assert Source(out).path == out
        written = protect(out, roles, seed=1, keep_order=True).data  # read as it was written
        assert written.columns == table.columns
        assert written["x"].to_list() == list(range(24))
    assert Plan.from_toml(propose_plan(table, "in")).attributes.keys() == set(table.columns)


@pytest.mark.parametrize("name", ["^x$", "*", "^.*$"])
def test_an_expression_never_takes_a_name_for_others(name: str) -> None:
    with pytest.raises(PlanError, match="takes for patterns of names") as error:
        plan(
            **{name: "confidential", "x": "confidential", "y": Derived(expression=f'"{name}" + x')}
        )
    assert error.value.setting == "expression"


@pytest.mark.parametrize(
    "expression",
    [
        "+".join(["x"] * 20_000),
        "CASE " + " ".join(f"WHEN x = {i} THEN {i}" for i in range(20_000)) + " END",
    ],
)
def test_expressions_are_of_limited_size(expression: str) -> None:
    with pytest.raises(PlanError, match="may have 500 names, numbers and signs, found"):
        Derived(expression=expression)
    Derived(expression=" + ".join(["x"] * 250))


def test_a_panic_of_polars_is_one_line() -> None:
    with pytest.raises(PlanError, match="not an SQL expression"):
        Derived(expression="LEAST() + age")


def test_a_panic_of_polars_is_a_defect_without_its_message(
    run: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException(VALUE)

    monkeypatch.setattr("microveil.release.release.Release.write_to", panic)
    named("y").write_csv("in.csv")
    code, _, err = run(
        "protect in.csv -o out.csv --epsilon 1 --drop x --drop 'y ' --k 3 --anonymity 0"
    )
    assert code == 3
    assert "defect: PanicException" in err
    assert str(VALUE) not in err


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1e300, 2.0, VALUE] * 3),
        pl.Series([2**63 + VALUE, 1, 2] * 3, dtype=pl.UInt64),
        pl.Series([float("inf"), 1.0, VALUE] * 3),
    ],
)
def test_categories_too_large_are_refused_without_values(values: pl.Series, library: Any) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match="'x': categories must be text, whole numbers") as error:
        protect(library(pl.DataFrame({"x": values})), plan(x=Confidential(kind="nominal")))
    assert str(VALUE) not in str(error.value)


@pytest.mark.filterwarnings("ignore:.*read from the data", "ignore:.*clearly agree")
@pytest.mark.parametrize("codes", [[2**53 + 1, 2, 3], [1e18, 2.0, 3.0]])
def test_large_codes_stay_what_they_are(codes: list[float], library: Any) -> None:  # noqa: ANN401
    table = library(pl.DataFrame({"x": codes * 4}))
    released = protect(table, plan(x=Confidential(kind="nominal")), seed=1, keep_order=True).data[
        "x"
    ]
    assert set(nw.from_native(released, series_only=True).to_list()) <= set(codes)


def test_large_whole_numbers_are_masked(library: Any) -> None:  # noqa: ANN401
    table = library(pl.DataFrame({"x": [2**60 + 2**12 * i for i in range(12)]}))
    declared = Confidential(lower=0, upper=2**61)
    released = protect(table, plan(x=declared), seed=1, keep_order=True).data["x"]
    assert nw.from_native(released, series_only=True).dtype == nw.Int64


@pytest.mark.parametrize(
    ("unit", "last"),
    [("us", 253_402_300_799_999_999), ("ms", 253_402_300_799_999), ("ns", 2**63 - 1)],
)
@pytest.mark.parametrize("declared", [False, True])
def test_times_stay_within_the_last_one_there_is(
    unit: Any,  # noqa: ANN401
    last: int,
    declared: bool,
    library: Any,  # noqa: ANN401
) -> None:
    times = pl.Series([last - i for i in range(12)]).cast(pl.Datetime(unit))
    end = datetime(2262, 4, 11, 23, 47, 16, 854_775) if unit == "ns" else datetime.max
    domain = {"lower": datetime(2200, 1, 1), "upper": end, "time_step": "microsecond"}
    own = Confidential(**domain) if declared else Confidential()  # type: ignore[arg-type]
    roles = Plan.published(epsilon=1e-3, k=3, attributes={"x": own})
    released = protect(library(pl.DataFrame({"x": times})), roles, seed=1, keep_order=True).data[
        "x"
    ]
    released = nw.from_native(released, series_only=True).to_polars()
    assert released.null_count() == 0
    assert (
        released.dt.year()
        .is_between(1677 if unit == "ns" else 1, 2262 if unit == "ns" else 9999)
        .all()
    )
    if declared:
        assert released.max() <= end
        assert released.min() >= datetime(2200, 1, 1)


def test_times_beyond_all_calendars_are_refused_in_words(library: Any) -> None:  # noqa: ANN401
    times = pl.Series([2**62, 0, 1] * 4).cast(pl.Datetime("ms"))
    with pytest.raises(DataError, match="'x': values too large for its noise grid"):
        protect(library(pl.DataFrame({"x": times})), plan(x="confidential"))


@pytest.mark.parametrize("width", [1e155, 1e300, 8e307])
@pytest.mark.parametrize("post", ["isotonic", "penalised-isotonic"])
def test_the_widest_domains_lose_no_values(width: float, post: Any) -> None:  # noqa: ANN401
    numbers = np.random.default_rng(1).uniform(-width, width, 60)
    roles = Plan.published(
        epsilon=1, k=3, post=post, attributes={"x": Confidential(lower=-width, upper=width)}
    )
    released = protect(pl.DataFrame({"x": numbers}), roles, seed=1, keep_order=True).data["x"]
    assert released.null_count() == 0
    # The same as of numbers that are smaller by a power of two.
    smaller = roles.replace(
        attributes={"x": Confidential(lower=-width / 2**512, upper=width / 2**512)}
    )
    expected = protect(
        pl.DataFrame({"x": numbers / 2**512}), smaller, seed=1, keep_order=True
    ).data["x"]
    assert np.array_equal(released.to_numpy(), expected.to_numpy() * 2**512)


@pytest.mark.parametrize("setting", ["k", "cap", "anonymity", "records_per_person"])
def test_numbers_of_records_have_an_end(setting: str) -> None:
    with pytest.raises(PlanError, match=f"plan: {setting} must be at most 1,000,000,000,000"):
        Plan.published(**{"epsilon": 1.0, "attributes": {"x": "confidential"}, setting: 10**400})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("k = " + "[" * 20_000, "nested too deeply"),
        ("k = 1" + "0" * 5_000, "plan: not valid TOML: Exceeds the limit"),
        (
            "epsilon = 1.0\n[attributes.x]\nrole = 'confidential'\nkind = 'nominal'\n"
            f"[attributes.x.taxonomy.{'.'.join('a' * 5_000)}]\nb = []",
            "groups are nested too deeply",
        ),
        (
            "epsilon = 1.0\n[attributes.x]\nrole = 'confidential'\nkind = 'nominal'\n"
            f"categories = [1, {2**63}]",
            "categories that are whole numbers must fit into 64 bits",
        ),
    ],
)
def test_plans_out_of_bounds_are_refused(toml: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.from_toml(toml)


def test_a_deep_taxonomy_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.csv"
    path.write_text("parent,child\n" + "".join(f"{i},{i + 1}\n" for i in range(5_000)))
    with pytest.raises(PlanError, match="groups are nested too deeply"):
        Confidential(kind="nominal", taxonomy=path)


def test_an_encrypted_detail_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "out.detail.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("clusters.parquet", b"x")
    content = bytearray(path.read_bytes())
    content[6] |= 1  # of the entry, and of the list of entries
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="not a readable private detail"):
        Detail.read(path)
