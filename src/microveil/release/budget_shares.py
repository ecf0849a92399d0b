"""What sharing ε between many attributes does to each of them, warned of before it is done."""

import math

import numpy as np

from microveil.core.attribute import NumericSettings
from microveil.engines.base import OpenTable
from microveil.engines.local import LocalTable
from microveil.errors import UsefulnessWarning, warn
from microveil.release.resolve import ResolvedPlan

_MANY = 100
_SMALL = 0.1
_TRIED = 3


def warn_of_small_shares(resolved: ResolvedPlan, table: OpenTable) -> None:
    """Warn where so many attributes share ε that little of each is left."""
    attributes = resolved.attributes
    share = float(np.median([attribute.epsilon for attribute in attributes]))
    if len(attributes) < _MANY or share >= _SMALL:
        return
    errors = _expected_errors(resolved, table)
    off = (
        f": the expected error of a masked value is about {np.median(list(errors.values())):,.2g} "
        f"times its standard deviation ({', '.join(errors)})"
        if errors
        else ""
    )
    warn(
        f"epsilon = {resolved.plan.epsilon:g} is shared by {len(attributes):,} attributes, "
        f"{share:.2g} each{off}; mask fewer attributes, derive those that are sums of others, give "
        "the important ones a larger budget share, or raise epsilon",
        UsefulnessWarning,
    )


def _expected_errors(resolved: ResolvedPlan, table: OpenTable) -> dict[str, float]:
    """Return the expected error of some attributes, in their standard deviations."""
    if not isinstance(table, LocalTable):  # on Spark it would take a job for each
        return {}
    numeric, prepared = resolved.numeric, table.prepared(resolved.preparation)
    tried = numeric[:: max(1, len(numeric) // _TRIED)][:_TRIED]
    return {attribute.name: _error(attribute, prepared) for attribute in tried}


def _error(attribute: NumericSettings, table: LocalTable) -> float:
    """Return the root of the expected mean square of an attribute, in its standard deviations."""
    squares, steps = sum(table.expected_squares(attribute, clamped=True)), table.steps(attribute)
    spread = float(np.var(steps, ddof=1)) * len(steps)
    return math.sqrt(squares / spread) if spread else 0.0
