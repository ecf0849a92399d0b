"""Numbers under attack."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from microveil.core.accounting import fixed_loss, reclustered_loss
from microveil.core.attribute import NumericSettings
from microveil.core.clusters import ClusterSummary
from microveil.core.grid import LARGEST_STEPS
from microveil.core.mask import calibrate, publish
from microveil.core.random_words import WordSource
from microveil.lab.audit.models import NumericModel
from microveil.lab.audit.target import AuditTarget
from microveil.types import Integers, Reals

Mechanism = Callable[[ClusterSummary, Integers, NumericSettings, WordSource], Reals]


@dataclass(frozen=True, eq=False)
class NumericTarget(AuditTarget[ClusterSummary]):
    """A numeric attribute, with noise scales fixed as computed from the table."""

    settings: NumericSettings
    mechanism: Mechanism
    single_precision: bool

    @cached_property
    def scales(self) -> Integers:
        """Noise scales of the table as it is."""
        return calibrate(self.summary, self.settings)

    def model(self, summary: ClusterSummary) -> NumericModel:
        """Return what a table with these clusters should publish, with scales of its own."""
        low, high = self.settings.grid.to_values(np.array([self.values.min(), self.values.max()]))
        return NumericModel(
            self.settings,
            self.settings.method.centroid(summary, 0),
            calibrate(summary, self.settings),
            (float(low), float(high)),
            self.single_precision,
        )

    @property
    def cells(self) -> int:
        """How many numbers the mechanism sees in one run."""
        return len(self.summary)

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The furthest values a record may take: the domain's ends, or far beyond the data."""
        low, high = int(self.values.min()), int(self.values.max())
        far = min(3 * (high - low) + 1, 2**59)
        declared = np.array([self.settings.lower, self.settings.upper])
        known = np.isfinite(declared)
        units = self.settings.grid.to_steps(np.where(known, declared, 0))
        return (
            int(units[0]) if known[0] else low - far,
            int(units[1]) if known[1] else high + far,
        )

    @cached_property
    def new_values(self) -> list[tuple[int, float]]:
        """Values as far out as the line takes them: the domain's ends, or well beyond the data.

        They are whole where no end is declared or the data are: columns of whole numbers hold them,
        and they have no more decimals than the data.
        """
        settings, grid = self.settings, self.settings.grid
        values = grid.to_values(self.values)
        low, high = values.min(), values.max()
        beyond = np.array([np.floor(2 * low - high) - 1, np.ceil(2 * high - low) + 1])
        reach = LARGEST_STEPS / 2 * grid.step
        declared = np.array([settings.lower, settings.upper])
        ends = np.where(np.isfinite(declared), declared, np.clip(beyond, -reach, reach))
        if np.all(values == np.rint(values)):
            ends = np.array([np.ceil(ends[0]), np.floor(ends[1])])
        ends = np.clip(ends, settings.published_lower, settings.published_upper)
        return list(zip(grid.to_steps(ends).tolist(), ends.tolist(), strict=True))

    @property
    def publishes_on_grid(self) -> bool:
        """Whether released values are multiples of the noise grid: averages are not."""
        return self.settings.post == "none" and not self.single_precision

    @property
    def telling_values(self) -> Iterable[int]:
        """The furthest values a record may take."""
        return self.ends

    def losses(self, there: ClusterSummary) -> tuple[float, float]:
        """How much likelier anything can be here than there; Laplace noise is symmetric."""
        centroid = self.settings.method.centroid
        moved = np.abs(centroid(there, 0) - centroid(self.summary, 0))
        if np.any(moved[self.scales == 0]):
            return float("inf"), float("inf")
        noisy = self.scales > 0
        loss = float(np.sum(moved[noisy] / self.scales[noisy]))
        return loss, loss

    def closed_form(self, *, fixed: bool) -> float:
        """Loss of this very table."""
        loss = fixed_loss if fixed else reclustered_loss
        return loss(self.settings.method, self.summary, self.settings.domain_steps, self.scales)

    def telling_records(self, *, fixed: bool) -> list[int]:
        """Return the records at the ends of the table, or of the clusters that can lose most."""
        if not fixed or not self.clustered:
            return [self.record(0), self.record(len(self.values) - 1)]
        ends, picks = np.cumsum(self.sizes), []
        reaches = self.settings.method.fixed(self.summary, self.settings.domain_steps)
        for reach, ranks in ((reaches.up, ends - self.sizes), (reaches.down, ends - 1)):
            loss = reach / self.summary.averaged / np.maximum(self.scales, 1)
            picks.append(self.record(int(ranks[np.argmax(loss)])))
        return picks

    def release(self, source: WordSource) -> Reals:
        """Run the mechanism once, as it is released."""
        return self.mechanism(self.summary, self.scales, self.settings, source)

    def run(self, summary: ClusterSummary, runs: int, source: WordSource) -> Reals:
        """Run the mechanism many times; one row of published values per run.

        The runs are one long table of clusters to the mechanism. Isotonic regression would mix them
        and is left out: post-processing can only hide, and it is the masking that is attacked.
        """
        repeated = replace(
            summary, **{name: np.tile(values, runs) for name, values in vars(summary).items()}
        )
        plain = replace(self.settings, post="none")
        published = self.mechanism(repeated, np.tile(self.scales, runs), plain, source)
        return published.reshape(runs, -1)

    def statistics(self, there: ClusterSummary, published: Reals) -> Reals:
        """Compute four numbers per run, each large where this table is likelier than the other.

        The likelihood ratio is the best there is against honest Laplace noise. The others look for
        noise that is missing somewhere, or the same in two clusters, raw or in units of its scale.
        """
        grid, method = self.settings.grid, self.settings.method
        here_values = grid.to_values(method.centroid(self.summary, 0))
        there_values = grid.to_values(method.centroid(there, 0))
        scales = np.maximum(self.scales, 1) * grid.step
        moved = np.flatnonzero(here_values != there_values)
        if not len(moved):
            return np.zeros((4, len(published)))
        seen, here, away = published[:, moved], here_values[moved], there_values[moved]
        ratio = np.sum((np.abs(seen - away) - np.abs(seen - here)) / scales[moved], axis=1)
        matches = np.sum(seen == publish(here, self.settings), axis=1) - np.sum(
            seen == publish(away, self.settings), axis=1
        )
        most = int(moved[np.argmax(np.abs(here - away) / scales[moved])])
        beside = most - 1 if most else min(1, len(scales) - 1)
        shared = [
            _apart(published[:, most] / s - published[:, beside] / t, here_values, there_values,
                   most, beside, s, t)
            for s, t in ((1.0, 1.0), (scales[most], scales[beside]))
        ]  # fmt: skip
        return np.stack([ratio, matches, *shared])

    def is_off_grid(self, published: Reals) -> bool:
        """Whether published values have bits below the grid, which tell of floating-point noise."""
        settings = self.settings
        if settings.kind == "integer" or settings.decimals is not None:
            return False
        inside = (published > settings.published_lower) & (published < settings.published_upper)
        units = (published[inside] - settings.grid.origin) / settings.grid.step
        return bool(np.any(units != np.rint(units)))


def _apart(
    seen: Reals, here: Reals, there: Reals, most: int, beside: int, s: float, t: float
) -> Reals:
    expected_here, expected_there = (x[most] / s - x[beside] / t for x in (here, there))
    distance: Reals = np.abs(seen - expected_there) - np.abs(seen - expected_here)
    return distance
