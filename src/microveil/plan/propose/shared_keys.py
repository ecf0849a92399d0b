"""Which column says whose records they are, as a patient's number does that all visits have.

Names say it, and so does what the other columns do: the records of one person agree in birth date
and sex far more than records of two people. What agrees by chance counts for nothing, and neither
does what neighbouring numbers agree in as well, such as the canton of postal codes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl

from microveil.errors import PlanError
from microveil.plan.parts import did_you_mean
from microveil.plan.propose.columns import ColumnProfile, Proposal, is_sampling_weight
from microveil.plan.propose.headers import names_a_thing, says_whose, says_year
from microveil.plan.propose.numbering import are_years, is_spread_like_amounts
from microveil.types import Integers

_FEWEST_UNITS, _FEWEST_PAIRS = 10, 10
_MOST_RECORDS, _MOST_RECORDS_OF_A_PERSON = 20, 200  # of a unit, on average
_AGREE, _GAIN = 0.9, 0.5  # in the records of a unit; beyond what chance leaves
_ENOUGH_IF_NAMED, _ENOUGH = math.log(2), math.log(20)  # of evidence
_ALL_AGREE_BY_CHANCE = 1e-6
_FOLLOWS = 0.9
_MOST_RECORDS_LOOKED_AT = 100_000
_MEMBERS = 20  # of a household, numbered within it


@dataclass(frozen=True)
class SharedKey:
    """A column that several records of one unit share.

    Attributes
    ----------
    name
        The column.
    units, most
        How many units there are, and how many records the largest has.
    same
        Columns in which all records of a unit agree, and hardly by chance.
    named
        Whether its name says that its units are persons or households.
    of_records
        The number of each record's unit.
    """

    name: str
    units: int
    most: int
    same: tuple[str, ...]
    named: bool
    of_records: Integers = field(repr=False, compare=False)


def find_shared_key(
    looks: Mapping[str, ColumnProfile], proposals: Mapping[str, Proposal]
) -> SharedKey | None:
    """Find the column that says which records belong to one person or household.

    Of two that are nested it is the coarser one, since a household's records are all those of its
    members. Of two that are not, it is the finer one.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil.plan.propose.columns import propose_role
    >>> visits = pl.DataFrame({
    ...     "patient": [n // 3 * 17 for n in range(90)],
    ...     "born": [1930 + n // 3 * 7 % 80 for n in range(90)],
    ...     "days": [n * 37 % 11 for n in range(90)],
    ... })
    >>> looks = {c.name: ColumnProfile(c.name, c) for c in visits}
    >>> find_shared_key(looks, {name: propose_role(look) for name, look in looks.items()})
    SharedKey(name='patient', units=30, most=3, same=('born',), named=True)
    """
    possible = [look for name, look in looks.items() if _may_be_shared(look, proposals[name])]
    if not possible:
        return None
    tried = [_Tried(look, looks, proposals[look.name]) for look in possible]
    best = _best([one for one in tried if one.holds])
    return None if best is None else best.shared_key


def chosen_key(
    name: str, looks: Mapping[str, ColumnProfile], proposals: Mapping[str, Proposal]
) -> SharedKey:
    """Take a column for the one that says whose records they are, whatever it seems to be."""
    if name not in looks:
        raise PlanError(f"unit: no column {name!r}{did_you_mean(name, looks)}", setting="unit")
    if looks[name].missing:
        raise PlanError(
            "a column that says whose records they are has no missing values; choose another",
            attribute=name,
            setting="unit",
        )
    return _Tried(looks[name], looks, proposals[name]).shared_key


def _may_be_shared(look: ColumnProfile, proposal: Proposal) -> bool:
    """Whether a column may be a key by its type, its name and how often its values occur."""
    records, units = len(look.column), look.distinct
    if look.missing or not _FEWEST_UNITS <= units <= records - _FEWEST_PAIRS:
        return False
    text, whole = look.column.dtype in (pl.String, pl.Categorical), look.whole
    if not text and (whole is None or is_sampling_weight(look)):
        return False
    whose = says_whose(look.name)
    if records > units * (_MOST_RECORDS_OF_A_PERSON if whose else _MOST_RECORDS):
        return False
    if whose:
        return True
    if names_a_thing(look.name) or look.described.labels:
        return False
    if look.says in ("key", "unit", "person", "contact"):
        return True
    if whole is not None and (says_year(look.name) or are_years(whole)):
        return False
    amounts = whole is not None and proposal.ordered and is_spread_like_amounts(np.unique(whole))
    return look.says is None and not amounts


def _codes_of(column: pl.Series) -> Integers | None:
    """Return the rank of each record's value, missing ones as another; None without an order."""
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary, pl.Null):
        return None
    ordered = column.cast(pl.String) if column.dtype == pl.Categorical else column
    return ordered.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()


class _Tried:
    """A column tried as a key: how far the others agree in records that share its value.

    Of many records those of the middle keys are looked at.
    """

    def __init__(
        self, look: ColumnProfile, looks: Mapping[str, ColumnProfile], proposal: Proposal
    ) -> None:
        self.look = look
        self.named = says_whose(look.name)
        self._looks, self._proposal = looks, proposal
        key = look.plain.cast(pl.String) if look.column.dtype == pl.Categorical else look.plain
        self.key = key.rank("dense").cast(pl.Int64).to_numpy()
        self.sizes = np.bincount(self.key)[1:]
        self._order = np.argsort(self.key, kind="stable")
        first = max(0, (len(self.key) - _MOST_RECORDS_LOOKED_AT) // 2)
        self._rows = self._order[first : first + _MOST_RECORDS_LOOKED_AT]
        steps = np.diff(self.key[self._rows])
        self._within, self._between = np.flatnonzero(steps == 0), np.flatnonzero(steps)

    @cached_property
    def _codes(self) -> dict[str, Integers]:
        """The numbered values of every other column, in the order of the key."""
        rows = pl.Series(self._rows)
        codes = {
            name: _codes_of(look.plain.gather(rows))
            for name, look in self._looks.items()
            if name != self.look.name
        }
        return {name: each for name, each in codes.items() if each is not None}

    @cached_property
    def agreeing(self) -> dict[str, tuple[float, float]]:
        """How often each column agrees in two records of one unit, and in those of two."""
        return {
            name: (self._share(codes, self._within), self._by_chance(codes))
            for name, codes in self._codes.items()
        }

    @property
    def constant(self) -> list[str]:
        """Columns that agree in the records of a unit far more than chance has it."""
        return [
            name
            for name, (share, chance) in self.agreeing.items()
            if share >= _AGREE
            and share - chance >= _GAIN * (1 - chance)
            and not self._follows(self._codes[name])
        ]

    @property
    def same(self) -> tuple[str, ...]:
        """Columns in which all records of a unit agree, and hardly by chance."""
        pairs = len(self._within)
        return tuple(
            name
            for name, (share, chance) in self.agreeing.items()
            if share == 1 and chance**pairs < _ALL_AGREE_BY_CHANCE and self._is_same(name)
        )

    def _is_same(self, name: str) -> bool:
        """Whether all records of every unit agree, and not only those looked at."""
        ordered = self._looks[name].plain.gather(pl.Series(self._order))
        agree = ordered.eq_missing(ordered.shift(1)).to_numpy()[1:]
        return bool(agree[np.diff(self.key[self._order]) == 0].all())

    @cached_property
    def evidence(self) -> float:
        """Minus the logarithm of the chance that two units agree in all that is constant."""
        if not self.constant:
            return 0.0
        joint = pl.DataFrame(
            [pl.Series(f"{n}", self._codes[c]) for n, c in enumerate(self.constant)]
        )
        codes = joint.select(pl.struct(pl.all()).rank("dense")).to_series().to_numpy()
        return -math.log(max(self._by_chance(codes), 0.5 / len(self.sizes)))

    @property
    def holds(self) -> bool:
        """Whether it seems to say whose records they are."""
        if self.named and _MEMBERS < len(self.sizes) > len(self.look.column) / _MOST_RECORDS:
            return True
        return self.evidence >= (
            _ENOUGH_IF_NAMED if self.named or self.look.says == "key" else _ENOUGH
        )

    @property
    def likeness(self) -> int:
        """How far it is like a key in itself: by a person's name, by a key's, or by its values."""
        if self.named:
            return 3
        if self.look.says in ("key", "unit"):
            return 2
        return int(self._proposal.role == "identifier")

    @property
    def shared_key(self) -> SharedKey:
        """What is known of it."""
        largest = int(self.sizes.max())
        return SharedKey(self.look.name, len(self.sizes), largest, self.same, self.named, self.key)

    def _share(self, codes: Integers, places: Integers) -> float:
        return float(np.mean(codes[places] == codes[places + 1])) if len(places) else 0.0

    def _by_chance(self, codes: Integers) -> float:
        """Return how often two records of different units agree: any two, or two neighbours."""
        counts = np.bincount(codes).astype(np.float64)
        records = len(codes)
        any_two = float((counts * (counts - 1)).sum() / (records * (records - 1)))
        return max(any_two, self._share(codes, self._between))

    def _follows(self, codes: Integers) -> bool:
        """Whether a column rises or falls with the key, as a tax does with an income."""
        if self.look.whole is None:
            return False
        ranks = pl.Series(codes[self._between]).rank().to_numpy()
        if (ranks == ranks[0]).all():
            return True
        related = np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]
        return bool(abs(related) > _FOLLOWS)


def _best(found: Sequence[_Tried]) -> _Tried | None:
    """Of those most like keys, take the finest, or what all of its records are nested in."""
    likeness = max((one.likeness for one in found), default=0)
    alike = [one for one in found if one.likeness == likeness]
    if not alike:
        return None
    finest = max(alike, key=lambda one: (len(one.sizes), one.evidence))
    around = [one for one in alike if _nested(finest, one)]
    return min(around, key=lambda one: (len(one.sizes), -one.evidence))


def _nested(inner: _Tried, outer: _Tried) -> bool:
    """Whether all records of every inner unit have the same outer one."""
    pairs = pl.DataFrame({"inner": inner.key, "outer": outer.key})
    return len(pairs.unique()) == len(inner.sizes)
