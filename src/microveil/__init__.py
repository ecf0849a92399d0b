"""microveil: protect a table of people before it is published.

Public names are imported when they are first used, so that the command line starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from microveil.auditing import Audit, audit
    from microveil.benchmarking import Benchmark, benchmark
    from microveil.errors import (
        DataError,
        FileError,
        FileWarning,
        MicroveilError,
        PlanError,
        PrivacyWarning,
        UsefulnessWarning,
    )
    from microveil.evaluation import Evaluation, evaluate
    from microveil.evaluation.classical import risk
    from microveil.evaluation.classical_result import Risk
    from microveil.evaluation.estimator import ProtectedEstimator
    from microveil.evaluation.expected import ExpectedError, expected_error
    from microveil.evaluation.verdict import Verdict, verdict
    from microveil.exploration import Exploration, explore
    from microveil.formats import Source
    from microveil.plan import (
        Confidential,
        Derived,
        Group,
        Identifier,
        Kept,
        Plan,
        Pseudonym,
        Scenario,
        Shifted,
        Weight,
    )
    from microveil.release.certificate import Certificate
    from microveil.release.check import check
    from microveil.release.detail import Detail
    from microveil.release.protect import protect
    from microveil.release.protect_file import protect_file
    from microveil.release.release import Release

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Benchmark",
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
    "Pseudonym",
    "Release",
    "Risk",
    "Scenario",
    "Shifted",
    "Source",
    "UsefulnessWarning",
    "Verdict",
    "Weight",
    "__version__",
    "audit",
    "benchmark",
    "check",
    "evaluate",
    "expected_error",
    "explore",
    "protect",
    "protect_file",
    "risk",
    "verdict",
]

_HOMES = {
    name: home
    for home, names in {
        "auditing": ("Audit", "audit"),
        "benchmarking": ("Benchmark", "benchmark"),
        "errors": (
            "DataError",
            "FileError",
            "FileWarning",
            "MicroveilError",
            "PlanError",
            "PrivacyWarning",
            "UsefulnessWarning",
        ),
        "evaluation": ("Evaluation", "evaluate"),
        "evaluation.classical": ("risk",),
        "evaluation.classical_result": ("Risk",),
        "evaluation.estimator": ("ProtectedEstimator",),
        "evaluation.expected": ("ExpectedError", "expected_error"),
        "evaluation.verdict": ("Verdict", "verdict"),
        "exploration": ("Exploration", "explore"),
        "formats": ("Source",),
        "plan": (
            "Confidential",
            "Derived",
            "Group",
            "Identifier",
            "Kept",
            "Plan",
            "Pseudonym",
            "Scenario",
            "Shifted",
            "Weight",
        ),
        "release.certificate": ("Certificate",),
        "release.check": ("check",),
        "release.detail": ("Detail",),
        "release.protect": ("protect",),
        "release.protect_file": ("protect_file",),
        "release.release": ("Release",),
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
