"""What a release shows of persons besides pooled values, and how many share it, for a ledger.

Rows under one pseudonym are linked from release to release: their history is shared by those with
the same classes, or absence, in all of them. Rows without a pseudonym are linked by nothing.
"""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b, sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from microveil.engines.base import Released
from microveil.engines.beside_here import BesideHere
from microveil.engines.layout import classes_of_units, numbered
from microveil.errors import FileError
from microveil.formats import check_regular
from microveil.plan.plan import Plan
from microveil.release.private_files import replace_private
from microveil.types import Integers

_BYTES = 8  # of a pseudonym's digest


@dataclass(frozen=True)
class Crowd:
    """By what chance the informed attacker picks a person: the highest, and the mean of all."""

    chance: float
    mean: float


@dataclass(frozen=True, eq=False)
class ShownClasses:
    """The class of each person, or unit, in one release, from 0 on; by pseudonym if it has them.

    Classes are those of `attacks.informed`. Where no row is a person's there are none.
    """

    label: Integers
    thread: pl.Series | None

    @classmethod
    def of_nobody(cls) -> "ShownClasses":
        """Return those of a synthetic release."""
        return cls(np.empty(0, dtype=np.int64), None)

    @property
    def crowd(self) -> Crowd:
        """By what chance a person is picked by this release alone."""
        return _crowd(np.bincount(self.label))

    def write(self, ledger: Path, release: str) -> str:
        """Write digests of pseudonyms and their classes beside a ledger; return the SHA-256."""
        table = BytesIO()
        pl.DataFrame({"thread": self.thread, "label": self.label}).write_parquet(table)
        replace_private(histories_file(ledger, release), table.getvalue(), "histories")
        return sha256(table.getvalue()).hexdigest()

    @classmethod
    def read(cls, ledger: Path, release: str, digest: str) -> "ShownClasses":
        """Read what `write` wrote; a file that is missing or damaged is an error."""
        path, content = histories_file(ledger, release), b""
        with suppress(OSError):
            check_regular(path)
            content = path.read_bytes()
        if sha256(content).hexdigest() != digest:
            raise FileError(
                f"histories {path}: missing or damaged, and the ledger cannot count without it; "
                "restore it from a copy"
            )
        table = pl.read_parquet(BytesIO(content))
        return cls(table["label"].to_numpy(), table["thread"])


def histories_file(ledger: Path, release: str) -> Path:
    """Name the private file, beside its ledger, of who was in which class of a release."""
    return ledger.with_name(f"{ledger.name}.{release}.histories")


def all_together(releases: Sequence[ShownClasses]) -> Crowd:
    """Return by what chance a person is picked by several releases under pseudonyms.

    Examples
    --------
    Of two people one is absent from the second release, which tells who is who.

    >>> first = ShownClasses(np.array([0, 0]), pl.Series([7, 8]))
    >>> second = ShownClasses(np.array([0]), pl.Series([7]))
    >>> first.crowd.chance, all_together([first, second]).chance
    (0.5, 1.0)
    """
    tables = [
        pl.DataFrame({"thread": one.thread, f"{place}": one.label + 1})
        for place, one in enumerate(releases)
    ]
    history = tables[0]
    for table in tables[1:]:
        history = history.join(table, on="thread", how="full", coalesce=True)
    places = history.drop("thread").fill_null(0)
    return _crowd(np.bincount(numbered(places.get_columns())))


def _crowd(sizes: Integers) -> Crowd:
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return Crowd(0.0, 0.0)
    return Crowd(1 / int(sizes.min()), len(sizes) / int(sizes.sum()))


def can_be_counted(plan: Plan) -> bool:
    """Whether all that a release by a plan shows of a person is pooled, kept, or one pseudonym."""
    if plan.release == "synthetic":
        return True
    people, pooled = plan.names("pseudonym"), [n for g in plan.pooled_groups for n in g.attributes]
    by_one = len(people) <= 1 and (not people or plan.unit in (None, *people))
    return by_one and not plan.shifted and set(pooled) >= set(plan.confidential)


def shown_classes(
    rows: Released, joint: Mapping[str, Any], unit: Integers | None, plan: Plan
) -> ShownClasses | None:
    """Return the classes of a release; None on Spark, and where they do not say it all.

    `joint` and `unit` have the joint clusters and the unit of each record.
    """
    if not isinstance(rows.positions, np.ndarray) or not can_be_counted(plan):
        return None
    beside, people = BesideHere(None, rows.data, rows.positions), plan.names("pseudonym")
    kept = beside.in_record_order(plan.kept)
    codes = [rows.missing_codes[name] for name in plan.kept if name in rows.missing_codes]
    record = numbered([*map(pl.Series, joint.values()), *kept, *codes])
    if not people:
        return ShownClasses(record if unit is None else classes_of_units(record, unit), None)
    (name,) = beside.in_record_order(people)
    record = numbered([pl.Series(record), name.is_null()])
    alone = pl.Series([f" {place}" for place in range(len(name))])  # where the pseudonym is missing
    name = name.cast(pl.String).zip_with(name.is_not_null(), alone)
    owner = numbered([name])
    first = np.unique(owner, return_index=True)[1]
    return ShownClasses(classes_of_units(record, owner), _digests(name.gather(first)))


def _digests(names: pl.Series) -> pl.Series:
    """Return a whole number for each pseudonym, the same in all releases; a new one if missing."""
    salt = secrets.token_bytes(_BYTES)
    digests = [
        blake2b(
            name.encode(), digest_size=_BYTES, key=salt if name.startswith(" ") else b""
        ).digest()
        for name in names
    ]
    return pl.Series(np.frombuffer(b"".join(digests), dtype=np.uint64))
