"""What must hold whatever the case: errors of our own without data, and values as they were."""

import json
import math
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from pathlib import Path

import narwhals as nw
import polars as pl
from polars.testing import assert_frame_equal

from microveil import MicroveilError, Plan
from microveil.engines.dtypes import column_of, describe, numbers_with_gaps
from microveil.plan.rules import parse
from microveil.release.certificate import Certificate
from microveil.release.release import Release
from microveil.release.resolve_rules import typed
from microveil.types import UserTable

_SHORTEST_SECRET = 7  # shorter values are part of words and numbers that messages do contain


class Broken(Exception):  # noqa: N818 - a promise that was broken, not an error of the fuzzer
    """A promise that did not hold, and how: «changed value», «mixed release» and so on."""

    def __init__(self, kind: str, what: str) -> None:
        super().__init__(f"{kind}: {what}")
        self.kind = kind


def frame_of(data: UserTable) -> pl.DataFrame:
    """Turn a table of any library into one of Polars."""
    frame: pl.DataFrame = nw.from_native(data, eager_only=True).to_polars()
    return frame


def secrets_of(table: pl.DataFrame, allowed: Iterable[object] = ()) -> set[str]:
    """Return the values of a table that no message may contain, as text."""
    values = {str(value) for column in table.iter_columns() for value in column.head(200)}
    return {v for v in values if len(v) >= _SHORTEST_SECRET} - {str(a) for a in allowed}


def check_error(error: MicroveilError, secrets: set[str]) -> None:
    """Check that an error, and what caused it if that is shown, contains no value of the data."""
    shown: list[str] = []
    each: BaseException | None = error
    while each is not None:
        shown.append(str(each))
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    if any(secret in text for secret in secrets for text in shown):
        raise Broken("data in an error", f"{type(error).__name__} quotes a value")
    if any("\n" in str(problem).strip() for problem in error.problems):
        raise Broken("data in an error", f"{type(error).__name__} has more than a line a problem")


def check_release(table: pl.DataFrame, plan: Plan, release: Release, secrets: set[str]) -> None:
    """Check that a release in the order of its original keeps what every release must."""
    released = frame_of(release.data)
    wanted = [name for name in table.columns if plan.attributes[name].role != "identifier"]
    if [name for name in released.columns if name not in plan.derived] != wanted:
        raise Broken("columns", "other columns, or another order")
    for name in wanted:
        before, after = table[name].dtype, released[name].dtype
        categories = {type(before), type(after)} <= {pl.Enum, pl.Categorical}
        recoded = name in plan.confidential and bool(plan.confidential[name].recoded)
        if before != after and not categories and not recoded:  # they lose those that no row has
            raise Broken("columns", f"{before} became {after}")
    if plan.missing != "drop":
        _check_rows(table, plan, released)
    _check_masked(plan, released)
    _check_rules(plan, release, released)
    _check_averages(plan, released)
    _check_few(plan, release.detail.clusters)
    _check_certificate(release, len(released), secrets)


def _check_rows(table: pl.DataFrame, plan: Plan, released: pl.DataFrame) -> None:
    if len(released) != len(table):
        raise Broken("rows", f"{len(table)} records became {len(released)}")
    for name in plan.kept:
        if not same(_as_text(released[name]), _as_text(table[name])):
            raise Broken("changed value", "a kept column")
    averaged = {n for g in plan.pooled_groups if g.pooling == "average" for n in g.attributes}
    for name in set(plan.confidential) - averaged:
        if released[name].null_count() != table[name].null_count():
            raise Broken("changed value", "another number of missing values")


def _check_masked(plan: Plan, released: pl.DataFrame) -> None:
    for name, attribute in plan.confidential.items():
        values = released[name].alias("").drop_nulls()
        if values.dtype.is_float() and not values.is_finite().all():
            raise Broken("masked values", "infinite or NaN")
        if attribute.is_category:
            allowed = set(attribute.declared_categories)
            if allowed and not set(values.to_list()) <= allowed:
                raise Broken("masked values", "a category that is not declared")
            continue
        if attribute.has_domain and len(values):
            ends = [attribute.lower, values.min(), values.max(), attribute.upper]
            if sorted(map(_plain, ends)) != list(map(_plain, ends)):  # type: ignore[type-var]
                raise Broken("masked values", "outside the declared domain")


def _check_rules(plan: Plan, release: Release, released: pl.DataFrame) -> None:
    frame = nw.from_native(released)
    columns = {name: describe(dtype) for name, dtype in frame.schema.items()}
    for text, outcome in zip(plan.rules, release.rules, strict=True):
        rule = typed(parse(text), columns)
        values = {name: numbers_with_gaps(column_of(frame, name)) for name in rule.factors}
        broken = int(rule.broken(values).sum())
        if broken != outcome.released:
            raise Broken("rules", f"broken by {broken} records, not by {outcome.released}")
        if broken and rule.factors.keys() <= plan.confidential.keys():
            raise Broken("rules", f"broken by {broken} records")


def _check_averages(plan: Plan, released: pl.DataFrame) -> None:
    for group in plan.pooled_groups:
        columns = [released[name].alias(str(i)) for i, name in enumerate(group.attributes)]
        masked = pl.DataFrame(columns)
        if group.pooling != "average" or not len(masked) or sum(masked.null_count().row(0)):
            continue
        smallest = min(masked.group_by(pl.all()).len(name="records")["records"])
        if smallest < (group.anonymity or 0):
            raise Broken(
                "anonymity", f"a class of {smallest} where {group.anonymity} were promised"
            )


def _check_few(plan: Plan, clusters: pl.DataFrame) -> None:
    for name in plan.confidential:
        enough = plan.exact_from_of(name) * plan.persons_of(name)
        bare = (pl.col("scale").fill_nan(None).fill_null(pl.col("sensitivity"))) == 0
        few = bare & (pl.col("shared_by") < enough)
        if clusters.filter(pl.col("attribute") == name).filter(few).height:
            raise Broken("without noise", f"a value of fewer than {enough} persons")


def _check_certificate(release: Release, records: int, secrets: set[str]) -> None:
    text = release.certificate.to_json()
    if Certificate.model_validate(json.loads(text)).records != records:
        raise Broken("certificate", "another number of records")
    if any(secret in text for secret in secrets):
        raise Broken("certificate", "quotes a value of the data")


def _as_text(column: pl.Series) -> pl.DataFrame:
    frame = column.alias("column").to_frame()
    return frame.cast({pl.Enum: pl.String, pl.Categorical: pl.String})


def same(left: pl.DataFrame, right: pl.DataFrame) -> bool:
    """Whether two tables are equal to the bit, NaN like NaN."""
    try:
        assert_frame_equal(left, right, check_exact=True, categorical_as_str=True)
    except AssertionError:
        return False
    return True


def check_read_back(before: pl.Series, after: pl.Series) -> None:
    """Check that a kept column came back from a file as it was, in another type at most."""
    if len(before) != len(after):
        raise Broken("rows", f"{len(before)} values became {len(after)}")
    if before.dtype == pl.Float32:
        after = after.cast(pl.Float32, strict=False)
    if before.dtype.is_float() and after.dtype == pl.String:  # with NaN in a CSV file
        after = after.cast(before.dtype, strict=False)
    values = after.to_list()
    if after.dtype == pl.String and before.dtype in (pl.Date, pl.Datetime, pl.Time):
        values = [text and _moment(text, before.dtype) for text in values]
    for old, new in zip(before.to_list(), values, strict=True):
        if _plain(old) != _plain(new) and str(_plain(old)) != str(_plain(new)):
            raise Broken("changed value", f"a kept value of type {before.dtype}")


def _moment(text: str, dtype: pl.DataType) -> date | time:
    if dtype == pl.Time:
        return time.fromisoformat(text)
    return date.fromisoformat(text) if dtype == pl.Date else datetime.fromisoformat(text)


def _plain(value: object) -> object:
    """Leave out what files are documented not to tell apart: 1 and True, a day and its midnight."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    if type(value) is date:
        return datetime.combine(value, time())
    if isinstance(value, timedelta):
        return value.total_seconds()
    return None if value == "" else value


def save_table(table: pl.DataFrame, folder: Path) -> None:
    """Save a case's table beside its plan, if Parquet can hold it."""
    try:
        table.write_parquet(folder / "table.parquet")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        (folder / "table.txt").write_text(repr(table.to_dicts()), encoding="utf-8")
