"""Tables to benchmark on: the paper's two, the bundled sample, or the user's."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.engines.memory import open_table
from microveil.errors import DataError, PlanError
from microveil.formats import load_table, source_of
from microveil.judge.explore.candidates import starting_plan
from microveil.lab.paper.datasets import DATA_SETS, DataSet, load_data_set
from microveil.measures.learning import check_number_of_classes, open_target, scikit_learn
from microveil.plan.plan import Plan
from microveil.plan.propose.columns import as_polars
from microveil.plan.roles import Confidential
from microveil.plan.rules import parse
from microveil.plan.sample import people, recommended_people_plan
from microveil.plan.synthetic_checks import require_masked
from microveil.types import UserTable

FEWEST_RECORDS = 200
"""Fewer cannot be split into a half to release and a half as control."""

ALPHA = 1.5
"""Domains of the paper's data reach from 0 to α times the largest value, as in the paper."""

SAMPLE = "sample"
KNOWN = {dataset.name.split()[0].lower(): dataset for dataset in DATA_SETS.values()}


@dataclass(frozen=True, eq=False)
class Data:
    """A table to benchmark on.

    Attributes
    ----------
    table
        The confidential attributes of the records that take part.
    plan
        Roles and domains; its other settings are varied.
    own
        The user's plan, if there is one, for a point of its own.
    classes
        What is to be learned of each record, if anything is.
    """

    name: str
    table: pl.DataFrame
    plan: Plan
    own: Plan | None = None
    classes: NDArray[Any] | None = None

    def some(self, most: int) -> "Data":
        """Take so many records at most, drawn at random, the same every time."""
        if self.table.height <= most:
            return self
        chosen = np.random.default_rng(0).choice(self.table.height, most, replace=False)
        classes = None if self.classes is None else self.classes[chosen]
        return Data(self.name, self.table[chosen], self.plan, self.own, classes)


def open_data(data: UserTable, plan: Plan | None = None, target: str | None = None) -> Data:
    """Open a table: ``"sample"``, ``"census"``, ``"wine"``, a path, or a table in memory."""
    word = data.lower() if isinstance(data, str) else ""
    if plan is None and target is None:
        if word == SAMPLE:
            return _data("Sample", people(), recommended_people_plan(), None, None)
        if word in KNOWN and not Path(word).exists():
            return _data_set(KNOWN[word])
    if plan is not None:
        require_masked(plan, "benchmark")
    loaded = load_table(data) if plan is None else load_table(data, **plan.reading)
    source = source_of(data)
    name = "Table" if source is None else Path(source.name).stem
    base = starting_plan(
        open_table(loaded.data), name, plan, target, loaded.meta.described
    )  # fmt: skip
    return _data(name, as_polars(loaded.data), base, plan, target)


def _data_set(dataset: DataSet) -> Data:
    scikit_learn()  # which its classes are learned with
    table = load_data_set(dataset)
    domains = {
        name: Confidential(lower=0, upper=ALPHA * cast("float", table.attributes[name].max()))
        for name in table.attributes.columns
    }
    plan = Plan.published(epsilon=1.0, attributes=domains)
    return Data(dataset.name, table.attributes, plan, classes=table.second_class)


def _data(name: str, table: pl.DataFrame, base: Plan, own: Plan | None, target: str | None) -> Data:
    """Leave out what is not masked, and records that the plan would leave out."""
    masked = list(base.confidential)
    classes = None if target is None else _classes(table, target, base)
    complete = np.ones(table.height, dtype=np.bool_)
    if base.missing == "drop":
        complete &= (
            ~table.select(pl.any_horizontal(pl.col(masked).is_null())).to_series().to_numpy()
        )
    if target is not None and classes is not None:
        complete &= ~table[target].is_null().to_numpy()
        classes = classes[complete]
    kept = table.select(masked).filter(pl.Series(complete))
    if kept.height < FEWEST_RECORDS:
        raise DataError(
            f"a benchmark needs at least {FEWEST_RECORDS} records: half are released, half are the "
            f"control; found {kept.height}"
        )
    return Data(name, kept, only_masked(base), None if own is None else only_masked(own), classes)


def _classes(table: pl.DataFrame, target: str, plan: Plan) -> NDArray[Any]:
    _, series = open_target(nw.from_native(table, eager_only=True), target)
    if target in plan.confidential:
        raise DataError(
            f"target {target!r} is a confidential attribute; choose another column, or make it an "
            "identifier or kept in the plan"
        )
    check_number_of_classes(series.drop_nulls().n_unique())
    classes = series.to_numpy()
    return classes.astype(str) if classes.dtype == object else classes


def only_masked(plan: Plan) -> Plan:
    """Take everything from a plan that is not about the attributes it masks."""
    for setting in ("unit", "within"):
        if getattr(plan, setting):
            raise PlanError(
                f"{setting}: a benchmark attacks masked attributes record by record, without "
                "units or strata; remove this setting from the plan, or use microveil evaluate for "
                "a release that has it",
                setting=setting,
            )
    names = plan.confidential
    rules = [rule for rule in plan.rules if set(parse(rule).names) <= set(names)]
    marks = [m for m in plan.from_data if ": " not in m or m.rpartition(": ")[0] in names]
    return plan.replace(
        attributes=dict(names),
        from_data=marks,
        rules=rules,
        scenarios=(),
        ledger=None,
        missing=_missing(plan),
    )


def _missing(plan: Plan) -> Any:  # noqa: ANN401 - one of a plan's words
    """Return what becomes of missing values, once records that have any are left out."""
    return "error" if plan.missing == "drop" else plan.missing
