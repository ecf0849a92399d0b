"""Missing codes are values: as many of each come out as go in, and none tells whose row it is."""

from collections import Counter
from datetime import date, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import Certificate, Confidential, DataError, Plan, Release, protect
from microveil.attacks.informed import informed_figure
from microveil.attacks.known import EVERYTHING
from microveil.compare.asked import Asked
from microveil.compare.examined import examine
from microveil.formats import Domain, LoadedTable, TableMeta, load_table, write_table
from microveil.formats.metadata import ColumnMeta

pyreadstat: Any = import_module("pyreadstat")  # whose types do not know what it takes

N, ANONYMITY = 2_000, 10
MASKED = ["age", "income", "rent", "school"]
ROLES: dict[str, Any] = {
    "age": Confidential(decimals=0),
    "income": Confidential(decimals=0),
    "rent": Confidential(decimals=0),
    "school": Confidential(kind="ordinal", categories=[1, 2, 3, 4]),
    "sex": "identifier",
    "region": "identifier",
    "household": "identifier",
}
ENDINGS = ["sav", "dta"]


def codes_and_values(ending: str) -> pl.DataFrame:
    """Make a survey in which a third of all answers are one of three codes, or plainly missing.

    Its codes follow its values, as refusals do.
    """
    random = np.random.default_rng(5)
    wealth = random.normal(size=N)
    codes = [-9.0, -8.0, -7.0] if ending == "sav" else ["a", "b", "z"]
    columns: dict[str, Any] = {
        "age": 40 + np.round(12 * random.normal(size=N) + 5 * wealth),
        "income": np.round(2_000 + 500 * wealth + 100 * random.normal(size=N)),
        "rent": np.round(600 + 100 * wealth + 80 * random.normal(size=N)),
        "school": random.integers(1, 5, N).astype(float),
    }
    for name, values in columns.items():
        which = np.clip(np.round(1 + wealth + random.normal(size=N)), 0, 2).astype(int)
        entries = values.tolist()
        for i in np.flatnonzero(random.random(N) < 0.6):
            entries[i] = codes[which[i]] if i % 7 else None
        mixed = pl.Float64 if ending == "sav" else pl.Object
        columns[name] = pl.Series(entries, dtype=mixed)
    sex = random.integers(0, 2, N).astype(float).tolist()
    columns["sex"] = pl.Series(
        [codes[0] if i % 5 == 0 else codes[1] if i % 5 == 1 else x for i, x in enumerate(sex)],
        dtype=pl.Float64 if ending == "sav" else pl.Object,
    )
    columns["region"] = (np.arange(N) % 4).astype(float)
    columns["household"] = (np.arange(N) // 2).astype(float)
    return pl.DataFrame(columns)


def write(frame: pl.DataFrame, path: Path) -> Path:
    names = [*MASKED, "sex"]
    if path.suffix == ".sav":
        ranges = {name: [{"lo": -9, "hi": -7}] for name in names}
        formats = dict.fromkeys(frame.columns, "F8.0")
        pyreadstat.write_sav(frame, path, missing_ranges=ranges, variable_format=formats)
    else:
        letters = {name: ["a", "b", "z"] for name in names}
        pyreadstat.write_dta(frame, path, missing_user_values=letters)
    return path


@pytest.fixture(params=ENDINGS)
def survey(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return write(codes_and_values(request.param), tmp_path / f"in.{request.param}")


def plan(**settings: Any) -> Plan:  # noqa: ANN401 - of the plan
    return Plan(
        **{
            "epsilon": 10.0, "k": 5, "missing": "keep", "attributes": ROLES,
            "anonymity": ANONYMITY, **settings,
        }
    )  # fmt: skip


def entries(path: Path) -> pl.DataFrame:
    """Read for every record its value, its code, or that it has neither, as text."""
    data, meta = load_table(path)
    table: pl.DataFrame = data.select(
        pl.when(pl.col(name).is_not_null())
        .then(pl.lit("value"))
        .otherwise(pl.lit("none") if codes is None else codes.cast(pl.String).fill_null("none"))
        .alias(name)
        for name in data.columns
        for codes in [meta.columns[name].codes]
    )
    return table


def counts(table: pl.DataFrame, *by: str) -> Counter[tuple[str, ...]]:
    return Counter(
        (name, *row)
        for name in MASKED
        if name in table.columns
        for row in table.select(name, *by).iter_rows()
    )


def written(release: Release, tmp_path: Path, ending: str) -> pl.DataFrame:
    """Read a release again, in the order of the original."""
    path = release.write(tmp_path / f"out.{ending}", keep_order=True, overwrite=True).protected
    return entries(path)


def informed(*tables: Any, **about: Any) -> float:  # noqa: ANN401
    """Return the chance of the informed attacker."""
    with examine(*tables, random=np.random.default_rng(1), **about) as seen:
        figure = informed_figure(seen, EVERYTHING, Asked())
    assert figure is not None
    return figure.value


def test_thousands_of_codes_go_in_and_as_many_come_out(survey: Path, tmp_path: Path) -> None:
    before = entries(survey)
    assert (
        sum(n for (_, entry), n in counts(before).items() if entry not in ("value", "none")) > 4000
    )
    after = written(protect(survey, plan()), tmp_path, survey.suffix[1:])
    assert counts(after) == counts(before)


def test_nobody_is_found_by_codes(survey: Path, tmp_path: Path) -> None:
    """Own entries meet in a row as often as independent exchange puts them there, not more."""
    before, ending = entries(survey), survey.suffix[1:]
    found = expected = spread = 0.0
    for seed in range(5):
        release = protect(survey, plan(), seed=seed, keep_order=True)
        (joint,) = release.detail.joint.values()
        after = written(release, tmp_path, ending)
        assert np.bincount(joint).min() >= ANONYMITY
        for name in MASKED:
            coded = ~before[name].is_in(["value"])
            found += int(((before[name] == after[name]) & coded).sum())
            only = before.filter(coded)
            at = joint[coded.to_numpy()]
            size = np.bincount(joint)
            for label in np.unique(at):
                here = Counter(only[name].filter(pl.Series(at == label)).to_list())
                expected += sum(n * n for n in here.values()) / size[label]
                spread += sum(n * n for n in here.values()) / size[label]
    assert abs(found - expected) < 6 * spread**0.5


def test_an_attacker_who_knows_all_codes_picks_one_in_ten(survey: Path, tmp_path: Path) -> None:
    """He takes the row of the person's joint cluster that has most of the person's own codes."""
    before, ending = entries(survey), survey.suffix[1:]
    release = protect(survey, plan(), seed=1, keep_order=True)
    (joint,) = release.detail.joint.values()
    after = written(release, tmp_path, ending)
    mine, theirs = (
        np.array([table[name].to_list() for name in MASKED]).T for table in (before, after)
    )
    picked = 0.0
    for label in np.unique(joint):
        rows = np.flatnonzero(joint == label)
        for person in rows:
            same = ((theirs[rows] == mine[person]) & (mine[person] != "value")).sum(axis=1)
            best = rows[same == same.max()]
            picked += (person in best) / len(best)
    chance = len(np.unique(joint)) / N
    assert picked / N < chance + 5 * (chance / N) ** 0.5
    assert chance <= 1 / ANONYMITY
    assert informed(survey, release) == chance


def test_codes_stay_in_their_stratum(survey: Path, tmp_path: Path) -> None:
    before, ending = entries(survey), survey.suffix[1:]
    table, _ = load_table(survey)
    strata = plan(within=["region"], attributes={**ROLES, "region": "kept"})
    after = written(protect(survey, strata, keep_order=True), tmp_path, ending)
    whose = table["region"].alias("stratum")
    assert counts(after.with_columns(whose), "stratum") == counts(
        before.with_columns(whose), "stratum"
    )


def test_codes_of_units_move_with_their_values(tmp_path: Path) -> None:
    frame = codes_and_values("sav").with_columns(
        pl.col("income", "school").first().over("household")
    )
    path = write(frame, tmp_path / "in.sav")
    per_unit = {
        "income": Confidential(decimals=0, per_unit=True),
        "school": Confidential(kind="ordinal", categories=[1, 2, 3, 4], per_unit=True),
    }
    units = plan(
        unit="household",
        records_per_person=2,
        attributes={**ROLES, **per_unit},
    )
    release = protect(path, units, seed=2, keep_order=True)
    before, after = entries(path), written(release, tmp_path, "sav")
    assert counts(after) == counts(before)
    assert after["income"].n_unique() > 2
    of_units = after.with_columns(frame["household"]).group_by("household")
    differ = of_units.agg(pl.col("income", "school").n_unique() > 1)
    assert not differ.select(pl.any_horizontal("income", "school").any()).item()
    for name in MASKED:
        assert np.mean((after[name] == before[name]).to_numpy()) < 0.7


def test_codes_that_differ_within_a_unit_are_refused(tmp_path: Path) -> None:
    frame = codes_and_values("sav").with_columns(
        pl.when(pl.col("household") < 5)
        .then(pl.Series([-9.0, -8.0] * (N // 2)))
        .otherwise(pl.col("income").first().over("household"))
        .alias("income")
    )
    path = write(frame, tmp_path / "in.sav")
    units = plan(
        unit="household",
        records_per_person=2,
        attributes={
            **ROLES, "income": Confidential(decimals=0, per_unit=True),
        },
    )  # fmt: skip
    with pytest.raises(DataError, match="5 units have records with different values or missing"):
        protect(path, units)


def test_averages_take_the_commonest_code_of_their_joint_cluster(
    survey: Path, tmp_path: Path
) -> None:
    before, ending = entries(survey), survey.suffix[1:]
    release = protect(survey, plan(pooling="average"), seed=3)
    (joint,) = release.detail.joint.values()
    after = written(release, tmp_path, ending)
    for name in MASKED:
        for label in np.unique(joint):
            here = pl.Series(joint == label)
            (entry,) = after[name].filter(here).unique().to_list()
            found = Counter(before[name].filter(here).to_list())
            values = found.pop("value", 0)
            if entry == "value":
                assert 2 * values >= here.sum()
            else:
                assert 2 * values < here.sum()
                assert found[entry] == max(found.values())


def test_without_pooling_codes_are_in_random_order_among_missing_values(
    survey: Path, tmp_path: Path
) -> None:
    before, ending = entries(survey), survey.suffix[1:]
    school = Confidential(kind="ordinal", categories=[1, 2, 3, 4], method="DP-UM")
    alone = plan(anonymity=0, attributes={**ROLES, "school": school})
    after = written(protect(survey, alone, seed=4), tmp_path, ending)
    assert counts(after) == counts(before)
    for name in MASKED:
        was, now = (table[name].to_numpy() for table in (before, after))
        missing = was != "value"
        assert ((now != "value") == missing).all()
        shares = np.unique(was[missing], return_counts=True)[1] / missing.sum()
        own = (was == now)[missing].mean()
        assert own == pytest.approx((shares**2).sum(), abs=6 * 0.5 / missing.sum() ** 0.5)


def test_records_that_are_left_out_take_their_codes_along(survey: Path, tmp_path: Path) -> None:
    roles = {**ROLES, "sex": "kept"}
    release = protect(survey, plan(missing="drop", k=3, attributes=roles), seed=1)
    after = written(release, tmp_path, survey.suffix[1:])
    assert 0 < after.height < N
    positions: Any = release.detail.positions
    own = entries(survey)["sex"].gather(np.sort(positions))
    assert after["sex"].equals(own)
    assert set(after["sex"]) == set(entries(survey)["sex"])


def test_codes_of_kept_columns_part_the_classes(survey: Path, tmp_path: Path) -> None:
    """They stay on their record, so the informed attacker knows them: in memory and in files."""
    kept = plan(attributes={**ROLES, "sex": "kept"})
    release = protect(survey, kept, seed=1)
    (joint,) = release.detail.joint.values()
    data, _ = load_table(survey)
    own = pl.DataFrame({"joint": joint, "sex": data["sex"], "code": entries(survey)["sex"]})
    chance = own.unique().height / N
    assert chance > own.select("joint", "sex").unique().height / N
    assert informed(survey, release) == chance
    files = release.write(tmp_path / f"out{survey.suffix}", detail=True)
    assert informed(survey, files.protected, detail=files.detail) == chance


def test_the_certificate_says_where_codes_are(survey: Path, tmp_path: Path) -> None:
    def shown(ending: str, **settings: Any) -> dict[str, tuple[str, ...]]:  # noqa: ANN401
        release = protect(survey, plan(attributes={**ROLES, "sex": "kept"}, **settings), seed=1)
        files = release.write(tmp_path / f"out.{ending}", overwrite=True)
        certificate = Certificate.read(files.certificate)
        kinds = {one.kind: one.attributes for one in certificate.not_protected}
        return {kind: names for kind, names in kinds.items() if "codes" in kind}

    ending = survey.suffix[1:]
    masked = tuple(MASKED)
    assert shown(ending) == {"missing-codes": ("sex",), "missing-codes-moved": masked}
    assert shown(ending, pooling="average") == {
        "missing-codes": ("sex",), "missing-codes-averaged": masked,
    }  # fmt: skip
    other = "dta" if ending == "sav" else "sav"
    with pytest.warns(match="declared missing codes \\(now missing\\)"):
        assert shown(other) == {}


def test_codes_of_dates_in_stata_files_move_with_their_values(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    born: list[Any] = [date(1950, 1, 1) + timedelta(int(d)) for d in random.integers(0, 9_000, N)]
    seen: list[Any] = [datetime(2020, 1, 1, 8, int(m)) for m in random.integers(0, 60, N)]
    for i in np.flatnonzero(random.random(N) < 0.5).tolist():
        born[i], seen[i] = "abz"[random.integers(3)], ["a", "z", None][random.integers(3)]
    frame = pl.DataFrame({"born": pl.Series(born, dtype=pl.Object), "age": np.arange(N) * 1.0})
    frame = frame.with_columns(pl.Series("seen", seen, dtype=pl.Object))
    letters = {name: ["a", "b", "z"] for name in ("born", "seen")}
    shown = {"born": "%tdD_m_Y", "seen": "%tc"}
    path = tmp_path / "in.dta"
    pyreadstat.write_dta(frame, path, missing_user_values=letters, variable_format=shown)
    data, _ = load_table(path)
    assert data["born"].dtype == pl.Date
    assert data["born"].drop_nulls().to_list() == [d for d in born if isinstance(d, date)]
    roles: dict[str, Any] = {"born": Confidential(), "age": Confidential(), "seen": "kept"}
    release = protect(path, plan(attributes=roles), seed=1)
    before, after = entries(path), written(release, tmp_path, "dta")
    assert len(set(before["born"])) == len(set(before["seen"])) == 4
    assert Counter(after["born"]) == Counter(before["born"])
    assert after["seen"].equals(before["seen"])
    was, now = (each["born"].to_numpy() for each in (before, after))
    assert (was == now)[was != "value"].mean() < 0.6


def test_codes_of_dates_in_spss_files_move_with_their_values(tmp_path: Path) -> None:
    """Dates, times and both, in seconds, as SPSS stores them; two dates stand for no date."""
    random, day = np.random.default_rng(7), 86_400.0
    coded = random.random(N) < 0.5
    one, other = 141_428 * day, 141_429 * day  # the first two days of 1970
    codes = np.where(random.random(N) < 0.5, one, other)
    frame = pl.DataFrame(
        {
            "born": np.where(coded, codes, (150_000 + random.integers(0, 9_000, N)) * day),
            "seen": np.where(coded, codes, 1.4e10 + random.integers(0, 10**6, N)),
            "wake": np.where(coded, 0.0, 1 + random.integers(0, 86_000, N)),
        }
    )
    dated = {"lo": one, "hi": other}
    shown = {"born": "EDATE10", "seen": "DATETIME20", "wake": "TIME8"}
    path = tmp_path / "in.sav"
    ranges = {"born": [dated], "seen": [dated], "wake": [0]}
    pyreadstat.write_sav(frame, path, missing_ranges=ranges, variable_format=shown)
    data, _ = load_table(path)
    assert data.dtypes == [pl.Date, pl.Datetime("us"), pl.Time]
    assert data["born"].is_null().to_list() == coded.tolist()
    roles: dict[str, Any] = {"born": Confidential(), "seen": Confidential(), "wake": "kept"}
    release = protect(path, plan(attributes=roles), seed=1)
    before, after = entries(path), written(release, tmp_path, "sav")
    for name in ("born", "seen"):
        assert len(set(before[name])) == 3
        assert Counter(after[name]) == Counter(before[name])
        was, now = (each[name].to_numpy() for each in (before, after))
        assert (was == now)[was != "value"].mean() < 0.7
    stored = [
        pyreadstat.read_sav(
            file, user_missing=True, disable_datetime_conversion=True, output_format="polars"
        )[0]["wake"]
        for file in (path, tmp_path / "out.sav")
    ]
    assert stored[0].equals(stored[1])


def test_masked_dates_keep_clear_of_codes(tmp_path: Path) -> None:
    day, anywhere = 86_400.0, Domain(-np.inf, np.inf, None)
    first = 141_428 * day
    frame = pl.DataFrame(
        {
            "born": [date(1970, 1, 1), date(1970, 1, 2), date(1969, 12, 31), None],
            "seen": [
                datetime(1970, 1, 1),
                datetime(1970, 1, 1, 0, 0, 1),
                datetime(1971, 1, 1),
                None,
            ],
        }
    )
    columns = {
        "born": ColumnMeta(missing=((first, first + day),), display="DATE11", masked=anywhere),
        "seen": ColumnMeta(missing=((first, first),), display="DATETIME20", masked=anywhere),
    }
    write_table(frame, tmp_path / "out.sav", TableMeta(family="spss", columns=columns))
    data, meta = load_table(tmp_path / "out.sav")
    assert data["born"].to_list() == [
        date(1969, 12, 31), date(1970, 1, 3), date(1969, 12, 31), None,
    ]  # fmt: skip
    assert data["seen"][0] in (datetime(1969, 12, 31, 23, 59, 59), datetime(1970, 1, 1, 0, 0, 1))
    assert data["seen"][1:].equals(frame["seen"][1:])
    assert not meta.codes


def test_codes_of_sas_move_with_their_values(tmp_path: Path) -> None:
    """No Python library writes SAS files, so this is what reading one returns."""
    made = load_table(write(codes_and_values("dta"), tmp_path / "in.dta"))
    columns = {name: ColumnMeta(codes=codes) for name, codes in made.meta.codes.items()}
    table = LoadedTable(made.data, TableMeta(family="sas", columns=columns))
    after = written(protect(table, plan(), seed=1), tmp_path, "dta")
    before = entries(tmp_path / "in.dta")
    assert counts(after) == counts(before)
    for name in MASKED:
        was, now = (each[name].to_numpy() for each in (before, after))
        assert (was == now)[was != "value"].mean() < 0.6
