"""Joint clusters that last from release to release: who is present, and how they look."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from microveil.core.joint import cluster_points
from microveil.core.joint_units import JointLabels, by_rank, member_points, rank_members
from microveil.core.pooling import Pool
from microveil.core.random_words import WordSource
from microveil.engines.base import Assign
from microveil.engines.dtypes import comparable
from microveil.engines.layout import Layout, classes_of_units, numbered
from microveil.errors import DataError
from microveil.types import Integers, Reals


class PersonsPresent(NamedTuple):
    """Those whom a table has, by name; how they look; and how each of their records does."""

    names: Sequence[str]
    looks: Integers
    records: Integers


def look_at_persons(
    named: pl.Series, layout: Layout, kept: Sequence[pl.Series], k: int
) -> PersonsPresent:
    """Look at the persons of a table, and refuse what lets some of them be told from all others.

    Persons who look alike have the same kept values, record by record, as many records, and one
    stratum.
    """
    strata = [] if layout.stratum is None else [pl.Series(layout.stratum)]
    if named.null_count():
        raise DataError(
            f"it is missing in {named.null_count():,} of {len(named):,} records, and --joint needs "
            "to know whose record each is; fill it in, or remove these records",
            attribute=named.name,
        )
    columns = [*kept, *strata]
    record = numbered(columns) if columns else np.zeros(len(named), dtype=np.int64)
    looks = record
    if layout.unit is not None:
        named, looks = named.gather(layout.first), classes_of_units(record, layout.unit)
    elif twice := len(named) - named.n_unique():
        raise DataError(
            f"{twice:,} records are of persons who have others, and --joint needs one record per "
            f'person; set unit = "{named.name}", or remove what stands there twice',
            attribute=named.name,
            setting="unit",
        )
    few = int(np.sum(sizes[sizes < k])) if len(sizes := np.bincount(looks)) else 0
    if few:
        alike = "as many records and the same kept values" if layout.unit is not None else (
            "the same kept values"
        )  # fmt: skip
        raise DataError(
            f"{few:,} persons can be told from all others under a pseudonym that lasts, since "
            f"fewer than anonymity = {k:,} have {alike}; mask, recode or drop kept columns, or "
            "leave these persons out",
            setting="anonymity",
        )
    return PersonsPresent(named.to_list(), looks, record)


def kept_series(name: str, column: object, codes: pl.Series | None) -> list[pl.Series]:
    """Return what is to be seen of a kept column: values, and missing codes if it has them."""
    return [comparable(column, name), *([] if codes is None else [codes])]  # type: ignore[arg-type]


def lasting_labels(
    present: PersonsPresent,
    layout: Layout,
    own: Reals,
    members: Reals,
    pool: Pool,
    assign: Assign,
    ties: WordSource,
) -> JointLabels:
    """Put persons into joint clusters that last; `own` places them, `members` their records."""
    points, rank = own, None
    if layout.unit is not None:
        rank = rank_members(members, layout.unit, ties, present.records)
        points = np.hstack([own, member_points(members, layout.unit, rank)])

    def cluster(rows: Integers, size: int) -> Integers:
        return cluster_points(points[rows], size, ties)[0]

    label = assign(present.names, present.looks, points, cluster, ties)
    if layout.unit is None or rank is None:
        return JointLabels(label)
    return JointLabels(by_rank(label, layout.unit, rank, pool.anonymity), label)
