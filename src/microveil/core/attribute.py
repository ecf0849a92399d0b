"""Everything that is resolved about a confidential attribute before clusters are formed."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypedDict

from microveil.core.choices import GuaranteeName, Partition, Post
from microveil.core.grid import Grid
from microveil.core.methods import Method
from microveil.core.sensitivity import DomainSteps

NumericKind = Literal["integer", "real"]
CategoryKind = Literal["nominal", "ordinal"]
AttributeKind = NumericKind | CategoryKind
Category = str | bool | int
TimeStep = Literal["day", "hour", "minute", "second", "microsecond"]
DomainSource = Literal["declared", "data", "none"]
GridSource = Literal["declared", "data", "default"]

CROWD = 10
"""Persons who must have a value that goes out without noise, where a plan does not say."""

MOSTLY = 0.5
"""Chance above which noise leaves a value as it was too often."""


@dataclass(frozen=True)
class _Settings:
    """What numbers and categories have in common.

    `records` counts its values: one for each record, or where it is `per_unit` for each unit.
    `persons` is the most values of one person that ε is divided by. Where it is `by_unit`, clusters
    have k different units, and the noise of each covers all values of any of them. `exact_from` is
    how many persons, or units, must have a value that goes out without noise.
    """

    name: str
    kind: AttributeKind
    method: Method
    guarantee: GuaranteeName
    partition: Partition
    post: Post
    k: int
    k_chosen: bool
    k_from_data: bool
    records: int
    epsilon: float
    epsilon_per_record: float
    persons: int
    per_unit: bool
    by_unit: bool
    exact_from: int
    domain_source: DomainSource

    @property
    def enough(self) -> int:
        """How many values are those of `exact_from` persons, however they share them out.

        No claim of differential privacy survives scales that depend on it, nor needs them to: its
        methods publish nothing without noise.
        """
        return self.exact_from * self.persons if self.method.promise.fixes_scales else 0

    @property
    def counted_to(self) -> int:
        """Up to how many values of those who share one are counted for the private detail."""
        return max(self.enough, CROWD * self.persons)

    @property
    def clusters(self) -> int:
        """Number of clusters of k; every record is one where the method forms none."""
        return self.records // self.k

    @property
    def chosen_from_data(self) -> bool:
        """Whether the data decided where clusters begin and end."""
        return self.method.clustered and (self.partition != "fixed" or self.k_from_data)


@dataclass(frozen=True)
class NumericSettings(_Settings):
    """A numeric attribute.

    `lower` and `upper` are infinite where there is no domain. `published_lower` and
    `published_upper` also respect whole numbers and the column's type. Published whole numbers are
    multiples of `quantum`, which is 1 but for times, counted in days or microseconds.
    `type_from_data` says that the data decided whether it holds whole or real numbers, or how many
    decimals. `trim` is the share of a cluster that is left out at each end, below one half; 0 for
    the paper's own pre-processing.
    """

    cap: int
    lower: float
    upper: float
    published_lower: float
    published_upper: float
    decimals: int | None
    quantum: float
    time_step: TimeStep | None
    grid: Grid
    grid_source: GridSource
    type_from_data: bool
    trim: float

    @property
    def rounding_steps(self) -> int:
        """How far published values next to each other are apart, in grid steps."""
        if self.kind == "integer":
            step = self.quantum
        else:
            step = 0.0 if self.decimals is None else 10.0**-self.decimals
        return max(1, math.ceil(step / self.grid.step))

    @property
    def domain_steps(self) -> DomainSteps:
        """The domain in grid steps; (0, 0) for a method that needs none."""
        if not self.method.needs_domain:
            return DomainSteps(0, 0)
        step, origin = self.grid.step, self.grid.origin
        return DomainSteps(round((self.lower - origin) / step), round((self.upper - origin) / step))


@dataclass(frozen=True)
class CategorySettings(_Settings):
    """An attribute of categories, in the order in which they are clustered.

    `paths` holds for every category the groups of the taxonomy it is in; empty without one.
    """

    categories: tuple[Category, ...]
    paths: tuple[tuple[str, ...], ...]

    @property
    def most_changing(self) -> int:
        """How many clusters can change when one record does and clusters are formed again.

        Every cluster between the old and the new place hands its first record on and gets the
        next cluster's first. Along the way categories only rise, so they can differ r − 1 times.
        """
        return min(self.clusters, len(self.categories) - 1)

    @property
    def rate(self) -> Fraction:
        """What a flip costs per count: half of ε, or of each changing cluster's part of it."""
        return self.rate_for(self.persons)

    def rate_for(self, values: int) -> Fraction:
        """Return the rate of a flip where a person has so many values."""
        reclustered = self.guarantee == "re-clustered" and self.method.clustered
        parts = self.most_changing if reclustered else 1
        return Fraction(self.epsilon) / values / parts / 2


AttributeSettings = NumericSettings | CategorySettings


class CommonSettings(TypedDict):
    """What numbers and categories are resolved to alike."""

    name: str
    method: Method
    guarantee: GuaranteeName
    partition: Partition
    k: int
    k_chosen: bool
    k_from_data: bool
    epsilon: float
    epsilon_per_record: float
    persons: int
    per_unit: bool
    by_unit: bool
    exact_from: int
