"""Synthetic releases: what a model learns from them, and how long they take.

`python -m bench.synthetic [SPLITS]` releases one half of a table, trains a random forest on the
release and tests it on the other half, as the same forest trained on the half itself. Then it
makes a release of 1,000,000 records of 20 attributes. ε = 1 and δ = 10^-5, unless said otherwise.

`python -m bench.synthetic [SPLITS] PYTHON` also runs AIM and MST of dpmm on the same halves, by
their defaults, where PYTHON is that of an environment with `pip install dpmm polars`: minutes of
processor time for each.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from microveil import Plan

EPSILON, DELTA, CLASS = 1.0, 1e-5, "class"
PEERS, BINNING = ("AIM", "MST"), 0.1  # of epsilon, which its defaults add for bins
LARGE, ATTRIBUTES = 1_000_000, 20


def peer(name: str, source: str, domains: str, out: str) -> None:
    """Make a synthetic table; runs in the environment that has dpmm."""
    import json

    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline  # type: ignore[import-not-found]

    half, bounds = pl.read_parquet(source), json.loads(Path(domains).read_text())
    table = pd.DataFrame({column.name: column.to_numpy() for column in half})
    for column, bound in bounds.items():
        if "categories" in bound:
            table[column] = pd.Categorical(table[column], categories=bound["categories"])
    pipeline = {"AIM": AIMPipeline, "MST": MSTPipeline}[name](
        epsilon=EPSILON - BINNING, delta=DELTA, proc_epsilon=BINNING, n_jobs=1
    )
    pipeline.fit(table, bounds)
    made = pipeline.generate(len(table))
    pl.DataFrame({name: made[name].to_list() for name in made}).write_parquet(out)


def main(splits: int, python: str | None) -> None:
    """Measure and print."""
    for name, (table, plan) in _tables().items():
        found = [_learned_on(table, plan, split, python) for split in range(splits)]
        means = pl.DataFrame(found).mean().row(0, named=True)
        figures = ", ".join(f"{what} {value:.3f}" for what, value in means.items())
        print(f"{name}, {table.height // 2:,} records, {splits} splits: {figures}", flush=True)
    _time_large()


def _tables() -> "dict[str, tuple[pl.DataFrame, Plan]]":
    """Return tables whose column `class` is to be predicted, and plans with wide domains."""
    from microveil import Confidential, Plan
    from microveil.lab.benchmark.benchmark_data import open_data
    from microveil.plan.survey import survey

    tables = {}
    for name in ("census", "wine"):
        data = open_data(name)
        assert data.classes is not None  # noqa: S101 - the paper's data sets have classes
        tables[name] = data.table.with_columns(pl.Series(CLASS, data.classes * 1))
    persons = survey(1_832).with_columns((pl.col("work") == "employed").cast(pl.Int64).alias(CLASS))
    tables["survey"] = persons.drop("household_id", "person_id", "work", "sampling_weight")
    found = {}
    for name, table in tables.items():
        attributes = {}
        for column in table:
            if column.name == CLASS:
                settings = Confidential(kind="nominal", categories=[0, 1])
            elif column.dtype == pl.String:
                categories = sorted(column.drop_nulls().unique())
                settings = Confidential(kind="nominal", categories=categories)
            else:
                whole = column.dtype.is_integer()
                top = float(column.max())  # type: ignore[arg-type]
                settings = Confidential(
                    kind="integer" if whole else "real", lower=0, upper=_round_above(top)
                )
            attributes[column.name] = settings
        plan = Plan(
            epsilon=EPSILON, delta=DELTA, release="synthetic", missing="drop", attributes=attributes
        )
        found[name] = table, plan
    return found


def _round_above(top: float) -> float:
    """Return the next number with two digits, as somebody who knows the subject would declare."""
    size = 10.0 ** (np.floor(np.log10(top)) - 1)
    return float(np.round(np.ceil(top / size) * size, 9))


def _learned_on(
    table: pl.DataFrame, plan: "Plan", split: int, python: str | None
) -> dict[str, float]:
    from microveil import protect

    order = np.random.default_rng(split).permutation(table.height)
    half, rest = table[order[: len(order) // 2]], table[order[len(order) // 2 :]]
    found = {"original": _auc(half, rest)}
    started = time.process_time()
    found["one model"] = _auc(protect(half, plan).data, rest)
    parts = protect(half, plan.replace(predicts=CLASS)).data
    found["seconds"] = (time.process_time() - started) / 2
    found["predicts class"] = _auc(parts, rest)
    for name in PEERS if python else ():
        made, seconds = _by_peer(name, half, plan, str(python))
        found |= {name: _auc(made, rest), f"{name} seconds": seconds}
    return found


def _auc(made: pl.DataFrame, rest: pl.DataFrame) -> float:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    made = made.drop_nulls()
    texts = [name for name, dtype in rest.schema.items() if dtype == pl.String]
    ranks = {name: sorted(rest[name].drop_nulls().unique()) for name in texts}
    made, rest = (
        each.with_columns(
            pl.col(name).cast(pl.String).replace_strict(values, range(len(values)), default=-1)
            for name, values in ranks.items()
        )
        for each in (made, rest)
    )
    if made[CLASS].n_unique() < 2:
        return 0.5
    names = [name for name in rest.columns if name != CLASS]
    forest = RandomForestClassifier(random_state=0, min_samples_leaf=2, n_jobs=1)
    forest.fit(made.select(names).to_numpy(), made[CLASS].to_numpy())
    return float(
        roc_auc_score(rest[CLASS], forest.predict_proba(rest.select(names).to_numpy())[:, 1])
    )


def _by_peer(
    name: str, half: pl.DataFrame, plan: "Plan", python: str
) -> tuple[pl.DataFrame, float]:
    import json

    domains = {
        column: {"lower": a.lower, "upper": a.upper} if a.categories is None
        else {"categories": list(a.categories)}
        for column, a in plan.confidential.items()
    }  # fmt: skip
    with TemporaryDirectory() as directory:
        source, bounds, out = (
            str(Path(directory) / n) for n in ("in.parquet", "d.json", "out.parquet")
        )
        half.write_parquet(source)
        Path(bounds).write_text(json.dumps(domains))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([python, __file__, name, source, bounds, out], check=True)
        return pl.read_parquet(out), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def _time_large() -> None:
    from microveil import Confidential, Plan, protect

    random = np.random.default_rng(0)
    z = random.standard_normal((LARGE, ATTRIBUTES)) @ random.standard_normal((ATTRIBUTES,) * 2)
    table = pl.DataFrame({f"x{i}": z[:, i].round(3) for i in range(ATTRIBUTES)})
    del z
    attribute = Confidential(kind="real", lower=-30, upper=30, decimals=3)
    attributes = dict.fromkeys(table.columns, attribute)
    plan = Plan(epsilon=1.0, release="synthetic", missing="drop", delta=1e-8, attributes=attributes)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    protect(table, plan)
    seconds = time.process_time() - started
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{LARGE:,} x {ATTRIBUTES}: {seconds:.1f} s of processor time, memory at most "
          f"{after / 2**20:.2f} GB ({before / 2**20:.2f} GB before)")  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 3:
        peer(*sys.argv[1:])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 5, sys.argv[2] if sys.argv[2:] else None)
