"""The job of `microveil protect`: from where a table is to where its release goes."""

from pathlib import Path
from typing import Any, Literal, Protocol

from microveil.certificate import Certificate
from microveil.errors import PlanError
from microveil.formats import Source, Table, load
from microveil.large import column_names, is_columnwise, protect_file
from microveil.plan import Plan
from microveil.protect import Progress, protect
from microveil.release import Written, check_paths, release_paths

EngineName = Literal["memory", "spark"]


class Job(Protocol):
    """A table to be protected; nothing is read before it must be."""

    def columns(self, verbatim: list[str]) -> list[str]:
        """Return the names of the table's columns."""

    def run(
        self, plan: Plan, *, seed: int | None, progress: Progress | None
    ) -> tuple[Any, Certificate]:
        """Protect the table and write its release; return where to, and the certificate."""


def open_job(
    data: Source,
    output: str,
    *,
    engine: EngineName,
    master: str | None,
    detail: bool,
    keep_order: bool,
    overwrite: bool,
    report: Path | None = None,
) -> Job:
    """Check where a table is and where its release goes, before any work is done."""
    files: dict[str, Any] = {"detail": detail, "keep_order": keep_order, "overwrite": overwrite}
    if engine == "spark":
        if report is not None:
            raise PlanError("a report holds the whole table, which Spark does not; leave it out")
        return _OnSpark(data, output, master, files)
    if master is not None:
        raise PlanError('master is for Spark; give the engine "spark" as well')
    path = Path(output)
    check_paths(release_paths(path, detail=detail), overwrite=overwrite, source=data.path)
    if report is None and is_columnwise(data, path):  # a report holds the whole table
        return _Columnwise(data, path, files)
    return _InMemory(data, path, files, report)


class _InMemory:
    def __init__(
        self, data: Source, output: Path, files: dict[str, Any], report: Path | None
    ) -> None:
        self._data, self._output, self._files = data, output, files
        self._report = report
        self._table: Table | None = None

    def columns(self, verbatim: list[str]) -> list[str]:
        self._table = load(self._data, verbatim=verbatim)
        return list(self._table.data.columns)

    def run(
        self, plan: Plan, *, seed: int | None, progress: Progress | None
    ) -> tuple[Written, Certificate]:
        table = self._table or load(self._data, verbatim=plan.verbatim)
        release = protect(table, plan, seed=seed, progress=progress)
        written = release.write(self._output, **self._files)
        certificate = Certificate.read(written.certificate)  # with the file's name and hash
        if self._report is not None:
            from microveil.report import write_report

            overwrite = self._files["overwrite"]
            write_report(self._report, table, release, certificate=certificate, overwrite=overwrite)
        return written, certificate


class _Columnwise:
    def __init__(self, data: Source, output: Path, files: dict[str, Any]) -> None:
        self._data, self._output, self._files = data, output, files

    def columns(self, verbatim: list[str]) -> list[str]:  # noqa: ARG002 - names do not depend on it
        return column_names(self._data)

    def run(
        self, plan: Plan, *, seed: int | None, progress: Progress | None
    ) -> tuple[Written, Certificate]:
        return protect_file(
            self._data, plan, self._output, seed=seed, progress=progress, **self._files
        )


class _OnSpark:
    def __init__(
        self, data: Source, output: str, master: str | None, files: dict[str, Any]
    ) -> None:
        from microveil.engines.spark.session import open_table

        self._output, self._files = output, files
        self._table = open_table(
            str(data.location), output, master, detail=files["detail"], overwrite=files["overwrite"]
        )

    def columns(self, verbatim: list[str]) -> list[str]:  # noqa: ARG002 - Parquet has types
        return list(self._table.columns)

    def run(
        self, plan: Plan, *, seed: int | None, progress: Progress | None
    ) -> tuple[Any, Certificate]:
        release = protect(self._table, plan, seed=seed, progress=progress)
        return release.write(self._output, **self._files), release.certificate
