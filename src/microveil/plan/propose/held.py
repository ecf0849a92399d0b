"""What holds between columns in every record: sums, and orders such as one date before another.

They are looked for in a sample and then checked in every record. What holds trivially or by chance
is left out: columns that hardly vary, and orders that hardly any other pairing of values breaks.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import polars as pl

from microveil.types import Booleans, Reals

_SAMPLE = 2_000
_MOST_COLUMNS = 60
_FEWEST_RECORDS, _RECORDS_PER_COLUMN = 20, 2
_FEWEST_OTHERS = 10  # records that differ from the middle value
_ROUNDING, _UNIT = 1e-9, 1e-6
_FEWEST_BREAKS, _LEAST_SHARE = 20.0, 0.001  # by chance: e^-20 is 2 in a thousand million
_MICROSECONDS_OF_A_DAY = 86_400e6
_PLAIN = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True)
class Sum:
    """A column that is the sum of others.

    Attributes
    ----------
    total, parts
        Their names; a date and numbers of days add up to a date.
    missing_alike
        Whether the total is missing exactly where a part is.
    """

    total: str
    parts: tuple[str, ...]
    missing_alike: bool

    @property
    def rule(self) -> str:
        """The rule that says so."""
        return f"{' + '.join(map(in_rules, self.parts))} == {in_rules(self.total)}"


def in_rules(name: str) -> str:
    """Write the name of a column as rules have it.

    Examples
    --------
    >>> in_rules("income"), in_rules("net pay")
    ('income', '"net pay"')
    """
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'


def find_sums(table: pl.DataFrame, names: Sequence[str]) -> list[Sum]:
    """Find columns that are a sum of others in every record.

    Examples
    --------
    >>> frame = pl.DataFrame({"net": range(40), "tax": [n * 7 % 11 for n in range(40)]})
    >>> find_sums(frame.with_columns(gross=pl.col("net") + pl.col("tax")), ["net", "tax", "gross"])
    [Sum(total='gross', parts=('net', 'tax'), missing_alike=True)]
    """
    sorts = {name: _sort_of(table[name].dtype) for name in names}
    names = [name for name in names if sorts[name] == "number" or sorts[name].startswith("date")]
    sample = _complete(_sampled(table, names))
    found = (_as_sum(table, factors, sorts) for factors in _relations(sample))
    return [one for one in found if one is not None]


def find_orders(table: pl.DataFrame, names: Sequence[str]) -> list[tuple[str, str]]:
    """Find pairs of columns of which the first is never above the second, though it could be.

    Pairs that follow from others, as the first and last of three in order, are left out.

    Examples
    --------
    >>> visits = pl.DataFrame({"start": [n * 37 % 101 for n in range(101)]})
    >>> visits = visits.with_columns(end=pl.col("start") + 2, last=pl.col("start") + 9)
    >>> find_orders(visits, ["last", "start", "end"])
    [('start', 'end'), ('end', 'last')]
    """
    sample = _sampled(table, names)
    sorts = {name: _sort_of(table[name].dtype) for name in sample}
    likely = [
        (one, other)
        for one, other in permutations(sample, 2)
        if sorts[one] == sorts[other] and _never_above(sample[one], sample[other])
    ]
    alike = {pair for pair in likely if pair[::-1] in likely}
    held = [p for p in likely if p not in alike and _holds_and_could_break(table, sample, *p)]
    through = {(one, last) for one, middle in held for begin, last in held if middle == begin}
    return [pair for pair in held if pair not in through]


def _sort_of(dtype: pl.DataType) -> str:
    """Say what a column can be compared with."""
    if isinstance(dtype, pl.Datetime):
        return f"date {dtype.time_zone or ''}"
    if dtype == pl.Date:
        return "date "
    if dtype == pl.Time:
        return "time"
    return "number" if dtype.is_numeric() else ""


def _numbers(column: pl.Series) -> Reals:
    """Return a column as numbers, dates and times as days, NaN where a value is missing."""
    if isinstance(column.dtype, pl.Datetime):
        return column.dt.epoch("us").to_numpy() / _MICROSECONDS_OF_A_DAY
    if column.dtype in (pl.Date, pl.Time):
        column = column.to_physical()
    return column.cast(pl.Float64).to_numpy()


def _sampled(table: pl.DataFrame, names: Sequence[str]) -> dict[str, Reals]:
    """Return columns of a sample that vary; none where there are too many, or too few records."""
    if len(names) > _MOST_COLUMNS:
        return {}
    every = 1 + (table.height - 1) // _SAMPLE
    columns = {name: _numbers(table[name].gather_every(every)) for name in names}
    return {name: values for name, values in columns.items() if _varies(values)}


def _varies(values: Reals) -> bool:
    known = values[~np.isnan(values)]
    if not len(known) or np.any(np.abs(known) >= 1e300):
        return False
    return int(np.count_nonzero(known != np.sort(known)[len(known) // 2])) >= _FEWEST_OTHERS


def _complete(sample: Mapping[str, Reals]) -> dict[str, Reals]:
    """Keep records without gaps, and leave out columns of the most gaps until they are enough."""
    columns = dict(sample)
    while columns:
        whole = ~np.isnan(list(columns.values())).any(axis=0)
        if whole.sum() >= max(_FEWEST_RECORDS, _RECORDS_PER_COLUMN * len(columns)):
            return {name: values[whole] for name, values in columns.items()}
        gaps = {name: np.isnan(values).sum() for name, values in columns.items()}
        del columns[max(gaps, key=lambda name: gaps[name])]
    return {}


def _relations(sample: Mapping[str, Reals]) -> Iterator[dict[str, float]]:
    """Find columns that are linear in smaller ones; yield factors of which all add up to 0."""
    independent: dict[str, Reals] = {}
    basis: list[Reals] = []
    for name in sorted(sample, key=lambda name: float(np.abs(sample[name]).mean())):
        centred = rest = sample[name] - sample[name].mean()
        for direction in basis:
            rest = rest - direction * (direction @ rest)
        if np.abs(rest).max() > _ROUNDING * np.abs(sample[name]).max():
            independent[name] = centred
            basis.append(rest / np.linalg.norm(rest))
            continue
        factors = _factors(centred, list(independent.values()))
        if all(min(abs(factor), abs(abs(factor) - 1)) < _UNIT for factor in factors):
            whole = np.rint(factors).tolist()
            yield {name: -1.0} | {n: f for n, f in zip(independent, whole, strict=True) if f}


def _factors(total: Reals, parts: Sequence[Reals]) -> Reals:
    """Return by what each part is multiplied to add up to the total."""
    sizes = np.array([np.abs(part).max() for part in parts])
    scaled = np.array(parts).T.reshape(len(total), len(parts)) / sizes
    factors: Reals = np.linalg.lstsq(scaled, total, rcond=None)[0] / sizes
    return factors


def _as_sum(
    table: pl.DataFrame, factors: Mapping[str, float], sorts: Mapping[str, str]
) -> Sum | None:
    """Read a relation as one column that is the sum of others, where every record keeps it."""
    for sign in (-1.0, 1.0):
        totals = [name for name, factor in factors.items() if factor == sign]
        parts = tuple(name for name in table.columns if factors.get(name) == -sign)
        if len(totals) != 1 or not parts:
            continue
        (total,) = totals
        dates = [sorts[part] for part in parts if sorts[part] != "number"]
        if dates != [sorts[total]] * (sorts[total] != "number"):
            continue
        added = np.sum([_numbers(table[part]) for part in parts], axis=0)
        values = _numbers(table[total])
        known = ~np.isnan(added) & ~np.isnan(values)
        if np.allclose(values[known], added[known], rtol=_ROUNDING, atol=0):
            return Sum(total, parts, bool(np.all(np.isnan(added) == np.isnan(values))))
    return None


def _never_above(one: Reals, other: Reals) -> bool:
    known: Booleans = ~np.isnan(one) & ~np.isnan(other)
    return bool(known.any() and np.all(one[known] <= other[known]))


def _holds_and_could_break(
    table: pl.DataFrame, sample: Mapping[str, Reals], one: str, other: str
) -> bool:
    """Whether all records keep an order that other pairings of their values would often break.

    The least of the upper values does not count: hours are no wages, though both are often 0.
    """
    known = ~np.isnan(sample[one]) & ~np.isnan(sample[other])
    upper = np.sort(sample[other][known])
    below = np.searchsorted(upper[upper > upper[0]], sample[one][known], side="left")
    share = float(below.mean()) / len(upper)
    records = table.height * float(known.mean())
    if share < _LEAST_SHARE or share * records < _FEWEST_BREAKS:
        return False
    return _never_above(_numbers(table[one]), _numbers(table[other]))
