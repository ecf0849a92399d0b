"""The mechanism on one attribute: from cluster summaries to published values.

Pure: summaries, settings and random words in; published values, a private description of the
clusters and their losses out. Every engine ends here, and so do the audit, the expected error and
the exploration.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microveil.core.accounting import Totals, fixed_losses, noise_scales, reclustered_losses
from microveil.core.attribute import AttributeSettings, CategorySettings, NumericSettings
from microveil.core.categories import (
    CategorySummary,
    category_losses,
    leaders,
    released_as_is,
    representatives,
    respond,
    summarise_categories,
)
from microveil.core.clusters import ClusterSummary, TrimmedSummary, singletons, summarise
from microveil.core.isotonic import isotonic, penalised_isotonic
from microveil.core.noise import LARGEST_SCALE, add_discrete_laplace
from microveil.core.random_words import WordSource
from microveil.core.unit_clusters import UnitSummary, summarise_units
from microveil.errors import DataError
from microveil.types import Integers, Reals

Ends = tuple[bool, bool]
"""Whether a range of clusters begins with the first, and ends with the last, of all of them."""

WHOLE: Ends = (True, True)

Description = dict[str, NDArray[Any]]
"""Columns of the private detail, one row per cluster; columns that say nothing are left out."""


@dataclass(frozen=True, eq=False)
class Losses:
    """What one record can lose in each cluster.

    `fixed`: the record keeps its cluster; where clusters are of units, what each unit can lose in
    all of them together. `up` and `down`: clusters are formed again, and the record passes this one
    on its way up or down.
    """

    fixed: Reals
    up: Reals
    down: Reals


@dataclass(frozen=True, eq=False)
class Masked:
    """What is published of each cluster, how it came about, and what a record can lose there.

    `values` are numbers, or the codes of categories.
    """

    values: NDArray[Any]
    description: Description
    losses: Losses

    def total_losses(self, settings: AttributeSettings) -> tuple[float, float | None]:
        """Return what one record can lose with fixed clusters, and re-clustered."""
        losses = self.losses
        return total_losses(
            settings, float(losses.fixed.max()), float(losses.up.sum()), float(losses.down.sum())
        )


def total_losses(
    settings: AttributeSettings, fixed: float, up: float, down: float
) -> tuple[float, float | None]:
    """Return the losses of an attribute from the largest fixed and the sums of the others.

    Where the data decided where clusters begin and end, or clusters are of units, the loss of
    re-clustering has no bound.
    """
    if settings.chosen_from_data or settings.by_unit:
        return fixed, None
    if not settings.method.clustered:
        return fixed, fixed
    again = max(up, down)
    if isinstance(settings, CategorySettings):
        again = min(again, settings.most_changing * float(2 * settings.rate))
    return fixed, again


def summary_of(
    ranked: Integers, sizes: Integers, settings: AttributeSettings, unit: Integers | None = None
) -> ClusterSummary | CategorySummary:
    """Summarise consecutive clusters of the given sizes in ascending values or codes.

    `unit` has the unit of each value of an attribute that is masked by unit.
    """
    if isinstance(settings, CategorySettings):
        return summarise_categories(ranked, sizes, len(settings.categories), unit)
    return summarise_numbers(ranked, sizes, settings, unit)


def summarise_numbers(
    ranked: Integers, sizes: Integers, settings: NumericSettings, unit: Integers | None = None
) -> ClusterSummary:
    """Summarise consecutive clusters of the given sizes in ascending numbers."""
    if unit is not None:
        return summarise_units(ranked, sizes, unit, settings.trim)
    return summarise(ranked, sizes, settings.trim)


def mask_clusters(
    summary: ClusterSummary | CategorySummary,
    settings: AttributeSettings,
    words: WordSource,
    totals: Totals | None = None,
    ends: Ends | None = WHOLE,
) -> Masked:
    """Mask the clusters of one attribute, or a part of them whose `totals` are those of all.

    `ends` says of a range of clusters whether it has the first and the last of all of them; None of
    clusters that are not consecutive. Where isotonic regression follows, and these are not all
    clusters, values are regressed within the range, if it is one, and not published:
    `across_ranges` puts ranges together, and `publish` then rounds them.

    Guarantee
    ---------
    That of `publish_centroids` for numbers and of `representatives` for categories.
    """
    if isinstance(summary, CategorySummary):
        assert isinstance(settings, CategorySettings)  # noqa: S101 - for the type checker
        return _mask_categories(summary, settings, words)
    assert isinstance(settings, NumericSettings)  # noqa: S101 - for the type checker
    scales = calibrate(summary, settings, totals)
    values = publish_centroids(summary, scales, settings, words, ends)
    losses = _numeric_losses(summary, settings, scales)  # before what is large is described
    return Masked(values, _describe_numbers(summary, settings, scales), losses)


def mask_singly(values: Integers, settings: AttributeSettings, words: WordSource) -> Masked:
    """Mask every record by itself, for a method that forms no clusters; one row describes it."""
    if isinstance(settings, CategorySettings):
        spent = np.full(1, float(2 * settings.rate))
        description = {"records": np.array([len(values)]), "sensitivity": np.ones(1)}
        return Masked(respond(values, settings, words), description, Losses(spent, spent, spent))
    summary = singletons(values)
    scales = calibrate(summary, settings)
    first = singletons(values[:1])
    description = _describe_numbers(first, settings, scales[:1])
    return Masked(
        publish_centroids(summary, scales, settings, words),
        {
            "records": np.array([len(values)]),
            "sensitivity": description["sensitivity"],
            "scale": description["scale"],
        },
        _numeric_losses(summary, settings, scales),
    )


def calibrate(
    summary: ClusterSummary, settings: NumericSettings, totals: Totals | None = None
) -> Integers:
    """Compute the noise scale of every cluster, in grid steps.

    Of a part of the clusters, `totals` are those of all of them.
    """
    kind = UnitSummary if settings.by_unit else TrimmedSummary if settings.trim else ClusterSummary
    if not isinstance(summary, kind):
        raise TypeError(f"these settings need a {kind.__name__}; make it with summary_of")
    if not summary.fits():
        raise DataError(
            f"values too large for its noise grid when {settings.k} of them are added; declare "
            "lower and upper, a larger resolution, or a smaller k",
            attribute=settings.name,
        )
    if isinstance(summary, UnitSummary):
        own = summary.scales(settings.epsilon)
    else:
        own = noise_scales(
            settings.method,
            summary,
            settings.domain_steps,
            settings.epsilon_per_record,
            settings.guarantee,
            totals,
        )
    scales = least_scales(own, summary, settings)
    if scales.max() > LARGEST_SCALE:
        raise DataError(
            "epsilon is too small for its noise grid; raise epsilon, or declare a narrower domain "
            "or a larger resolution",
            attribute=settings.name,
            setting="epsilon",
        )
    return scales


def least_scales(scales: Integers, summary: ClusterSummary, settings: NumericSettings) -> Integers:
    """Raise scales so that no value goes out without noise that too few persons have.

    Where no record, or no unit, moves a centroid, it is a value that the cluster agrees on. If
    fewer than `exact_from` persons have it, the scale is at least that of a value which becomes its
    nearest neighbour, or the next one that can be published, whichever is further; not divided by
    the number of records, which would leave the value where it is. Of other clusters of fewer than
    twice `exact_from` persons it is at least that of the next value that can be published.

    Guarantee
    ---------
    Scales only rise. A centroid that moves by d loses d/t at a scale of t, and less at a larger
    one; one that does not move loses nothing at any scale. So the sums over clusters that levels 1
    and 2 bound, of records and of units, only fall.
    """
    rounding = float(settings.rounding_steps)  # which may be beyond 64 bits
    apart = np.where(scales > 0, rounding, np.maximum(summary.nearest, rounding))
    least = np.minimum(np.ceil((apart + 1.0) / settings.epsilon_per_record), 2.0**62 + 2.0**61)
    units = summary.members.sizes if isinstance(summary, UnitSummary) else summary.size
    alone = (scales == 0) | (units < 2 * settings.enough)
    few = alone & (summary.persons < settings.enough)
    return np.where(few, np.maximum(scales, least.astype(np.int64)), scales)


def publish_centroids(
    summary: ClusterSummary,
    scales: Integers,
    settings: NumericSettings,
    words: WordSource,
    ends: Ends | None = WHOLE,
) -> Reals:
    """Mask the centroids of one attribute and return what is published of each cluster.

    Guarantee
    ---------
    Centroids move by whole grid steps, and discrete Laplace noise of scale t turns a move by d
    into a loss of d/t. `accounting.noise_scales` keeps the loss of the one cluster that moves
    (fixed clusters), or the sum over all that do (re-clustered), within ε; `UnitSummary.scales` the
    sum over all clusters that one unit moves. What follows (leaving the grid, isotonic regression,
    clamping, rounding) is post-processing.
    """
    centroids = settings.method.centroid(summary, 0)
    values = settings.grid.to_values(add_discrete_laplace(centroids, scales, words))
    if settings.post == "none":
        return publish(values, settings)
    if ends is None:
        return values
    values = regress(values, settings.grid.to_widths(scales), settings, ends)
    return publish(values, settings) if ends == WHOLE else values


def regress(values: Reals, scales: Reals, settings: NumericSettings, ends: Ends = WHOLE) -> Reals:
    """Put masked values of consecutive clusters back in order, as the attribute asks."""
    bounds = settings.published_lower, settings.published_upper
    if settings.post == "isotonic":
        return isotonic(values, scales, *bounds)
    return penalised_isotonic(values, scales, *bounds, ends=ends)


def publish(values: Reals, settings: NumericSettings) -> Reals:
    """Round values as the attribute asks and keep them within its domain and type."""
    if settings.kind == "integer":
        values = np.rint(values / settings.quantum) * settings.quantum
    elif settings.decimals is not None:
        exact = np.abs(values) < 2.0**53 / 10.0**settings.decimals  # beyond, doubles have no more
        values = np.where(exact, np.round(np.where(exact, values, 0), settings.decimals), values)
    return np.clip(values, settings.published_lower, settings.published_upper)


def _describe_numbers(
    summary: ClusterSummary, settings: NumericSettings, scales: Integers
) -> Description:
    grid, method = settings.grid, settings.method
    if isinstance(summary, UnitSummary):
        reach = summary.members.largest(summary.reach, len(summary))
    else:
        reach = method.calibration(summary, settings.domain_steps).largest
    trimmed = {}
    if isinstance(summary, TrimmedSummary | UnitSummary):
        trimmed = {"left_out": summary.left_out}
    return {
        "records": summary.size,
        **trimmed,
        "smallest": grid.to_values(summary.smallest),
        "largest": grid.to_values(summary.largest),
        "centroid": grid.to_values(method.centroid(summary, 0)),
        "sensitivity": grid.to_widths(reach / summary.averaged),
        "scale": grid.to_widths(scales),
        "shared_by": np.minimum(summary.persons, settings.counted_to),
        "unmoved": _unmoved(summary, settings, scales),
    }


def _unmoved(summary: ClusterSummary, settings: NumericSettings, scales: Integers) -> Reals:
    """Return the chance that a centroid is published as it would be without noise, about.

    Noise that is less than half the distance to the next value is rounded away, and at an end of
    the domain half of all noise is. What isotonic regression does to it is left out.
    """
    unscaled = np.divide(
        settings.rounding_steps / 2, scales, out=np.full(len(scales), np.inf), where=scales > 0
    )
    rounded = -np.expm1(-unscaled)
    values = settings.grid.to_values(settings.method.centroid(summary, 0))
    at_end = (values <= settings.published_lower) | (values >= settings.published_upper)
    unmoved: Reals = np.where(at_end, (1 + rounded) / 2, rounded)
    return unmoved


def _numeric_losses(summary: ClusterSummary, settings: NumericSettings, scales: Integers) -> Losses:
    if isinstance(summary, UnitSummary):
        fixed = summary.losses(scales)
        return Losses(fixed, np.zeros(0), np.zeros(0))
    case = settings.method, summary, settings.domain_steps, scales
    return Losses(fixed_losses(*case), *reclustered_losses(*case))


def _mask_categories(
    summary: CategorySummary, settings: CategorySettings, words: WordSource
) -> Masked:
    """Mask clusters of categories.

    The sensitivity is that of the scores: 0 where one record cannot change the representative.
    """
    as_is = released_as_is(summary, settings)
    scores = summary.scores(settings.kind)
    ordered = np.sort(scores, axis=1)
    labels = np.array([str(category) for category in settings.categories], dtype=object)
    spent = category_losses(summary, as_is, settings)
    shared_by = np.minimum(summary.persons[leaders(scores)], settings.counted_to)
    return Masked(
        representatives(summary, as_is, settings, words),
        {
            "records": summary.size,
            "sensitivity": np.where(as_is, 0.0, 1.0),
            "shared_by": shared_by,
            "category": labels[leaders(scores)],
            "lead": ordered[:, -1] - ordered[:, -2],
        },
        Losses(spent, spent, spent),
    )
