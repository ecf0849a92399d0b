"""What an exploration found: the points of the frontier, and the one recommended."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from microveil.core.choices import MethodName
from microveil.core.methods import METHODS
from microveil.plan.plan import Plan

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Measured:
    """Means over runs of one plan.

    `attributes` counts the numeric ones that vary, over which `mean_sse` is. `linkage` is the share
    of records that the most successful attack links. `f_measure` and
    `f_original` are the mean F-measures over the classes of a model trained on the release and of
    one trained on the original. `unchanged` is the mean share of records that keep their category
    over the attributes of categories, None where there are none.
    """

    attributes: int
    mean_sse: float
    linkage: float
    f_measure: float | None
    f_original: float | None
    unchanged: float | None = None


@dataclass(frozen=True)
class Point:
    """One point of the frontier: a plan, its expected mean SSE, and what was measured if it was."""

    plan: Plan
    expected: float
    found: Measured | None = None

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
    def family(self) -> tuple[float, str, str]:
        """What a point has in common with those that differ in k alone."""
        return self.epsilon, self.method, self.partition or ""


@dataclass(frozen=True, eq=False)
class Exploration:
    """What a table would lose at which ε. A function of the data: keep it private.

    Attributes
    ----------
    points
        Every point of the frontier.
    recommended
        The point that the rule chose.
    plan
        Its plan, with what was chosen from the data noted for the certificate.
    headline
        The recommended point in one line.
    recommendation
        The headline, the rule that chose it, and what its ε covers.
    """

    points: tuple[Point, ...]
    recommended: Point
    plan: Plan
    headline: str
    recommendation: str

    def to_frame(self) -> pl.DataFrame:
        """Return one row per point; what was not measured is null."""
        schema = {
            "method": pl.String, "partition": pl.String, "k": pl.Int64, "epsilon": pl.Float64,
            "expected": pl.Float64, "measured": pl.Float64, "linkage": pl.Float64,
            "f_measure": pl.Float64, "unchanged": pl.Float64,
        }  # fmt: skip
        rows = [
            (
                p.method, p.partition, p.k, p.epsilon, p.expected, p.found and p.found.mean_sse,
                p.found and p.found.linkage, p.found and p.found.f_measure,
                p.found and p.found.unchanged,
            )
            for p in self.points
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_svg(self) -> str:
        """Draw mean SSE of iDP-CBLS against k, for each ε, as SVG; needs ``microveil[report]``."""
        from microveil.charts.render import to_svg
        from microveil.exploration.chart import chart

        return to_svg(chart(self))

    def __rich__(self) -> "RenderableType":
        from microveil.exploration.terminal import show

        return show(self)
