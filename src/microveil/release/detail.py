"""The private detail: what only the data holder may know about a release."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from microveil.errors import FileError
from microveil.formats import Source, check_regular
from microveil.plan.plan import Plan
from microveil.release import detail_checks as checks
from microveil.types import UserTable

_TABLES = ("clusters.parquet", "losses.parquet", "rows.parquet", "joint.parquet")
_RULES, _TEXTS = "rules.parquet", ("about.json", "plan.toml")
_UNREADABLE = (
    OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error,
    RuntimeError,  # that it is encrypted
    pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Detail:
    """What only the data holder may know: functions of the data that ε does not cover.

    Attributes
    ----------
    clusters
        One row per cluster: attribute, cluster, records, how many are left out at each end where
        clusters are trimmed, smallest, largest, centroid, sensitivity, scale. An attribute masked
        by DP, which forms no clusters, has one row. On Spark this is a Spark DataFrame, of a file
        larger than memory a lazy one.
    losses
        One row per attribute: epsilon per record, and the exact loss of this table when one
        record changes, with fixed clusters and re-clustered.
    positions
        For every released record its position in the original table. On Spark, which keeps no
        order of rows, a Spark DataFrame with the number of every record and fingerprints of what
        it was, `original`, and what it is, `released`.
    joint
        For every group that was pooled, by the names of its attributes, the joint cluster of each
        record, in the order of the original; on Spark a Spark DataFrame of records by their number
        in the table, with block and joint cluster.
    rules
        What became of each rule of the plan: how many records broke it in the original, once they
        were masked, and in the release; None if the plan has no rules.
    plan, protected_sha256
        Of a detail read from a file: what was done, and the protected file it belongs to.
    """

    clusters: UserTable
    losses: pl.DataFrame
    positions: UserTable | None = None
    plan: Plan | None = None
    protected_sha256: str | None = None
    joint: Mapping[str, Any] = field(default_factory=dict)
    rules: pl.DataFrame | None = None

    def about(self) -> str:
        """Say as JSON what a detail is, and which protected file it belongs to."""
        about = {"private": "do not publish", "protected_sha256": self.protected_sha256}
        return json.dumps(about, indent=2)

    @property
    def plan_text(self) -> str:
        """The plan as TOML."""
        return "" if self.plan is None else self.plan.to_toml()

    def write(self, path: Path) -> None:
        """Write one zip file of Parquet tables with plan.toml and about.json."""
        path.touch(mode=0o600)  # private
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("about.json", self.about())
            archive.writestr("plan.toml", self.plan_text)
            rows = pl.DataFrame({"position": self.positions}).lazy()
            joint = pl.DataFrame(dict(self.joint)).lazy()
            tables = (self.clusters.lazy(), self.losses.lazy(), rows, joint)
            for name, table in zip(_TABLES, tables, strict=True):
                with archive.open(name, "w", force_zip64=True) as entry:
                    table.sink_parquet(entry)
            if self.rules is not None:
                with archive.open(_RULES, "w") as entry:
                    self.rules.write_parquet(entry)

    @classmethod
    def read(cls, path: str | Path, scratch: Path | None = None) -> "Detail":
        """Read a private detail; with a scratch directory clusters are unpacked there, and lazy."""
        try:
            check_regular(Path(path))
            with zipfile.ZipFile(path) as archive:
                return cls._from_archive(archive, scratch)
        except _UNREADABLE:
            raise FileError(
                f"{path}: not a readable private detail, or it needs more memory than there is; "
                "use the one written with the release"
            ) from None

    @classmethod
    def _from_archive(cls, archive: zipfile.ZipFile, scratch: Path | None) -> "Detail":
        checks.check_entries(archive, _TEXTS)
        plan = Plan.from_toml(archive.read("plan.toml").decode())
        digest = checks.digest_of(archive.read("about.json"))
        tables = [name for name in archive.namelist() if name.endswith(".parquet")]
        clusters: UserTable
        if scratch is None:
            checks.try_tables(Source(str(archive.filename)), tables)
            clusters = checks.read_part(archive, _TABLES[0])
        else:
            checks.try_tables(Source(str(archive.filename)), [n for n in tables if n != _TABLES[0]])
            clusters = checks.unpacked_part(archive, _TABLES[0], scratch)
        losses, rows, joint = (checks.read_part(archive, name) for name in _TABLES[1:])
        rules = checks.read_part(archive, _RULES) if _RULES in archive.namelist() else None
        checks.check_description(clusters.lazy(), plan)
        checks.check_losses(losses, plan)
        checks.check_rows(rows, joint, plan)
        checks.check_outcomes(rules, plan)
        groups = {group.name: group.to_numpy() for group in joint}
        return cls(clusters, losses, rows["position"].to_numpy(), plan, digest, groups, rules)
