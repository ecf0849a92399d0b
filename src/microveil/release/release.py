"""A release: the protected table, its public certificate, and the private detail kept apart."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from microveil.engines.base import Released
from microveil.errors import FileError, PlanError
from microveil.formats import FORMATS, Domain, TableMeta, check_escaped, sha256_of
from microveil.plan.plan import Plan
from microveil.plan.roles import Bound
from microveil.release.assumptions import Assumption
from microveil.release.certificate import Certificate, Exposure, ExposureKind, ProtectedFile
from microveil.release.detail import Detail
from microveil.release.histories import ShownClasses
from microveil.release.key import Key
from microveil.release.ledger import Spending
from microveil.release.persistent import Joining, LastingRelease
from microveil.release.rule_outcomes import RuleOutcome
from microveil.release.store import Places, Store, places_of
from microveil.shown import Shown
from microveil.types import Integers, UserTable


def _unknown() -> None:
    """Nothing is known of its classes."""


@dataclass(frozen=True)
class Written(Places):
    """Where a release was written to, and its certificate, which names the protected file."""

    certified: Certificate = field(repr=False)
    rules: tuple[RuleOutcome, ...] = field(default=(), repr=False)
    threads: tuple[LastingRelease, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Release(Shown):
    """A protected table.

    Attributes
    ----------
    data
        The protected table, of the kind that came in. Its rows are in random order unless `protect`
        was told to keep the order, and the certificate says which; on Spark it is in a private
        scratch directory until Spark ends.
    certificate
        Public: plan facts and what they promise.
    detail
        Private: clusters, sensitivities, scales.
    plan
        What was done.
    rules
        Private: what became of each rule of the plan.
    assumed
        What was taken for granted, where no plan was given.
    warned
        What was warned of meanwhile, where no plan was given.
    original
        Private: the table that came in, as it was read, from which a notebook draws the release. It
        is None on Spark, and in a pickled copy.
    """

    rows: Released = field(repr=False)
    certificate: Certificate
    detail: Detail = field(repr=False)
    plan: Plan = field(repr=False)
    store: Store = field(repr=False)
    seed: int | None = field(default=None, repr=False)
    spending: Spending | None = field(default=None, repr=False)
    key: Key | None = field(default=None, repr=False)
    joined: Joining | None = field(default=None, repr=False)
    classes: Callable[[], ShownClasses | None] = field(default=_unknown, repr=False)
    rules: tuple[RuleOutcome, ...] = field(default=(), repr=False)
    assumed: tuple[Assumption, ...] = field(default=(), repr=False)
    warned: tuple[str, ...] = field(default=(), repr=False)
    original: UserTable | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Leave the original at home when a release is pickled or copied."""
        return {**self.__dict__, "original": None}

    @property
    def data(self) -> UserTable:
        """The protected table."""
        return self.rows.data

    def entered(self, spending: Spending | None) -> "Release":
        """Return the same release with what its ledger says on its certificate."""
        if spending is None:
            return self
        certificate = spending.settle(self.certificate, self.classes())
        return replace(self, certificate=certificate, spending=spending)

    def shuffled(self) -> "Release":
        """Return the same release with its rows in random order."""
        rows = self.rows.shuffled(self.seed)
        return replace(
            self,
            rows=rows,
            certificate=self.certificate.arranged(rows.row_order),
            detail=replace(self.detail, positions=rows.positions),
        )

    def write(
        self,
        path: str | Path,
        *,
        detail: bool = False,
        keep_order: bool = False,
        overwrite: bool = False,
        escape_formulas: bool = False,
    ) -> Written:
        """Write the protected table and its certificate, and the private detail if asked.

        Parameters
        ----------
        path
            A file ending in .csv, .parquet, .arrow, .feather, .xlsx, .sav or .dta. The certificate
            goes beside it, with the ending .certificate.json, and the detail with .detail.zip. On
            Spark a Parquet directory on any file system it writes to, and the detail is a
            directory that ends in .detail.
        detail
            Also write the private detail.
        keep_order
            Keep the records in their original order, instead of a random one.
        overwrite
            Replace files that exist.
        escape_formulas
            Put an apostrophe in front of text in a CSV file that a spreadsheet takes for a formula.
        """
        check_detail(self.plan, detail=detail)
        check_order(self.plan, keep_order=keep_order)
        places = self.store.places(path, detail=detail)
        self.store.check(places, overwrite=overwrite)
        if escape_formulas:
            check_escaped(places.protected)
        return self.write_to(places, keep_order=keep_order, escape_formulas=escape_formulas)

    def write_to(self, places: Places, *, keep_order: bool, escape_formulas: bool) -> Written:
        """Write to places that were checked before the work began."""
        if self.key is not None:
            self.key.check_apart(places.protected)
        if keep_order and self.joined is not None:
            raise PlanError("--joint needs rows in random order; leave --keep-order out")
        table, positions = self.rows.arranged(keep_order=keep_order, seed=self.seed)
        meta = replace(self.meta_of(positions), escape_formulas=escape_formulas)
        with self.store.moved_into_place(places.all) as temporary:
            protected, *private, public = temporary
            self.store.write_table(table, protected, meta)
            digest = self.store.digest(protected)
            file = ProtectedFile(name=Path(places.protected).name, sha256=digest)
            for place in private:
                own = replace(self.detail, positions=positions, protected_sha256=digest)
                self.store.write_detail(own, place)
            certificate = self._certificate_of(file, meta, keep_order=keep_order)
            self.store.write_text(certificate.to_json(), public)
            if self.spending is not None:
                self.spending.record(file)
        threads = () if self.joined is None else (self.joined.release,)
        return Written(
            places.protected, places.certificate, places.detail, certificate, self.rules, threads
        )

    def meta_of(self, positions: Integers | UserTable) -> TableMeta:
        """Say what a file of the released columns holds besides the values of these records."""
        if not isinstance(positions, np.ndarray):  # on Spark
            return self.store.meta
        masked = {
            name: Domain(
                _number(attribute.lower, -math.inf),
                _number(attribute.upper, math.inf),
                0 if attribute.kind == "integer" else attribute.decimals,
            )
            for name, attribute in self.plan.confidential.items()
            if not attribute.is_category
        }
        hidden = ("identifier", "pseudonym")  # labels could name people
        released = {name for name, a in self.plan.attributes.items() if a.role not in hidden}
        order = np.argsort(np.argsort(positions))
        codes = {name: codes.gather(order) for name, codes in self.rows.missing_codes.items()}
        return self.store.meta.of_release(
            codes, released=released, masked=masked, derived=self.plan.derived
        )

    def _certificate_of(
        self, file: ProtectedFile, meta: TableMeta, *, keep_order: bool
    ) -> Certificate:
        certificate = self.certificate.arranged(
            "as in the original" if keep_order else "random", file=file
        )
        written_as = FORMATS.get(Path(file.name).suffix.lower())
        if written_as is None or not written_as.labelled:
            return certificate
        codes = meta.codes if meta.family in written_as.codes_of else ()
        exposed = [*certificate.not_protected, *_exposed("labels", meta.labelled)]
        for kind, names in self._where_codes_are().items():
            exposed += _exposed(kind, [name for name in codes if name in names])
        return certificate.model_copy(update={"not_protected": tuple(exposed)})

    def _where_codes_are(self) -> dict[ExposureKind, set[str]]:
        """Sort attributes by what tells their missing codes."""
        plan = self.plan
        averaged = {
            name
            for group in plan.pooled_groups
            if group.pooling == "average"
            for name in group.attributes
        }
        masked = set(plan.confidential)
        return {
            "missing-codes": set(plan.attributes) - masked,
            "missing-codes-moved": masked - averaged,
            "missing-codes-averaged": averaged,
        }


def check_detail(plan: Plan, *, detail: bool) -> None:
    """Refuse a private detail of rows that belong to nobody."""
    if detail and plan.release == "synthetic":
        raise PlanError(
            "a synthetic release has no private detail, because its rows are those of no record; "
            "leave out detail (--detail)",
            setting="release",
        )


def check_order(plan: Plan, *, keep_order: bool) -> None:
    """Refuse to keep the order of records in rows that are those of none."""
    if keep_order and plan.release == "synthetic":
        raise PlanError(
            "synthetic rows are those of no record, so that there is no order to keep; leave out "
            "keep_order (--keep-order)",
            setting="release",
        )


def _exposed(kind: ExposureKind, names: Sequence[str]) -> tuple[Exposure, ...]:
    return (Exposure(kind=kind, attributes=tuple(names)),) if names else ()


def _number(bound: Bound | None, otherwise: float) -> float:
    return bound if isinstance(bound, int | float) else otherwise


def order_beside(protected: Path) -> tuple[Path | None, bool]:
    """Find what tells the order of rows beside a protected file: its detail, or its certificate."""
    paths = places_of(protected, detail=True)
    if paths.detail and paths.detail.is_file():
        return paths.detail, False
    if not paths.certificate.is_file():
        return None, False
    certificate = Certificate.read(paths.certificate)
    kept = certificate.file is not None and certificate.file.name == protected.name
    return None, kept and certificate.row_order == "as in the original"


def certificate_beside(protected: Path) -> Certificate | None:
    """Read the certificate beside a protected file, and refuse that of another release.

    A certificate that names a file of another name and content is none of this file.
    """
    beside = places_of(protected, detail=False).certificate
    if not beside.is_file() or not protected.exists():
        return None
    certificate = Certificate.read(beside)
    if certificate.file is None:
        return None
    if certificate.file.sha256 == sha256_of(protected):
        return certificate
    if certificate.file.name != protected.name:
        return None
    raise FileError(
        f"{protected}: not the file {beside.name} was written for: it was changed, or it belongs "
        "to another release; put the right file next to it, or protect again"
    )
