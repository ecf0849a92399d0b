"""Classical disclosure risk of one table, before or after protecting it, as sdcMicro has it."""

from collections.abc import Sequence

import narwhals as nw
import numpy as np
import polars as pl

from microveil.core.disclosure import (
    class_diversity,
    conspicuous,
    household_risk,
    individual_risk,
    risk_threshold,
)
from microveil.core.suda import SpecialUniques, is_searchable, special_uniques
from microveil.engines.dtypes import comparable
from microveil.engines.memory import open_table
from microveil.errors import DataError
from microveil.formats import load_table, source_of
from microveil.measures.classical_result import (
    DIS_EDGES,
    DIS_INTERVALS,
    LIMITS,
    Diversity,
    HouseholdRisk,
    Risk,
    Suda,
)
from microveil.measures.disclosure_risk import distances_to_all
from microveil.measures.frequencies import NO_CODE, TEXT, Combinations, code, combinations_of
from microveil.plan.plan import Plan
from microveil.types import Integers, UserTable


def risk(
    table: UserTable,
    *,
    keys: str | Sequence[str],
    weight: str | None = None,
    household: str | None = None,
    sensitive: str | Sequence[str] = (),
    sampling_fraction: float = 0.01,
    max_global_risk: float = 0.01,
    plan: Plan | None = None,
) -> Risk:
    """Measure how far records stand out by keys: k-anonymity, individual risk, SUDA2, l-diversity.

    It is what to look at before protecting a table, and again after. Conventions are those of
    sdcMicro; the documentation names them on its page about risk. A missing key stands for any
    value. The figures are functions of the data that ε does not cover: do not publish them.

    Parameters
    ----------
    table
        A Polars or pandas DataFrame, a PyArrow Table, a path or a `Source`.
    keys
        Columns that others may know of a person, taken as categories.
    weight
        A column of sampling weights: how many people of the population each record stands for; by
        default the plan's. Without one the table is taken for the whole population.
    household
        A column that says which records belong together.
    sensitive
        Columns that must not be learnt: how different they are among records that share their keys.
    sampling_fraction
        Of DIS.
    max_global_risk
        The share of re-identifications for which the threshold of individual risk is computed.
    plan
        A plan for the table, of which the sampling weight is taken.

    Examples
    --------
    >>> people = pl.DataFrame({"sex": ["f", "f", "m"], "region": [1, 1, 2], "w": [10, 20, 30]})
    >>> found = risk(people, keys=["sex", "region"], weight="w")
    >>> found.violations, found.sample_uniques, round(found.expected_reidentifications, 4)
    ({2: 1, 3: 3, 5: 3}, 1, 0.2325)
    """
    names, attributes = _listed(keys), _listed(sensitive)
    if weight is None and plan is not None:
        weight = next(iter(plan.sampling_weights), None)
    if not names:
        raise DataError("give one or more keys: columns that others may know of a person")
    _check_shares(sampling_fraction=sampling_fraction, max_global_risk=max_global_risk)
    columns = _read(table, [*names, *attributes], weight, household)
    found = combinations_of(
        [columns[name] for name in names],
        None if weight is None else _weights(columns[weight], weight),
    )
    suda = _special_uniques(found, sampling_fraction)
    records = _per_record(found, suda)
    individual, alone = records["risk"].to_numpy(), records.filter(fk=1)
    households, diversities = None, []
    if household is not None:
        members = code(columns[household]).to_numpy().astype(np.int64)
        records = records.with_columns(household_risk=household_risk(individual, members))
        households = _household_figures(records["household_risk"], members)
    for name in attributes:
        diversity, columns_of_it = _diversity(name, columns[name], found.label)
        records = records.with_columns(columns_of_it)
        diversities.append(diversity)
    return Risk(
        keys=tuple(names),
        weight=weight,
        records=len(records),
        combinations=len(found.codes),
        incomplete=int((found.codes == NO_CODE).any(axis=1)[found.label].sum()),
        smallest_class=int(found.shared.min()),
        violations={k: int((records["fk"] < k).sum()) for k in LIMITS},
        sample_uniques=len(alone),
        population_uniques=float((1 / alone["Fk"].clip(lower_bound=1)).sum()),
        expected_reidentifications=float(individual.sum()),
        largest_risk=float(individual.max()),
        conspicuous=conspicuous(individual),
        max_global_risk=max_global_risk,
        threshold=risk_threshold(individual, max_global_risk),
        household=households,
        suda=None if suda is None else _suda_figures(suda, found.label, names),
        sensitive=tuple(diversities),
        per_record=records,
    )


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _check_shares(**shares: float) -> None:
    for name, share in shares.items():
        if not 0 < share < 1:
            raise DataError(f"{name} must be between 0 and 1, got {share}", setting=name)


def _read(
    table: UserTable, named: list[str], weight: str | None, household: str | None
) -> dict[str, pl.Series]:
    """Read the columns that are named, each for one purpose."""
    verbatim = [*named, *([] if household is None else [household])]
    names = [*verbatim, *([] if weight is None else [weight])]
    frame = open_table(load_table(table, verbatim=verbatim).data)
    if not len(frame):
        raise DataError("the table has no records; risk needs one or more")
    for name in names:
        if name not in frame.columns:
            source = source_of(table)
            where, columns = source.name if source else "the table", ", ".join(frame.columns)
            raise DataError(f"is not in {where} (columns: {columns})", attribute=name)
        if names.count(name) > 1:
            raise DataError(
                "is given twice; a column is a key, sensitive, the weight or the household",
                attribute=name,
            )
    return {name: _column(frame[name], name) for name in names}


def _column(series: nw.Series[pl.Series], name: str) -> pl.Series:
    column = comparable(series, name)
    if column.dtype.is_nested():
        raise DataError(
            "expected text, numbers, true/false values, dates or times, found lists; convert the "
            "column",
            attribute=name,
        )
    return column


def _weights(column: pl.Series, name: str) -> pl.Series:
    """Return weights, all of which must be positive numbers."""
    if not column.dtype.is_numeric():
        raise DataError("a weight must be a number, found other values", attribute=name)
    numbers = column.cast(pl.Float64)
    usable = (numbers.is_finite() & (numbers > 0)).fill_null(value=False)
    if not usable.all():
        raise DataError(
            f"weights must be positive numbers, found {(~usable).sum():,} records with a missing, "
            "infinite, zero or negative one; correct or remove them",
            attribute=name,
        )
    return numbers


def _special_uniques(found: Combinations, fraction: float) -> SpecialUniques | None:
    combinations, keys = found.codes.shape
    if not is_searchable(combinations, keys):
        return None
    return special_uniques(found.codes, found.records, fraction)


def _per_record(found: Combinations, suda: SpecialUniques | None) -> pl.DataFrame:
    """Say of each record what its combination of keys says."""
    of_combination = {
        "fk": found.shared,
        "Fk": found.population,
        "risk": individual_risk(found.shared, found.population),
    }
    if suda is not None:
        of_combination |= {"suda_score": suda.score, "dis": suda.dis}
    return pl.DataFrame({name: values[found.label] for name, values in of_combination.items()})


def _household_figures(risks: pl.Series, members: Integers) -> HouseholdRisk:
    households = len(np.unique(members[members >= 0])) + int(np.sum(members < 0))
    return HouseholdRisk(households, float(risks.sum()), float(risks.max()))  # type: ignore[arg-type]


def _suda_figures(suda: SpecialUniques, label: Integers, keys: list[str]) -> Suda:
    score, dis = suda.score[label], suda.dis[label]
    total = score.sum()
    parts = score @ suda.shares[label] / total if total else np.zeros(len(keys))
    intervals = np.searchsorted(DIS_EDGES, dis)
    counts = np.bincount(intervals, minlength=len(DIS_INTERVALS)).tolist()
    return Suda(
        records=int(np.sum(score > 0)),
        largest_score=float(score.max()),
        mean_score=float(score.mean()),
        largest_dis=float(dis.max()),
        mean_dis=float(dis.mean()),
        dis_intervals=dict(zip(DIS_INTERVALS, counts, strict=True)),
        contributions=dict(zip(keys, map(float, parts), strict=True)),
    )


def _diversity(name: str, column: pl.Series, label: Integers) -> tuple[Diversity, list[pl.Series]]:
    """Measure how different a sensitive column is in each class, a missing value being one more."""
    codes = code(column).to_numpy().astype(np.int64)
    here = class_diversity(codes + 1, label)
    distance = np.full(len(here.distinct), np.nan)
    there = codes != NO_CODE
    if there.any():
        classes, own = np.unique(label[there], return_inverse=True)
        ordered = not (column.dtype in TEXT or column.dtype == pl.Boolean)
        distance[classes] = distances_to_all(codes[there], own, ordered=ordered)
    of_class = {"distinct": here.distinct, "entropy": here.entropy,
                "recursive": here.recursive, "distance": distance}  # fmt: skip
    of_record = {
        measure: pl.Series(f"{name}: {measure}", values[label], nan_to_null=True)
        for measure, values in of_class.items()
    }
    return _diversity_figures(name, of_record), list(of_record.values())


def _diversity_figures(name: str, of_record: dict[str, pl.Series]) -> Diversity:
    distinct, entropy, distance = (of_record[x] for x in ("distinct", "entropy", "distance"))
    return Diversity(
        attribute=name,
        least_distinct=int(distinct.min()),  # type: ignore[arg-type]
        distinct_below={least: int((distinct < least).sum()) for least in LIMITS},
        least_entropy=float(entropy.min()),  # type: ignore[arg-type]
        entropy_below={least: int((entropy < least).sum()) for least in LIMITS},
        least_recursive=int(of_record["recursive"].min()),  # type: ignore[arg-type]
        largest_distance=distance.max(),  # type: ignore[arg-type]
        mean_distance=distance.mean(),  # type: ignore[arg-type]
    )
