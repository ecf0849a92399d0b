"""microveil: protect a table of people before it is published."""

from microveil.audit import Audit, audit
from microveil.certificate import Certificate
from microveil.errors import DataError, FileError, MicroveilError, PlanError, PrivacyWarning
from microveil.plan import Confidential, Derived, Identifier, Kept, Plan
from microveil.protect import protect
from microveil.release import Detail, Release

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "Certificate",
    "Confidential",
    "DataError",
    "Derived",
    "Detail",
    "FileError",
    "Identifier",
    "Kept",
    "MicroveilError",
    "Plan",
    "PlanError",
    "PrivacyWarning",
    "Release",
    "__version__",
    "audit",
    "protect",
]
