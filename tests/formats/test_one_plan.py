"""A plan made from a CSV file works on the same table in every other format."""

from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyreadstat
import pytest

from microveil import Confidential, Plan, check, protect
from microveil.formats import Source, read_table

pytestmark = pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")


def table() -> pd.DataFrame:
    rng, n = np.random.default_rng(1), 80
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "wages": rng.lognormal(8, 1, n).round(2),
            "whole": rng.integers(0, 500, n).astype(float),
            "gaps": [None if x < 5 else x for x in rng.integers(0, 50, n)],
            "born": [datetime(1950, 1, 1) + timedelta(int(x)) for x in rng.integers(0, 15_000, n)],
            "seen": [datetime(2020, 1, 1, 12) + timedelta(hours=int(x)) for x in range(n)],
            "job": rng.choice(["nurse", "smith", "clerk"], n),
            "sex": rng.choice([1, 2], n),
            "member": rng.choice([True, False], n),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the table as several programs do, and a plan that was proposed from the CSV file."""
    folder, people = tmp_path_factory.mktemp("one_plan"), table()
    as_dates = people.assign(born=people["born"].dt.date)
    as_dates.to_csv(folder / "people.csv", index=False)
    people.to_excel(folder / "people.xlsx", index=False)
    people.to_parquet(folder / "pandas.parquet", index=False)
    polars = pl.from_pandas(as_dates.assign(job=people["job"].astype("category")))
    polars.write_parquet(folder / "polars.parquet")
    coded = people.assign(member=people["member"].astype(int))
    pyreadstat.write_sav(coded, str(folder / "people.sav"))
    pyreadstat.write_dta(coded, str(folder / "people.dta"))
    proposed = Plan.propose(read_table(Source(folder / "people.csv")))
    declared = {
        "sex": Confidential(kind="nominal", categories=[1, 2]),
        "born": Confidential(lower=date(1950, 1, 1), upper=date(1992, 12, 31)),
    }
    assert proposed.attributes.keys() == set(people.columns)
    proposed.replace(attributes={**proposed.attributes, **declared}).write(folder / "plan.toml")
    return folder


@pytest.mark.parametrize(
    "name",
    ["people.csv", "people.xlsx", "pandas.parquet", "polars.parquet", "people.sav", "people.dta"],
)
def test_the_plan_of_the_csv_file_fits(folder: Path, name: str) -> None:
    plan = folder / "plan.toml"
    assert check(folder / name, plan) == ()
    release = protect(folder / name, Plan.read(plan), keep_order=True)
    assert release.data.columns == table().columns.to_list()
    assert release.data["gaps"].null_count() == table()["gaps"].isna().sum()
    assert set(release.data["sex"].cast(pl.Int64)) <= {1, 2}
    born = release.data["born"].cast(pl.Date)
    assert date(1950, 1, 1) <= born.min() <= born.max() <= date(1992, 12, 31)
