"""What sharing ε between many attributes does to each of them, said before it is done."""

import math

import numpy as np

from microveil.core.attribute import NumericSettings
from microveil.engines.base import Engine
from microveil.engines.memory import MemoryEngine
from microveil.errors import UsefulnessWarning, warn
from microveil.release.resolve import ResolvedPlan

_MANY = 100
_SMALL = 0.1
_TRIED = 3


def warn_of_small_shares(resolved: ResolvedPlan, engine: Engine) -> None:
    """Warn where so many attributes share ε that little of each is left."""
    attributes = resolved.attributes
    share = float(np.median([attribute.epsilon for attribute in attributes]))
    if len(attributes) < _MANY or share >= _SMALL:
        return
    warn(
        f"epsilon = {resolved.plan.epsilon:g} is shared by {len(attributes):,} attributes, "
        f"{share:.2g} each{_expected(resolved.numeric, engine)}; mask fewer attributes, make sums "
        "of others derived, or give those that matter more weight or a larger epsilon",
        UsefulnessWarning,
    )


def _expected(numeric: tuple[NumericSettings, ...], engine: Engine) -> str:
    """Say how far off masked values of some attributes are expected to be."""
    tried = numeric[:: max(1, len(numeric) // _TRIED)][:_TRIED]
    if not tried or not isinstance(engine, MemoryEngine):  # on Spark it would take a job for each
        return ""
    errors = [_error(attribute, engine) for attribute in tried]
    names = ", ".join(attribute.name for attribute in tried)
    off = float(np.median(errors))
    return (
        f": a masked value is expected to be off by about {off:,.2g} standard deviations ({names})"
    )


def _error(attribute: NumericSettings, engine: MemoryEngine) -> float:
    """Return the root of the expected mean square of an attribute, in its standard deviations."""
    squares, units = sum(engine.expected_squares(attribute, clamped=True)), engine.units(attribute)
    spread = float(np.var(units, ddof=1)) * len(units)
    return math.sqrt(squares / spread) if spread else 0.0
