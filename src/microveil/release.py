"""A release: the protected table, its public certificate, and the private detail kept apart."""

import json
import math
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl

from microveil.certificate import Certificate, ProtectedFile
from microveil.errors import FileError
from microveil.formats import (
    FORMATS,
    Domain,
    TableMeta,
    check_output,
    moved_into_place,
    sha256_of,
    write_table,
)
from microveil.grid import Integers
from microveil.noise import open_words, random_order
from microveil.plan import Plan
from microveil.roles import Bound

_TABLES = ("clusters.parquet", "losses.parquet", "rows.parquet")


@dataclass(frozen=True, eq=False)
class Detail:
    """What the data holder may know and nobody else: functions of the data that ε does not cover.

    Attributes
    ----------
    clusters
        One row per cluster: attribute, cluster, records, smallest, largest, centroid, sensitivity,
        scale. An attribute masked by DP, which forms no clusters, has one row.
    losses
        One row per attribute: epsilon per record, and the exact loss of this table when one
        record changes, with clusters held and with clusters formed again.
    positions
        For every released record its position in the original table.
    plan, protected_sha256
        Of a detail read from a file: what was done, and the protected file it belongs to.
    """

    clusters: pl.DataFrame
    losses: pl.DataFrame
    positions: Integers
    plan: Plan | None = None
    protected_sha256: str | None = None

    def write(
        self,
        path: Path,
        *,
        plan: Plan,
        protected_sha256: str,
        clusters: pl.LazyFrame | None = None,
    ) -> None:
        """Write one zip file of Parquet tables with plan.toml and about.json.

        Clusters that are too many to be held in memory can be given.
        """
        about = {"private": "do not publish", "protected_sha256": protected_sha256}
        path.touch(mode=0o600)  # private
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("about.json", json.dumps(about, indent=2))
            archive.writestr("plan.toml", plan.to_toml())
            rows = pl.DataFrame({"position": self.positions}).lazy()
            described = self.clusters.lazy() if clusters is None else clusters
            tables = (described, self.losses.lazy(), rows)
            for name, table in zip(_TABLES, tables, strict=True):
                with archive.open(name, "w", force_zip64=True) as entry:
                    table.sink_parquet(entry)

    @classmethod
    def read(cls, path: str | Path) -> "Detail":
        """Read a detail file."""
        try:
            with zipfile.ZipFile(path) as archive:
                clusters, losses, rows = (pl.read_parquet(archive.read(name)) for name in _TABLES)
                plan = Plan.from_toml(archive.read("plan.toml").decode())
                protected_sha256 = json.loads(archive.read("about.json"))["protected_sha256"]
        except (OSError, KeyError, ValueError, zipfile.BadZipFile, pl.exceptions.PolarsError):
            raise FileError(f"{path}: not a detail file that can be read") from None
        return cls(clusters, losses, rows["position"].to_numpy(), plan, protected_sha256)


@dataclass(frozen=True)
class Written:
    """The files a release was written to."""

    protected: Path
    certificate: Path
    detail: Path | None


@dataclass(frozen=True, eq=False)
class Release:
    """A protected table.

    Attributes
    ----------
    data
        The protected table, of the kind that came in, in the order that came in.
    certificate
        Public: plan facts and what they promise.
    detail
        Private: clusters, sensitivities, scales.
    plan
        What was done.
    meta
        What the file that was read says besides its values: labels, declared missing values.
    """

    data: Any
    certificate: Certificate
    detail: Detail = field(repr=False)
    plan: Plan = field(repr=False)
    meta: TableMeta = field(default_factory=TableMeta, repr=False)
    seed: int | None = field(default=None, repr=False)

    def write(
        self,
        path: str | Path,
        *,
        detail: bool = False,
        keep_order: bool = False,
        overwrite: bool = False,
        clusters: pl.LazyFrame | None = None,
    ) -> Written:
        """Write the protected table and its certificate, and the private detail if asked.

        Parameters
        ----------
        path
            A file ending in .csv, .parquet, .arrow, .feather, .xlsx, .sav or .dta. The certificate
            goes beside it, with the ending .certificate.json, and the detail with .detail.zip.
        detail
            Also write the private detail.
        keep_order
            Keep the records in their original order, instead of a random one.
        overwrite
            Replace files that exist.
        clusters
            For the detail, if they are too many to be held in memory.
        """
        written = release_paths(path, detail=detail)
        check_paths(written, overwrite=overwrite, source=self.meta.path)
        targets = [written.protected, written.certificate]
        targets += [written.detail] if written.detail else []
        in_order = keep_order or isinstance(self.data, pl.LazyFrame)  # which was shuffled before
        order = None if in_order else self._random_order()
        positions = self.detail.positions if order is None else self.detail.positions[order]
        meta = self._meta_of(positions)
        with moved_into_place(targets) as temporary:
            write_table(_in_order(self.data, order), temporary[0], meta)
            file = ProtectedFile(
                name=written.protected.name,
                sha256=sha256_of(temporary[0]),
                row_order="as in the original" if keep_order else "random",
            )
            certificate = self._certificate_of(file, meta)
            temporary[1].write_text(certificate.to_json(), encoding="utf-8")
            if written.detail:
                replace(self.detail, positions=positions).write(
                    temporary[2],
                    plan=self.plan,
                    protected_sha256=file.sha256,
                    clusters=clusters,
                )
        return written

    def _meta_of(self, positions: Integers) -> TableMeta:
        """Take what the original file says of the released columns and records."""
        masked = {
            name: Domain(
                _number(attribute.lower, -math.inf),
                _number(attribute.upper, math.inf),
                0 if attribute.kind == "integer" else attribute.decimals,
            )
            for name, attribute in self.plan.confidential.items()
            if not attribute.is_category
        }
        released = {name for name, a in self.plan.attributes.items() if a.role != "identifier"}
        return self.meta.of_release(
            positions, released=released, masked=masked, derived=self.plan.derived
        )

    def _certificate_of(self, file: ProtectedFile, meta: TableMeta) -> Certificate:
        exposed = self.certificate.not_protected
        if file.row_order == "as in the original":
            exposed += ("The order of the rows: it is that of the original.",)
        if FORMATS[Path(file.name).suffix.lower()].labelled:
            exposed += meta.exposed
        return self.certificate.model_copy(update={"file": file, "not_protected": exposed})

    def _random_order(self) -> Integers:
        return random_order(self.certificate.records, open_words(self.seed, "row order"))


def _number(bound: Bound | None, otherwise: float) -> float:
    return bound if isinstance(bound, int | float) else otherwise


def check_paths(written: Written, *, overwrite: bool, source: Path | None) -> None:
    """Refuse paths that could not, or should not, be written, before any work is done."""
    check_output(written.protected, overwrite=overwrite, source=source)
    check_output(written.certificate, overwrite=overwrite, source=source, suffixes=(".json",))
    if written.detail:
        check_output(written.detail, overwrite=overwrite, source=source, suffixes=(".zip",))


def release_paths(path: str | Path, *, detail: bool) -> Written:
    """Where a release written to this path goes."""
    path = Path(path)
    return Written(
        protected=path,
        certificate=path.with_suffix(".certificate.json"),
        detail=path.with_suffix(".detail.zip") if detail else None,
    )


def order_beside(protected: Path) -> tuple[Path | None, bool]:
    """Find what tells the order of rows beside a protected file: its detail, or its certificate."""
    paths = release_paths(protected, detail=True)
    if paths.detail and paths.detail.is_file():
        return paths.detail, False
    if not paths.certificate.is_file():
        return None, False
    file = Certificate.read(paths.certificate).file
    kept = file is not None and file.name == protected.name
    return None, kept and file is not None and file.row_order == "as in the original"


def _in_order(data: Any, order: Integers | None) -> Any:  # noqa: ANN401 - the user's kind
    if order is None:
        return data
    shuffled = nw.from_native(data, eager_only=True)[order]
    return nw.maybe_reset_index(shuffled).to_native()  # a pandas index would tell the old order
