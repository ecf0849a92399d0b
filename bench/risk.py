"""Classical risk of a million records: time of every part, by how many are unique and missing."""

import time
from collections.abc import Sequence

import numpy as np
import polars as pl

from microveil import risk
from microveil.core.suda import special_uniques
from microveil.measures.frequencies import combinations_of
from microveil.types import Integers

RECORDS = 1_000_000
ROUGH, FINE = (90, 2, 12, 8, 6, 4), (90, 2, 50, 8, 200, 30)
MORE = (*ROUGH, 10, 10)


def people(values: Sequence[int], missing: float = 0.0) -> pl.DataFrame:
    """Skewed keys with so many values each, weights, households of three and an income."""
    random = np.random.default_rng(1)

    def key(count: int) -> pl.Series:
        codes: Integers = np.minimum(random.geometric(2 / count, RECORDS) - 1, count - 1)
        gaps = random.random(RECORDS) < missing
        return pl.DataFrame({"code": codes, "gap": gaps}).select(
            pl.when(~pl.col("gap")).then("code")
        )["code"]

    keys = {f"key{place}": key(count) for place, count in enumerate(values)}
    return pl.DataFrame(keys).with_columns(
        w=random.uniform(1, 200, RECORDS),
        home=np.arange(RECORDS) // 3,
        income=random.lognormal(10, 1, RECORDS).round(-2),
    )


def measure(what: str, values: Sequence[int], missing: float = 0.0) -> None:
    """Time everything, and SUDA2 by itself."""
    table = people(values, missing)
    keys = [name for name in table.columns if name.startswith("key")]
    start = time.perf_counter()
    found = risk(table, keys=keys, weight="w", household="home", sensitive="income")
    seconds = time.perf_counter() - start
    combinations = combinations_of([table[key] for key in keys], table["w"])
    start = time.perf_counter()
    special_uniques(combinations.codes, combinations.records)
    alone = time.perf_counter() - start
    print(
        f"{what}: {len(keys)} keys, {found.combinations:,} combinations, "
        f"{found.sample_uniques:,} uniques: {seconds:.1f} s, of which SUDA2 {alone:.1f} s"
    )


def main() -> None:
    """Print one line for each table."""
    risk(people((3, 3, 3)).head(1_000), keys=["key0", "key1", "key2"], sensitive="income")
    measure("rough", ROUGH)
    measure("fine", FINE)
    measure("eight keys", MORE)
    measure("rough, 2% of each key missing", ROUGH, missing=0.02)


if __name__ == "__main__":
    main()
