"""What an audit found: figures, and the attributes they are of."""

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from microveil.lab.audit.as_run import AsRun
from microveil.lab.audit.checks import Check
from microveil.lab.audit.fixed_scales import Finding
from microveil.lab.audit.released import Narrowed, Pinned
from microveil.shown import Shown


@dataclass(frozen=True, repr=False)
class Audit(Shown):
    """The outcome of an audit. It is computed from the original data: keep it private.

    The probability of a false alarm is at most 5%, as far as the large-sample p-values of the
    checks hold: half for all lower bounds together, half for all checks.

    Attributes
    ----------
    runs, releases
        Number of runs of the mechanism on each table, and of whole releases.
    findings
        What attacks on the mechanism found, with fixed noise scales.
    as_run
        What attacks on releases of the table and of a neighbour found, noise scales recomputed.
    checks
        The flaws that releases were searched for.
    off_grid
        Attributes published with bits below the noise grid.
    doubt
        The largest probability that a lower bound is too high; 2.5% for all of them together.
    released, narrowed
        What an attacker who knows all other records learns about numbers and categories.
    pooled
        Attributes that the plan pools; their masked values were attacked before pooling.
    """

    runs: int
    releases: int
    findings: tuple[Finding, ...]
    as_run: tuple[AsRun, ...]
    checks: tuple[Check, ...]
    off_grid: tuple[str, ...]
    doubt: float
    released: tuple[Pinned, ...] = ()
    narrowed: tuple[Narrowed, ...] = ()
    pooled: tuple[str, ...] = ()

    @property
    def broken(self) -> bool:
        """Whether a loss exceeds its bound, or releases show a flaw."""
        found = [one.broken for part in (self.findings, self.as_run, self.checks) for one in part]
        return bool(self.off_grid) or any(found)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def to_frame(self) -> pl.DataFrame:
        """Return one row per attack on the mechanism."""
        return pl.DataFrame([asdict(f) | {"broken": f.broken} for f in self.findings])
