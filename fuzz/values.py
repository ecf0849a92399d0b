"""Columns of hostile values, and hostile names."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from random import Random

import polars as pl

NAMES = (
    "age", "income", "len", "*", "^x$", "a b", 'a"b', "a'b", "ä", "index", "count", "literal",
    "__proto__", "constructor", "values", "x" * 300, "\U0001f600", "a.b", "[0]", "{x}", "%s",
    "<b>", "NULL", "select", "a,b", "a;b", "-", "=1+1", "row_nr", "level_0", "key", "value",
)  # fmt: skip
TEXTS = (
    "", " ", "NA", "N/A", "null", "None", "nan", "0012", "1e5", "=1+1", "-", "+", "'", '"', '""',
    "a,b", "a;b", "a\tb", "a|b",
    "line\nbreak", "carriage\rreturn", "a\0b", "ä", "日本", "\U0001f600",
    "\u202e", "trailing ", " leading", "true", "2020-01-01", "1,5", "1.50", "9" * 25, "_x0041_",
    "x" * 400, "\ufeffbom", "-0", "1_000", "0x1F", "٣",
)  # fmt: skip
_FLOATS = (
    0.0, -0.0, 0.1, 1 / 3, 5e-324, 1e-300, 1e15, 2.0**53, 2.0**60 + 256, 1e155, -1e200, 1e300,
    1.7976931348623157e308, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
_INTEGERS = {
    pl.Int8: (-(2**7), 2**7 - 1), pl.Int16: (-(2**15), 2**15 - 1), pl.Int32: (-(2**31), 2**31 - 1),
    pl.Int64: (-(2**63), 2**63 - 1), pl.UInt8: (0, 2**8 - 1), pl.UInt16: (0, 2**16 - 1),
    pl.UInt32: (0, 2**32 - 1), pl.UInt64: (0, 2**64 - 1),
}  # fmt: skip
_ZONES = (None, None, None, "UTC", "Europe/Madrid", "Asia/Kolkata")

Make = Callable[[Random, int], pl.Series]


def integers(random: Random, records: int) -> pl.Series:
    """Whole numbers of any type: few or many different ones, some at the ends of the type."""
    dtype = random.choice([*_INTEGERS, pl.Int64, pl.Int64])
    least, most = _INTEGERS[dtype]
    reach = random.choice([3, 20, 1000, 10**6, 2**31, 2**62])
    low, high = max(least, -reach), min(most, reach)
    values = [random.randint(low, high) for _ in range(records)]
    if random.random() < 0.15 and records:
        values[random.randrange(records)] = random.choice([least, most])
    return pl.Series(values, dtype=dtype)


def reals(random: Random, records: int) -> pl.Series:
    """Real numbers: amounts, skewed ones, ties, and now and then the ends of what there is."""
    draws: list[Callable[[], float]] = [
        lambda: random.gauss(0, 1), lambda: round(random.lognormvariate(8, 2), 2),
        lambda: random.paretovariate(0.5), lambda: random.choice([0.0, 0.5, 100.0]),
        lambda: random.uniform(-1e6, 1e6), lambda: random.uniform(0, 1) * 1e-9,
    ]  # fmt: skip
    draw = random.choice(draws)
    values = [draw() for _ in range(records)]
    if random.random() < 0.1 and records:
        for _ in range(random.randint(1, 3)):
            values[random.randrange(records)] = random.choice(_FLOATS)
    dtype = random.choice([pl.Float64, pl.Float64, pl.Float64, pl.Float32])
    return pl.Series(values, dtype=pl.Float64).cast(dtype, strict=False)


def dates(random: Random, records: int) -> pl.Series:
    """Days, within a few years or over all that there are."""
    first, days = random.choice([(date(1990, 1, 1), 9000), (date(1, 1, 1), 3_600_000)])
    return pl.Series([first + timedelta(days=random.randrange(days)) for _ in range(records)])


def moments(random: Random, records: int) -> pl.Series:
    """Dates with times of any unit, some in a time zone, some to the last digit."""
    unit = random.choice(["ms", "us", "ns"])
    step = random.choice([1, 1000, 10**6]) if unit != "ms" else 1
    per_second = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    span = random.choice([10**6, 10**9]) * per_second
    values = [random.randrange(span) // step * step for _ in range(records)]
    return pl.Series(values, dtype=pl.Int64).cast(pl.Datetime(unit, random.choice(_ZONES)))  # type: ignore[arg-type]


def times(random: Random, records: int) -> pl.Series:
    """Make times of day."""
    second = random.choice([1, 1, 10**6])
    drawn = [random.randrange(86_400 * second) for _ in range(records)]
    start = datetime(2000, 1, 1)
    return pl.Series([(start + timedelta(seconds=d / second)).time() for d in drawn])


def spans(random: Random, records: int) -> pl.Series:
    """Spans of time."""
    values = [random.randrange(10**9) for _ in range(records)]
    return pl.Series(values).cast(pl.Duration(random.choice(["ms", "us", "ns"])))


def texts(random: Random, records: int) -> pl.Series:
    """Text, most of it recognisable, some of it hostile."""
    hostile = random.choice([0.0, 0.0, 0.3, 1.0])
    return pl.Series(
        [
            random.choice(TEXTS)
            if random.random() < hostile
            else f"person-{random.getrandbits(40)}"
            for _ in range(records)
        ],
        dtype=pl.String,
    )


def categories(random: Random, records: int) -> pl.Series:
    """Draw from a few categories: text, a categorical type, true and false, or codes."""
    kinds = random.sample(["red", "green", "blue", "dark violet", "=x", "ü", "<i>"], 4)
    values = pl.Series([random.choice(kinds) for _ in range(records)], dtype=pl.String)
    form = random.choice(["text", "categorical", "enum", "flags", "codes"])
    if form == "flags":
        return pl.Series([random.random() < 0.3 for _ in range(records)])
    if form == "codes":
        return pl.Series([random.choice([1, 2, 9, 99]) for _ in range(records)])
    types = {"text": pl.String(), "categorical": pl.Categorical(), "enum": pl.Enum(sorted(kinds))}
    return values.cast(types[form])


def structs(random: Random, records: int) -> pl.Series:
    """Nested values: lists of texts, or structs of a text and a number."""
    if random.random() < 0.5:
        return pl.Series([random.sample(TEXTS, random.randint(0, 3)) for _ in range(records)],
                         dtype=pl.List(pl.String))  # fmt: skip
    fields = {"text": pl.String, "number": pl.Int64}
    drawn = [{"text": random.choice(TEXTS), "number": random.randint(0, 9)} for _ in range(records)]
    return pl.Series(drawn, dtype=pl.Struct(fields))


NUMERIC: tuple[Make, ...] = (integers, reals, dates, moments, times)
COLUMNS: tuple[Make, ...] = (*NUMERIC, spans, texts, categories, structs)


def column(random: Random, records: int, makers: tuple[Make, ...] = COLUMNS) -> pl.Series:
    """Make a column; one in four has missing values, one in twenty nothing else."""
    made = random.choice(makers)(random, records)
    share = random.choice([0.0] * 30 + [0.1] * 8 + [0.9, 1.0])
    present = pl.Series([random.random() >= share for _ in range(records)], dtype=pl.Boolean)
    return pl.select(pl.when(present).then(made)).to_series() if share else made


def names(random: Random, count: int) -> list[str]:
    """Names of columns that differ."""
    plain = [f"column {number}" for number in range(count)]
    return random.sample([*NAMES, *plain], count) if random.random() < 0.5 else plain
