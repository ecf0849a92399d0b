"""What an exploration found: the points of the frontier, and the one recommended."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from microveil.attacks.attack_rows import LOW_LINKAGE
from microveil.core.choices import MethodName
from microveil.core.methods import METHODS
from microveil.errors import PlanError
from microveil.plan.plan import Plan
from microveil.shown import Shown

LimitName = Literal["max_linkage", "max_error", "min_anonymity"]
AdviceRule = Literal["learning", "uses", "spread"]
"""What makes an ε good enough: classes are still learned, uses are good, or numbers keep spread."""


@dataclass(frozen=True)
class Measured:
    """Means over runs of one plan, but for `linkage`, which is of the first run.

    `attributes` counts the numeric ones that vary, over which `mean_sse` is. `linkage` is the share
    of records that the most successful attack links. `f_measure` and `f_original` are the mean
    F-measures over the classes of a model trained on the release and of one trained on the
    original. `unchanged` is the mean share of records that keep their category over the attributes
    of categories, None where there are none. `use_loss` is the worst figure of the plan's uses as a
    multiple of what is good, None without uses.
    """

    attributes: int
    mean_sse: float
    linkage: float
    f_measure: float | None
    f_original: float | None
    unchanged: float | None = None
    use_loss: float | None = None


@dataclass(frozen=True)
class Limits:
    """What a plan must keep to.

    Attributes
    ----------
    max_linkage
        The largest share of rows that the most successful attack may link.
    max_error
        The largest mean SSE.
    min_anonymity
        The least number of records in a joint cluster of every confidential attribute.
    """

    max_linkage: float = LOW_LINKAGE
    max_error: float = math.inf
    min_anonymity: int = 0

    def __post_init__(self) -> None:
        """Refuse limits that mean nothing.

        Raises
        ------
        PlanError
            With what was expected.
        """
        if not 0 < self.max_linkage <= 1:
            raise PlanError(
                f"max_linkage must be a share above 0 and up to 1, got {self.max_linkage:g}"
            )
        if not self.max_error > 0:
            raise PlanError(f"max_error must be above 0, got {self.max_error:g}")
        if self.min_anonymity < 0 or self.min_anonymity == 1:
            raise PlanError(f"min_anonymity must be 0, 2 or more, got {self.min_anonymity}")

    def broken_by(self, point: "Point", found: Measured) -> dict[LimitName, tuple[float, float]]:
        """Return which of them a measured point breaks: what was found, and the limit."""
        broken: dict[LimitName, tuple[float, float]] = {}
        if found.linkage > self.max_linkage:
            broken["max_linkage"] = found.linkage, self.max_linkage
        if found.mean_sse > self.max_error:
            broken["max_error"] = found.mean_sse, self.max_error
        if point.anonymity < self.min_anonymity:
            broken["min_anonymity"] = point.anonymity, self.min_anonymity
        return broken


@dataclass(frozen=True)
class Point:
    """One point of the frontier: a plan, its expected mean SSE, and what was measured if it was."""

    plan: Plan
    expected: float
    found: Measured | None = None

    @property
    def anonymity(self) -> int:
        """Records in the smallest joint cluster; 0 unless every attribute is pooled."""
        groups = self.plan.pooled_groups
        if sum(len(group.attributes) for group in groups) < len(self.plan.confidential):
            return 0
        return min(group.anonymity or 0 for group in groups)

    @property
    def masking(self) -> Plan:
        """The plan without pooling."""
        return self.plan.replace(anonymity=0, pooling="exchange", groups=())

    @property
    def pooling(self) -> str:
        """How masked values are pooled; nothing where they are not."""
        kinds = {str(group.pooling) for group in self.plan.pooled_groups}
        return "mixed" if len(kinds) > 1 else "".join(kinds)

    @property
    def pooled(self) -> str:
        """How masked values are pooled, and in joint clusters of how many records."""
        numbers = sorted({group.anonymity or 0 for group in self.plan.pooled_groups})
        ends = numbers[:1] + numbers[1:][-1:]
        return f"{self.pooling} {'–'.join(map(str, ends))}".strip()

    @property
    def epsilon(self) -> float:
        """The budget."""
        return self.plan.epsilon

    @property
    def method(self) -> MethodName:
        """The method."""
        return self.plan.method

    @property
    def partition(self) -> str | None:
        """The partition; None where the method forms no clusters."""
        return self.plan.partition if METHODS[self.method].clustered else None

    @property
    def k(self) -> int | None:
        """Records in the smallest cluster; None where the method forms no clusters."""
        k = self.plan.k
        return k if METHODS[self.method].clustered and isinstance(k, int) else None

    @property
    def clusters(self) -> str:
        """Which clusters it has."""
        return f"k = {self.k}" if self.partition == "fixed" else str(self.partition)

    @property
    def family(self) -> tuple[float, str, str, str]:
        """What a point has in common with those that differ in k or trim alone."""
        return self.epsilon, self.method, self.partition or "", self.pooled


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Shown):
    """What a table would lose at which ε. A function of the data: keep it private.

    Attributes
    ----------
    points
        Every point of the frontier.
    limits
        What a recommended plan keeps to.
    best
        The point that the rule chose, or if no measured point keeps to the limits the nearest.
    broken
        The limits that it breaks, each with what was found and the limit.
    plan
        Its plan, with what was chosen from the data noted for the certificate; None if it breaks a
        limit.
    rule, good_enough
        What makes an ε good enough, and whether that of `best` is.
    target
        The column of classes to learn; None where the classes were given, or none.
    set_aside
        Ways of pooling that keep to the limits but that the plan does not ask for.
    hardly_learned
        Whether the classes are hardly learned from the original itself.
    """

    points: tuple[Point, ...]
    limits: Limits
    best: Point
    broken: Mapping[LimitName, tuple[float, float]]
    plan: Plan | None
    rule: AdviceRule
    good_enough: bool = False
    target: str | None = None
    set_aside: tuple[str, ...] = ()
    hardly_learned: bool = False

    @property
    def recommended(self) -> Point | None:
        """The recommended point; None if no measured point keeps to the limits."""
        return None if self.broken else self.best

    def to_frame(self) -> pl.DataFrame:
        """Return one row per point; what was not measured is null."""
        schema = {
            "method": pl.String, "partition": pl.String, "k": pl.Int64, "epsilon": pl.Float64,
            "trim": pl.Float64, "anonymity": pl.Int64, "pooling": pl.String,
            "expected": pl.Float64, "measured": pl.Float64, "linkage": pl.Float64,
            "f_measure": pl.Float64, "unchanged": pl.Float64, "use_loss": pl.Float64,
        }  # fmt: skip
        rows = [
            (
                p.method, p.partition, p.k, p.epsilon, p.plan.trim, p.plan.anonymity,
                p.plan.pooling if p.pooled else None, p.expected, p.found and p.found.mean_sse,
                p.found and p.found.linkage, p.found and p.found.f_measure,
                p.found and p.found.unchanged, p.found and p.found.use_loss,
            )
            for p in self.points
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")
