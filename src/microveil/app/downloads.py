"""The files of a release to download, as bytes."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from microveil.app.upload import private_folder, shortened
from microveil.errors import noted
from microveil.formats import LoadedTable
from microveil.judge.evaluated import Evaluation
from microveil.release.release import Release

HAS_REPORT = find_spec("vl_convert") is not None


class ReleaseFiles(NamedTuple):
    """Names and contents of the files of a release, and what they could not hold."""

    protected: tuple[str, bytes]
    certificate: tuple[str, bytes]
    detail: tuple[str, bytes]
    notes: list[str]


def release_files(release: Release, name: str, ending: str) -> ReleaseFiles:
    """Write a release as a file of this ending, with the certificate that belongs to it.

    Every call draws an order of rows of its own, so only files of one call belong together.
    """
    with private_folder() as folder:
        path = folder / f"{shortened(Path(name).stem)}-protected{ending}"
        with noted() as notes:
            written = release.write(path, detail=True)
        paths = (written.protected, written.certificate, path.with_suffix(".detail.zip"))
        protected, certificate, detail = ((p.name, p.read_bytes()) for p in paths)
    return ReleaseFiles(protected, certificate, detail, notes)


def report_of(original: LoadedTable, release: Release, evaluation: Evaluation) -> bytes:
    """Write the private report of a release that was evaluated."""
    with noted():
        page: str = import_module("microveil.show.report").report(
            original, release, evaluation=evaluation
        )
    return page.encode()
