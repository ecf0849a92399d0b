"""How many records, and how many people of a population, share a combination of keys.

A missing key stands for any value, as in sdcMicro: a record with one counts for every combination
it may belong to. Records that miss every one of several keys count for combinations that miss some,
but not for complete ones.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from microveil.types import Integers, Reals

NO_CODE = -1
TEXT = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True, eq=False)
class Combinations:
    """The different combinations of keys.

    Attributes
    ----------
    codes
        Combinations × keys: codes of the values, −1 where a key is missing.
    records
        How many records have each, missing keys being values of their own.
    label
        For each record the place of its combination.
    shared, population
        How many records may have each, and the sum of their weights: fk and Fk of sdcMicro.
    """

    codes: Integers
    records: Integers
    label: Integers
    shared: Integers
    population: Reals


def combinations_of(keys: Iterable[pl.Series], weights: pl.Series | None) -> Combinations:
    """Count records and add up weights by the combination of these keys.

    Examples
    --------
    >>> keys = [pl.Series(["f", "f", "m", "m"]), pl.Series([1, None, 1, 2])]
    >>> found = combinations_of(keys, pl.Series([10.0, 20.0, 30.0, 40.0]))
    >>> found.shared[found.label], found.population[found.label]
    (array([2, 2, 1, 1]), array([30., 30., 30., 40.]))
    """
    coded = pl.DataFrame({f"key {place}": code(key) for place, key in enumerate(keys)})
    names = coded.columns
    weighed = coded.with_columns(weight=1.0 if weights is None else weights.cast(pl.Float64))
    counted = weighed.group_by(names).agg(
        records=pl.len().cast(pl.Int64), weight=pl.col("weight").sum()
    )
    counted = counted.with_row_index("label")
    label = coded.join(counted, on=names, how="left", maintain_order="left")["label"]
    codes = counted.select(names).to_numpy().astype(np.int64)
    sums = counted.select("records", "weight")
    if (codes == NO_CODE).any():
        sums = _matched(counted, names)
    shared, population = (sums[name].to_numpy() for name in ("records", "weight"))
    return Combinations(
        codes, counted["records"].to_numpy(), label.to_numpy().astype(np.int64), shared, population
    )


def code(column: pl.Series) -> pl.Series:
    """Give values numbers, in their order unless they are text; −1 where one is missing."""
    if column.dtype in TEXT:
        column = column.cast(pl.String).cast(pl.Categorical).to_physical()  # ranked faster
    elif column.dtype.is_float():
        column = column.fill_nan(None)
    column = column.alias("column")  # some names are patterns to Polars
    return (column.rank("dense").cast(pl.Int32) - 1).fill_null(NO_CODE)


def _matched(counted: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Count for each combination those that agree with it wherever both have a key."""
    has_key = [(pl.col(name) != NO_CODE).cast(pl.Int64) for name in names]
    has = pl.sum_horizontal(flag * 2**place for place, flag in enumerate(has_key))
    by_keys = counted.with_columns(has=has).partition_by("has", as_dict=True, include_key=False)
    tables = {int(key[0]): table for key, table in by_keys.items()}
    return pl.concat(_matched_by(has, tables, names) for has in tables).sort("label")


def _matched_by(has: int, tables: dict[int, pl.DataFrame], names: list[str]) -> pl.DataFrame:
    """Count what agrees with combinations that all have the same keys."""
    totals = tables[has].with_columns(records=pl.lit(0, pl.Int64), weight=pl.lit(0.0))
    for common, agreeing in _by_common_keys(has, tables, len(names)):
        on = [name for place, name in enumerate(names) if common >> place & 1]
        grouped = agreeing.group_by(on or pl.lit(0).alias("all"))
        sums = grouped.agg(_more("records"), _more("weight"))
        if on:
            totals = totals.join(sums, on=on, how="left", maintain_order="left")
        else:
            totals = totals.join(sums.drop("all"), how="cross")
        totals = totals.with_columns(_sum("records"), _sum("weight")).select(tables[has].columns)
    return totals


def _by_common_keys(
    has: int, tables: dict[int, pl.DataFrame], keys: int
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Put together combinations that have the same ones of these keys."""
    complete = has == 2**keys - 1 and keys > 1
    others = [other for other in tables if other or not complete]
    for common in {has & other for other in others}:
        yield common, pl.concat(tables[other] for other in others if has & other == common)


def _more(name: str) -> pl.Expr:
    return pl.col(name).sum().alias(f"{name} more")


def _sum(name: str) -> pl.Expr:
    return pl.col(name) + pl.col(f"{name} more").fill_null(0)
