"""microveil: protect a table of people before it is published."""

import typing

from microveil.audit import Audit, audit
from microveil.certificate import Certificate
from microveil.errors import (
    DataError,
    FileError,
    FileWarning,
    MicroveilError,
    PlanError,
    PrivacyWarning,
)
from microveil.evaluate import Evaluation, evaluate
from microveil.expected import ExpectedError, expected_error
from microveil.explore import Exploration, explore
from microveil.formats import Source
from microveil.groups import Group
from microveil.plan import Plan
from microveil.protect import protect
from microveil.release import Detail, Release
from microveil.roles import Confidential, Derived, Identifier, Kept

if typing.TYPE_CHECKING:
    from microveil.evaluate.estimator import ProtectedEstimator

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Certificate",
    "Confidential",
    "DataError",
    "Derived",
    "Detail",
    "Evaluation",
    "ExpectedError",
    "Exploration",
    "FileError",
    "FileWarning",
    "Group",
    "Identifier",
    "Kept",
    "MicroveilError",
    "Plan",
    "PlanError",
    "PrivacyWarning",
    "ProtectedEstimator",
    "Release",
    "Source",
    "__version__",
    "audit",
    "evaluate",
    "expected_error",
    "explore",
    "protect",
]


def __getattr__(name: str) -> object:
    """Import what needs scikit-learn only when it is asked for."""
    if name == "ProtectedEstimator":
        from microveil.evaluate.estimator import ProtectedEstimator

        return ProtectedEstimator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
