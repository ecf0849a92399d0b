"""microveil: protect a table of people before it is published.

Public names are imported when they are first used, so that the command line starts at once.
`ProtectedEstimator` needs `microveil[learning]`, so `from microveil import *` leaves it out.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from microveil.shown import Screen, screens_by

if TYPE_CHECKING:
    from microveil.errors import (
        DataError,
        FileError,
        FileWarning,
        MicroveilError,
        PlanError,
        PrivacyWarning,
        RiskError,
        UsefulnessWarning,
    )
    from microveil.formats import Source
    from microveil.judge.evaluated import Evaluation
    from microveil.judge.evaluation import evaluate
    from microveil.judge.explore import Exploration, explore
    from microveil.judge.verdict import Verdict, verdict
    from microveil.lab.audit import Audit, audit
    from microveil.lab.audit.replayed import Replay, replay
    from microveil.lab.benchmark import Benchmark, benchmark
    from microveil.measures.classical import risk
    from microveil.measures.classical_result import Risk
    from microveil.measures.expected_error import ExpectedError, expected_error
    from microveil.plan.groups import Group
    from microveil.plan.plan import Plan
    from microveil.plan.roles import (
        Confidential,
        Derived,
        Identifier,
        Kept,
        Pseudonym,
        SamplingWeight,
        Shifted,
    )
    from microveil.plan.scenarios import Scenario
    from microveil.plan.uses import Use
    from microveil.release.certificate import Certificate
    from microveil.release.detail import Detail
    from microveil.release.dry_run import check
    from microveil.release.estimator import ProtectedEstimator as ProtectedEstimator
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
    "Pseudonym",
    "Release",
    "Replay",
    "Risk",
    "RiskError",
    "SamplingWeight",
    "Scenario",
    "Shifted",
    "Source",
    "Use",
    "UsefulnessWarning",
    "Verdict",
    "__version__",
    "audit",
    "benchmark",
    "check",
    "evaluate",
    "expected_error",
    "explore",
    "protect",
    "protect_file",
    "replay",
    "risk",
    "verdict",
]

_HOMES = {
    name: home
    for home, names in {
        "lab.audit": ("Audit", "audit"),
        "lab.audit.replayed": ("Replay", "replay"),
        "lab.benchmark": ("Benchmark", "benchmark"),
        "errors": (
            "DataError",
            "FileError",
            "FileWarning",
            "MicroveilError",
            "PlanError",
            "PrivacyWarning",
            "RiskError",
            "UsefulnessWarning",
        ),
        "judge.evaluated": ("Evaluation",),
        "judge.evaluation": ("evaluate",),
        "measures.classical": ("risk",),
        "measures.classical_result": ("Risk",),
        "release.estimator": ("ProtectedEstimator",),
        "measures.expected_error": ("ExpectedError", "expected_error"),
        "judge.verdict": ("Verdict", "verdict"),
        "judge.explore": ("Exploration", "explore"),
        "formats": ("Source",),
        "plan.groups": ("Group",),
        "plan.plan": ("Plan",),
        "plan.roles": (
            "Confidential",
            "Derived",
            "Identifier",
            "Kept",
            "Pseudonym",
            "SamplingWeight",
            "Shifted",
        ),
        "plan.scenarios": ("Scenario",),
        "plan.uses": ("Use",),
        "release.certificate": ("Certificate",),
        "release.dry_run": ("check",),
        "release.detail": ("Detail",),
        "release.protect": ("protect",),
        "release.protect_file": ("protect_file",),
        "release.release": ("Release",),
    }.items()
    for name in names
}

_SCREENS = {
    "Audit": "lab.audit.audit_words",
    "Benchmark": "lab.benchmark.benchmark_words",
    "Certificate": "show.certificates",
    "Evaluation": "show.evaluations",
    "Exploration": "show.explorations",
    "Plan": "show.plans",
    "Release": "show.releases",
    "Replay": "lab.audit.replay_words",
    "Risk": "show.risks",
    "Verdict": "show.verdicts",
}
"""Where the screen of each result is made: by a function named after it, as `plan_screen`."""


def _screen_of(result: object) -> Screen:
    name = type(result).__name__
    module = import_module(f"{__name__}.{_SCREENS[name]}")
    screen: Screen = getattr(module, f"{name.lower()}_screen")(result)
    return screen


screens_by(_screen_of)


def __getattr__(name: str) -> object:
    """Import a public name from the module it lives in."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted((*_HOMES, "__version__"))
