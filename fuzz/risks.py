"""Classical risk of any table, by any of its columns."""

from pathlib import Path
from random import Random

import polars as pl

from fuzz import tables
from fuzz.checks import Broken, check_error, save_table, secrets_of
from microveil import MicroveilError, risk
from microveil.measures.classical_result import Risk

_PLAIN = (pl.Int64, pl.String, pl.Boolean, pl.Date)


def run(random: Random, folder: Path) -> str:
    """Measure risk, and count again what can be counted otherwise."""
    table = tables.make_table(random)
    save_table(table, folder)
    names = random.sample(table.columns, len(table.columns))
    keys, others = names[: random.randint(1, 3)], names[3:]
    weight, household = (random.choice([None, None, *others]) for _ in range(2))
    sensitive = random.sample(others, min(len(others), random.randint(0, 1)))
    try:
        found = risk(table, keys=keys, weight=weight, household=household, sensitive=sensitive)
    except MicroveilError as error:
        check_error(error, secrets_of(table))
        return "refused"
    _check_counts(table, keys, found)
    return "measured"


def _check_counts(table: pl.DataFrame, keys: list[str], found: Risk) -> None:
    counts = [found.violations[k] for k in sorted(found.violations)]
    if found.records != len(table) or not 0 <= found.sample_uniques <= counts[0] <= len(table):
        raise Broken("risk", "more records than there are")
    if counts != sorted(counts):
        raise Broken("risk", "fewer records below a larger k")
    if not 0 < found.largest_risk <= 1 or found.expected_reidentifications > len(table):
        raise Broken("risk", "a risk that is no probability")
    columns = [table[name].alias(str(at)) for at, name in enumerate(keys)]
    if all(c.dtype in _PLAIN and not c.null_count() for c in columns):
        classes = pl.DataFrame(columns).group_by(pl.all()).len("records")["records"]
        if found.sample_uniques != (classes == 1).sum() or found.smallest_class != classes.min():
            raise Broken("risk", "other classes than Polars counts")
