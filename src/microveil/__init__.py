"""microveil: protect a table of people before it is published.

Public names are imported when they are first used, so that the command line starts at once.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from microveil.evaluate.estimator import ProtectedEstimator
    from microveil.expected import ExpectedError, expected_error
    from microveil.explore import Exploration, explore
    from microveil.formats import Source
    from microveil.groups import Group
    from microveil.plan import Plan
    from microveil.protect import protect
    from microveil.release import Detail, Release
    from microveil.roles import Confidential, Derived, Identifier, Kept

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

_HOMES = {
    name: home
    for home, names in {
        "audit": ("Audit", "audit"),
        "certificate": ("Certificate",),
        "errors": (
            "DataError",
            "FileError",
            "FileWarning",
            "MicroveilError",
            "PlanError",
            "PrivacyWarning",
        ),
        "evaluate": ("Evaluation", "evaluate"),
        "evaluate.estimator": ("ProtectedEstimator",),
        "expected": ("ExpectedError", "expected_error"),
        "explore": ("Exploration", "explore"),
        "formats": ("Source",),
        "groups": ("Group",),
        "plan": ("Plan",),
        "protect": ("protect",),
        "release": ("Detail", "Release"),
        "roles": ("Confidential", "Derived", "Identifier", "Kept"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> object:
    """Import a public name from the module it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `microveil.audit` and the like the functions, not the modules of the same names."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
