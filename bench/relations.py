"""What exchange keeps of relations among 10 and 50 people, and what it gives away.

Census and Wine Quality, firms with heavy-tailed amounts and a survey of mixed types (both made up),
recommended plans at ε = 1, mean of five runs: mean and largest change of an association (absolute
correlation, correlation ratio, Cramér's V) against the original; signs of significant regression
coefficients that stay; area under the curve of boosting trained on 70% of the records as released
and tested on the others as they were; nearest linkage, and how often own values meet in a row
beside fresh draws of a model of other people (both of the first run alone). About twenty minutes.
As in `python -m bench.relations wine` the first word of a name chooses a table; `speed` times
joint clusters of ten and exchange.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from microveil import Confidential, Plan, protect, verdict
from microveil.core.joint import cluster_points
from microveil.core.mdav import standardise
from microveil.core.pooling import block_of, collect_clusters
from microveil.core.random_words import SystemWords
from microveil.core.related_exchange import RelatedExchange
from microveil.core.relation_model import RowValues
from microveil.lab.paper.datasets import CENSUS, WINE, load_data_set
from microveil.types import Reals

RUNS = 5
SIGNIFICANT = 2.58
SETTINGS = ((10, False), (10, True), (50, True), (50, False), (0, True))


class Table(NamedTuple):
    """A table, and the column that is learned: above its median, or the first of its categories."""

    name: str
    data: pl.DataFrame
    target: str

    @property
    def nominal(self) -> list[str]:
        """Names of the columns of categories."""
        return [name for name, kind in self.data.schema.items() if kind == pl.String]

    @property
    def plan(self) -> Plan:
        """The recommended plan at ε = 1, not pooled."""
        roles: dict[str, Any] = {}
        for name, column in self.data.to_dict().items():
            if name in self.nominal:
                categories = column.unique().sort().to_list()
                roles[name] = Confidential(kind="nominal", categories=categories)
            else:
                low = min(0.0, float(column.min()))  # type: ignore[arg-type]
                roles[name] = Confidential(lower=low, upper=1.5 * float(column.max()))  # type: ignore[arg-type]
        return Plan(epsilon=1.0, anonymity=0, attributes=roles)


def firms(records: int = 834) -> pl.DataFrame:
    """Make amounts of firms that follow from their size, with tails as heavy as business data's."""
    random = np.random.default_rng(4)
    size, kind = random.normal(0, 1.4, records), random.normal(size=(records, 3))
    amounts = {}
    for number in range(13):
        mix = random.normal(size=3) * 0.5
        z = size * random.uniform(0.6, 1.1) + kind @ mix + random.normal(0, 0.4, records)
        amounts[f"amount{number + 1}"] = np.round(np.exp(4 + z))
    return pl.DataFrame(amounts)


def survey(records: int = 4_600) -> pl.DataFrame:
    """Make answers of people that follow from four traits: eight of categories, four numbers."""
    random = np.random.default_rng(9)
    traits, columns = random.normal(size=(records, 4)), {}
    for number, kinds in enumerate((2, 7, 14, 6, 5, 9, 3, 4)):
        likely = traits @ random.normal(size=(4, kinds)) - 3.0 * np.arange(kinds) / kinds
        drawn = (likely + random.gumbel(size=likely.shape)).argmax(axis=1)
        columns[f"answer{number + 1}"] = pl.Series([f"c{code:02d}" for code in drawn])
    for number in range(4):
        z = traits @ random.normal(size=4) + random.normal(size=records)
        values = np.round(np.exp(0.5 * z) * 1_000) if number < 2 else np.round(10 * z + 50)
        columns[f"number{number + 1}"] = pl.Series(values)
    return pl.DataFrame(columns)


def tables() -> list[Table]:
    """Return the four tables."""
    census = load_data_set(replace(CENSUS, attributes=tuple(CENSUS.columns))).attributes
    wine = load_data_set(replace(WINE, attributes=tuple(WINE.columns))).attributes
    return [
        Table("Census", census, "TAXINC"),
        Table("Wine Quality", wine, wine.columns[-1]),
        Table("firms", firms(), "amount1"),
        Table("survey", survey(), "answer1"),
    ]


def associations(data: pl.DataFrame) -> Reals:
    """Return the strength of every pair of columns."""
    found = []
    for a, b in combinations(data.columns, 2):
        one, two = data[a], data[b]
        words = [column.dtype == pl.String for column in (one, two)]
        if all(words):
            found.append(cramers_v(one, two))
        elif any(words):
            found.append(correlation_ratio(*((one, two) if words[0] else (two, one))))
        else:
            found.append(abs(float(np.corrcoef(one.to_numpy(), two.to_numpy())[0, 1])))
    return np.array(found)


def cramers_v(one: pl.Series, two: pl.Series) -> float:
    """Return how strongly two columns of categories go together."""
    a, b = (column.rank("dense").to_numpy().astype(int) - 1 for column in (one, two))
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1.0)
    chance = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(a)
    squares = float(((counts - chance) ** 2 / chance).sum())
    return float(np.sqrt(squares / len(a) / max(1, min(counts.shape) - 1)))


def correlation_ratio(groups: pl.Series, values: pl.Series) -> float:
    """Return how much of the deviation of numbers lies between categories."""
    code = groups.rank("dense").to_numpy().astype(int) - 1
    x = values.to_numpy().astype(np.float64)
    counts = np.bincount(code)
    means = np.bincount(code, x) / counts
    return float(np.sqrt(np.sum(counts * (means - x.mean()) ** 2) / np.sum((x - x.mean()) ** 2)))


def signs(original: pl.DataFrame, released: pl.DataFrame, target: str) -> float | None:
    """Return the share of significant regression coefficients that keep their sign."""
    numbers = [n for n, kind in original.schema.items() if kind != pl.String and n != target]
    if original.schema[target] == pl.String:
        target, numbers = numbers[0], numbers[1:]
    before, spread = coefficients(original, target, numbers)
    after, _ = coefficients(released, target, numbers)
    counted = np.abs(before / spread) > SIGNIFICANT
    return float(np.mean(np.sign(before[counted]) == np.sign(after[counted])))


def coefficients(data: pl.DataFrame, target: str, numbers: list[str]) -> tuple[Reals, Reals]:
    """Return least squares coefficients of standardised columns, and their standard errors."""
    table = data.select(*numbers, target).to_numpy().astype(np.float64)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    x, y = table[:, :-1], table[:, -1]
    inverse = np.linalg.pinv(x.T @ x)
    found = inverse @ x.T @ y
    left = float(np.sum((y - x @ found) ** 2)) / (len(y) - x.shape[1])
    return found, np.sqrt(left * np.diag(inverse))


def learned(table: Table, released: pl.DataFrame, seed: int) -> float:
    """Return the area under the curve on records that were not released for learning."""
    train = np.random.default_rng(seed).random(table.data.height) < 0.7
    others = [name for name in table.data.columns if name != table.target]

    def design(data: pl.DataFrame) -> Reals:
        parts = []
        for name in others:
            if name in table.nominal:
                known = table.data[name].unique().sort().to_list()
                parts += [(data[name] == word).to_numpy().astype(np.float64) for word in known]
            else:
                parts.append(data[name].to_numpy().astype(np.float64))
        return np.column_stack(parts)

    def classes(data: pl.DataFrame) -> Any:  # noqa: ANN401 - booleans
        if table.target in table.nominal:
            return (data[table.target] == table.data[table.target].min()).to_numpy()
        return (data[table.target] > table.data[table.target].median()).to_numpy()

    model = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    model.fit(design(released)[train], classes(released)[train])
    likely = model.predict_proba(design(table.data)[~train])[:, 1]
    return float(roc_auc_score(classes(table.data)[~train], likely))


@contextmanager
def independent() -> Iterator[None]:
    """Exchange every attribute by itself, as the first versions did."""
    with patch("microveil.core.related_exchange.fit_relations", lambda *_, **__: None):
        yield


def measured(table: Table, anonymity: int, *, related: bool) -> str:
    """Release a table a few times; return the figures."""
    plan = table.plan.replace(anonymity=anonymity)
    before, found = associations(table.data), []
    for seed in range(RUNS):
        if related or not anonymity:
            release = protect(table.data, plan, seed=seed, keep_order=True)
        else:
            with independent():
                release = protect(table.data, plan, seed=seed, keep_order=True)
        data = release.data
        change = np.abs(associations(data) - before)
        row = [change.mean(), change.max(), signs(table.data, data, table.target),
               learned(table, data, seed), np.nan, np.nan, np.nan]  # fmt: skip
        if anonymity and seed == 0:
            judged = {f.measure: f for f in verdict(table.data, release, seed=1).figures}
            own = judged.get("linkage.own_values")
            row[4] = max(f.value for n, f in judged.items() if n.startswith("linkage.nearest"))
            if own is not None:
                row[5:] = [own.facts["rate"], own.facts["control"]]
        found.append(row)
    figures = np.array(found, dtype=np.float64)
    mean = np.append(figures[:, :4].mean(axis=0), figures[0, 4:])
    text = f"{mean[0]:.4f} {mean[1]:.3f} / {mean[2]:.2f} / {mean[3]:.3f}"
    if not anonymity:
        return text
    return f"{text} / {mean[4]:.1%} / {mean[5]:.1%} beside {mean[6]:.1%}"


def speed() -> None:
    """Print the processor time of pooling, beside that of sorting."""
    random = np.random.default_rng(1)
    for records, numbers, nominal in ((1_000_000, 10, 0), (1_000_000, 4, 8), (10_000_000, 4, 0)):
        common = random.normal(size=records)
        drawn_numbers = [common + random.normal(size=records) for _ in range(numbers)]
        columns = [RowValues(each, None) for each in drawn_numbers]
        points = [standardise(np.column_stack(drawn_numbers))]
        for _ in range(nominal):
            drawn = np.round(1.5 * common + 2 * random.normal(size=records) + 5).clip(0, 9)
            columns.append(RowValues(None, drawn.astype(np.int64)))
            points.append((np.eye(10) / np.sqrt(2))[drawn.astype(np.int64)])
        together, start = np.hstack(points), time.process_time()
        clusters = collect_clusters(cluster_points(together, 10, SystemWords())[0])
        forming = time.process_time() - start
        read: list[Any] = [lambda one=one: one for one in columns]
        start = time.process_time()
        for _ in range(numbers):
            np.argsort(common)
        sorting, start = time.process_time() - start, time.process_time()
        exchange = RelatedExchange.fit(clusters, [], read, block_of(10), SystemWords())
        fitting, start = time.process_time() - start, time.process_time()
        for _ in exchange.draw([], read, SystemWords()):
            pass
        drawing = time.process_time() - start
        print(
            f"{records:,} × {numbers} numbers and {nominal} nominal: clusters in {forming:.1f} s, "
            f"fitted in {fitting:.1f} s, drawn in {drawing:.1f} s; "
            f"np.argsort of its numbers {sorting:.1f} s",
            flush=True,
        )


def main() -> None:
    """Print a table for each data set."""
    if "speed" in sys.argv[1:]:
        speed()
        return
    print("associations mean, largest / signs / AUC / nearest / own values beside control")
    for table in tables():
        if sys.argv[1:] and table.name.split()[0].lower() not in sys.argv[1:]:
            continue
        print(f"{table.name}: {table.data.height:,} × {table.data.width}")
        everything = learned(table, table.data, 0)
        print(f"  original{'':>15}AUC {everything:.3f}")
        for anonymity, related in SETTINGS:
            how = "relations" if related else "independent"
            label = f"{how} {anonymity}" if anonymity else "masked, not pooled"
            print(f"  {label:<22} {measured(table, anonymity, related=related)}", flush=True)


if __name__ == "__main__":
    main()
