"""What ε covers at three levels, and on which conditions: facts, which `show` puts into words."""

from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, Context
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from microveil.core.accounting import reclustered_bound
from microveil.core.attribute import AttributeSettings, CategorySettings
from microveil.core.methods import GUARANTEES
from microveil.release.notes import Many, shares_clusters
from microveil.release.resolve import ResolvedPlan

ConditionKind = Literal[
    # what is held fixed, or the same in neighbouring tables
    "clusters-fixed", "joint-clusters-fixed", "noise-scales-fixed", "before-pooling",
    "same-values-missing", "same-strata",
    # what a bound does not cover, since it was read from the data
    "observed-range-only", "observed-categories-only", "noise-grid-unchanged",
    # why there is no bound
    "re-clustering-only", "one-record-per-cluster", "no-differential-privacy", "clusters-from-data",
    "clusters-of-units",
    # what the released table shows, and what its theorem assumes
    "no-clusters", "shared-values-visible", "category-visible", "rows-in-random-order",
    "kept-can-identify", "shifted-can-identify", "masked-can-identify", "persons-linked",
    "units-linked", "threads-last", "groups-apart",
    # of synthetic rows
    "synthetic-rows",
]  # fmt: skip


class Condition(BaseModel):
    """What a level holds for, or why it has no bound."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: ConditionKind
    attributes: Annotated[
        Many[str], Field(description="that it is about; none: it is about the release")
    ] = ()


class Level(BaseModel):
    """One of the three things ε may be asked to cover."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    level: Literal[1, 2, 3]
    name: Literal["fixed clusters", "re-clustered", "as released"]
    enforced: Annotated[bool, Field(description="whether epsilon was enforced at this level")]
    epsilon: Annotated[float | None, Field(description="bound on the loss; null: no bound")]
    conditions: Many[Condition]
    delta: Annotated[
        float, Field(description="probability with which a synthetic release may lose more")
    ] = 0.0

    def about(self, kind: ConditionKind) -> tuple[str, ...]:
        """Return the attributes that a condition is about; none if it is not made."""
        return next((one.attributes for one in self.conditions if one.kind == kind), ())

    def has(self, kind: ConditionKind) -> bool:
        """Whether a condition is made."""
        return any(one.kind == kind for one in self.conditions)


def three_levels(resolved: ResolvedPlan) -> tuple[Level, Level, Level]:
    """Return what the release promises at each level."""
    return _fixed_clusters(resolved), _re_clustered(resolved), _as_released(resolved)


def claim_is_void(settings: AttributeSettings) -> bool:
    """Whether an attribute can claim no differential privacy, since it was read from the data."""
    if settings.method.promise.survives_data:
        return False
    read = settings.domain_source == "data" or settings.k_from_data
    if isinstance(settings, CategorySettings):
        return read
    return read or settings.grid_source == "data" or settings.type_from_data


def level_1_bound(settings: AttributeSettings) -> float | None:
    """Bound an attribute's loss with fixed clusters, without looking at the data."""
    if claim_is_void(settings) or _covers_reclustering_only(settings):
        return None
    return None if shares_clusters(settings) else settings.epsilon


def level_2_bound(settings: AttributeSettings) -> float | None:
    """Bound an attribute's re-clustered loss, without looking at the data."""
    if claim_is_void(settings) or settings.chosen_from_data or settings.by_unit:
        return None
    if settings.guarantee == "re-clustered":
        return settings.epsilon
    if isinstance(settings, CategorySettings):
        return settings.epsilon * (settings.most_changing if settings.method.clustered else 1)
    if shares_clusters(settings):
        return None
    return reclustered_bound(
        settings.method, settings.epsilon, clusters=settings.clusters, records=settings.records
    )


def can_be_without_noise(settings: AttributeSettings) -> bool:
    """Whether a cluster whose records agree so much that none moves it may go without noise."""
    if isinstance(settings, CategorySettings):
        return settings.method.promise.publishes_agreement
    return settings.guarantee in settings.method.without_noise


def rounded_up(bound: float) -> str:
    """Write a bound with six digits, never below what `exactly` writes.

    Examples
    --------
    >>> rounded_up(1 / 3), rounded_up(108.0), rounded_up(1.000000001), rounded_up(0.1)
    ('0.333334', '108', '1.00001', '0.1')
    """
    digits = Context(prec=6, rounding=ROUND_CEILING).create_decimal(exactly(float(bound)))
    return f"{digits.normalize():f}"


def _fixed_clusters(resolved: ResolvedPlan) -> Level:
    clustered, reasons = _is_clustered(resolved), _reasons(resolved)
    return Level(
        level=1,
        name="fixed clusters",
        enforced=not reasons and (_enforced_level(resolved) == 1 or not clustered),
        epsilon=None if reasons else resolved.plan.epsilon,
        conditions=reasons
        or (
            *_where(resolved, "clusters-fixed", lambda m: m.method.clustered),
            *_joint_clusters(resolved),
            *_common(resolved),
        ),
    )


def _reasons(resolved: ResolvedPlan) -> tuple[Condition, ...]:
    """Say which attributes have no bound with fixed clusters, and why; empty if all have one."""
    return (
        *_where(resolved, "re-clustering-only", _covers_reclustering_only),
        *_where(resolved, "one-record-per-cluster", shares_clusters),
        *_where(resolved, "no-differential-privacy", claim_is_void),
    )


def _re_clustered(resolved: ResolvedPlan) -> Level:
    clustered = _is_clustered(resolved)
    bounds = [level_2_bound(m) for m in resolved.attributes]
    known = [bound for bound in bounds if bound is not None]
    total = sum(known) if len(known) == len(bounds) else None
    enforced = total is not None and (_enforced_level(resolved) == 2 or not clustered)
    return Level(
        level=2,
        name="re-clustered",
        enforced=enforced,
        epsilon=resolved.plan.epsilon if enforced else total,
        conditions=_when_re_clustered(resolved) if clustered else (Condition(kind="no-clusters"),),
    )


def _when_re_clustered(resolved: ResolvedPlan) -> tuple[Condition, ...]:
    pooled = (Condition(kind="before-pooling"),) if resolved.pools else ()
    covered = resolved.plan.guarantee == "re-clustered"
    return (
        *pooled,
        *_common(resolved),
        *_where(resolved, "clusters-from-data", lambda m: m.chosen_from_data),
        *_where(resolved, "clusters-of-units", lambda m: m.by_unit and not m.chosen_from_data),
        *_where(resolved, "one-record-per-cluster", lambda m: not covered and shares_clusters(m)),
        *_where(resolved, "no-differential-privacy", claim_is_void),
    )


def _common(resolved: ResolvedPlan) -> tuple[Condition, ...]:
    """Return what every bound holds fixed, and what none covers."""
    plan, numeric = resolved.plan, resolved.numeric
    missing = (Condition(kind="same-values-missing"),) if plan.missing != "error" else ()
    strata = (Condition(kind="same-strata", attributes=plan.within),) if plan.within else ()
    ranges = [m for m in numeric if m.domain_source == "data"]
    grids = [m for m in numeric if m.grid_source == "data" and m.domain_source != "data"]
    categories = [m for m in resolved.categorical if m.domain_source == "data"]
    return (
        *_where(resolved, "noise-scales-fixed", lambda m: m.method.promise.fixes_scales),
        *missing,
        *strata,
        *_of("observed-range-only", ranges),
        *_of("observed-categories-only", categories),
        *_of("noise-grid-unchanged", grids),
    )


def _joint_clusters(resolved: ResolvedPlan) -> tuple[Condition, ...]:
    """Name attributes whose joint clusters follow original values, and not masked ones."""
    names = [n for pool in resolved.pools if not pool.follows_masked_values for n in pool.names]
    return (Condition(kind="joint-clusters-fixed", attributes=tuple(names)),) if names else ()


def _as_released(resolved: ResolvedPlan) -> Level:
    pooled = {name for pool in resolved.pools for name in pool.names}
    if not _is_clustered(resolved):
        first = _fixed_clusters(resolved)
        conditions = (Condition(kind="no-clusters"), *_assumptions(resolved, pooled))
        changes = {"level": 3, "name": "as released", "conditions": conditions}
        return first.model_copy(update=changes)
    shown = [m for m in resolved.attributes if m.method.clustered and m.name not in pooled]
    conditions = (
        *_of("shared-values-visible", shown),
        *_of("category-visible", [m for m in shown if isinstance(m, CategorySettings)]),
        *_assumptions(resolved, pooled),
    )
    return Level(level=3, name="as released", enforced=False, epsilon=None, conditions=conditions)


def _assumptions(resolved: ResolvedPlan, pooled: set[str]) -> tuple[Condition, ...]:
    """Return what the theorem about pooling assumes, and which columns break its assumptions."""
    plan = resolved.plan
    if not resolved.pools:
        return ()
    people = plan.names("pseudonym")
    persons = [name for name in people if name != plan.unit]
    named: dict[ConditionKind, Iterable[str]] = {
        # strata are the same for all records of a joint cluster
        "kept-can-identify": [name for name in plan.kept if name not in plan.within],
        "shifted-can-identify": plan.shifted,
        "masked-can-identify": [m.name for m in resolved.attributes if m.name not in pooled],
        "persons-linked": persons,
        "units-linked": [] if persons else people,
    }
    found = [Condition(kind=kind, attributes=tuple(names)) for kind, names in named.items()]
    apart = (Condition(kind="groups-apart"),) if len(resolved.pools) > 1 else ()
    assumed = Condition(kind="rows-in-random-order")
    return (assumed, *(one for one in found if one.attributes), *apart)


def _where(
    resolved: ResolvedPlan, kind: ConditionKind, holds: Callable[[AttributeSettings], bool]
) -> tuple[Condition, ...]:
    return _of(kind, filter(holds, resolved.attributes))


def _of(kind: ConditionKind, attributes: Iterable[AttributeSettings]) -> tuple[Condition, ...]:
    names = tuple(settings.name for settings in attributes)
    return (Condition(kind=kind, attributes=names),) if names else ()


def _is_clustered(resolved: ResolvedPlan) -> bool:
    return any(settings.method.clustered for settings in resolved.attributes)


def _enforced_level(resolved: ResolvedPlan) -> int:
    return GUARANTEES[resolved.plan.guarantee].level


def _covers_reclustering_only(settings: AttributeSettings) -> bool:
    """Whether the noise follows the gaps between clusters, not the way across the domain."""
    if isinstance(settings, CategorySettings) or settings.guarantee == "fixed-clusters":
        return False
    return not settings.method.reclustered_covers_fixed


def exactly(number: float) -> str:
    """Write a number with as many digits as tell it from all others."""
    return repr(number).removesuffix(".0")
