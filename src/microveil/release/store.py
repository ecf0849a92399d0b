"""Where releases are written: one protocol, and the local file system; Spark has another."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from microveil.formats import TableMeta, check_output, moved_into_place, sha256_of, write_table
from microveil.release.detail import Detail
from microveil.types import UserTable

AnyPlace = Any
"""A `Path` on this machine; on Spark the address of a file or directory, as text."""


@dataclass(frozen=True)
class Places:
    """Where the parts of a release go."""

    protected: AnyPlace
    certificate: AnyPlace
    detail: AnyPlace | None

    @property
    def all(self) -> list[AnyPlace]:
        """Those that are written, the certificate last: it vouches for what lies beside it."""
        return [p for p in (self.protected, self.detail, self.certificate) if p is not None]


class Store(Protocol):
    """Writes the parts of a release; what is not whole is never moved into place."""

    @property
    def meta(self) -> TableMeta:
        """What the file that was read says besides its values."""

    def places(self, path: str | Path, *, detail: bool) -> Places:
        """Where a release written to this path goes."""

    def check(self, places: Places, *, overwrite: bool) -> None:
        """Refuse places that could not, or should not, be written, before any work is done."""

    def moved_into_place(
        self, places: Sequence[AnyPlace]
    ) -> AbstractContextManager[list[AnyPlace]]:
        """Give a temporary place for each; move all into place at the end, in turn, or none."""

    def write_table(self, data: UserTable, place: AnyPlace, meta: TableMeta) -> None:
        """Write the protected table."""

    def write_text(self, text: str, place: AnyPlace) -> None:
        """Write text."""

    def write_detail(self, detail: Detail, place: AnyPlace) -> None:
        """Write the private detail, readable by its owner only."""

    def digest(self, place: AnyPlace) -> str:
        """SHA-256 of what was written."""


@dataclass(frozen=True)
class LocalStore:
    """The file system of this machine."""

    meta: TableMeta = field(default_factory=TableMeta)

    def places(self, path: str | Path, *, detail: bool) -> Places:
        """Where a release written to this path goes."""
        return places_of(Path(path), detail=detail)

    def check(self, places: Places, *, overwrite: bool) -> None:
        """Refuse paths that could not, or should not, be written, before any work is done."""
        check_output(places.protected, overwrite=overwrite, source=self.meta.path)
        for path in places.all[1:]:
            check_output(path, overwrite=overwrite, source=self.meta.path, suffixes=(path.suffix,))

    def moved_into_place(self, places: Sequence[Path]) -> AbstractContextManager[list[Path]]:
        """Give a temporary path for each; move all into place at the end, in turn, or none."""
        return moved_into_place(list(places))

    def write_table(self, data: UserTable, place: Path, meta: TableMeta) -> None:
        """Write the protected table as what the path's ending says."""
        write_table(data, place, meta)

    def write_text(self, text: str, place: Path) -> None:
        """Write text in UTF-8."""
        place.write_text(text, encoding="utf-8")

    def write_detail(self, detail: Detail, place: Path) -> None:
        """Write the private detail, readable by its owner only."""
        detail.write(place)

    def digest(self, place: Path) -> str:
        """SHA-256 of a file."""
        return sha256_of(place)


def places_of(path: Path, *, detail: bool) -> Places:
    """Where a release written to this path goes."""
    return Places(
        protected=path,
        certificate=path.with_suffix(".certificate.json"),
        detail=path.with_suffix(".detail.zip") if detail else None,
    )
