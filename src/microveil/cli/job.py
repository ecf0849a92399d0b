"""The job of `microveil protect`: from where a table is to where its release goes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from microveil.cli.options import EngineName
from microveil.errors import MicroveilError, PlanError
from microveil.formats import LoadedTable, Source, TableMeta, check_values, load_table, write_text
from microveil.judge.verdict import Verdict, verdict
from microveil.plan.plan import Plan
from microveil.plan.problems import plan_from
from microveil.release.certificate import Certificate
from microveil.release.dry_run import plan_with
from microveil.release.ledger import given_back_on_failure
from microveil.release.protect import protect
from microveil.release.protect_file import column_names, is_columnwise, protect_file
from microveil.release.release import Release, Written
from microveil.release.store import LocalStore
from microveil.types import Progress, UserTable


@dataclass(frozen=True)
class Done:
    """Where a release was written to, and the verdict on it, or why there is none."""

    written: Written
    verdict: Verdict | str | None


class Job(Protocol):
    """A table to be protected; nothing is read before it must be."""

    def columns(self, verbatim: list[str]) -> list[str]:
        """Return the names of the table's columns."""

    def plan(self, settings: Mapping[str, Any]) -> Plan:
        """Make a plan of settings, or say everything that is wrong with them."""

    def run(
        self,
        plan: Plan,
        *,
        ledger: Path | None,
        key: Path | None,
        seed: int | None,
        judge: bool,
        progress: Progress | None,
    ) -> Done:
        """Protect the table, judge the release if asked, and write it."""


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
    if engine == "spark":
        return _OnSpark(data, output, master, detail, keep_order, overwrite, report)
    if master is not None:
        raise PlanError('master is for Spark; give the engine "spark" as well')
    path = Path(output)
    if is_columnwise(data, path):
        return _Columnwise(data, path, detail, keep_order, overwrite, report)
    return _InMemory(data, path, detail, keep_order, overwrite, report)


class _InMemory:
    def __init__(
        self,
        data: Source,
        output: Path,
        detail: bool,
        keep_order: bool,
        overwrite: bool,
        report: Path | None,
    ) -> None:
        store = LocalStore(TableMeta(data.path))
        self._places = store.places(output, detail=detail)
        store.check(self._places, overwrite=overwrite)
        self._data, self._keep_order = data, keep_order
        self._report = report
        self._table: LoadedTable | None = None

    def columns(self, verbatim: list[str]) -> list[str]:
        self._table = load_table(self._data, verbatim=verbatim)
        return list(self._table.data.columns)

    def plan(self, settings: Mapping[str, Any]) -> Plan:
        return plan_with(settings, self._data)

    def run(
        self,
        plan: Plan,
        *,
        ledger: Path | None,
        key: Path | None,
        seed: int | None,
        judge: bool,
        progress: Progress | None,
    ) -> Done:
        table = self._table or load_table(self._data, **plan.reading)
        released = [name for name, a in plan.attributes.items() if a.role != "identifier"]
        as_they_are = (*plan.kept, *plan.shifted)
        check_values(table.data, as_they_are, released, self._places.protected)
        release = protect(table, plan, ledger=ledger, key=key, seed=seed, progress=progress)
        with given_back_on_failure(release.spending):
            found = _judged(table, release, progress) if judge else None
            written = release.write_to(self._places, keep_order=self._keep_order)
        if self._report is not None:
            from microveil.show.report import report

            page = report(table, release, certificate=written.certified)
            write_text(self._report, page, private=True)
        return Done(written, found)


class _Columnwise:
    def __init__(
        self,
        data: Source,
        output: Path,
        detail: bool,
        keep_order: bool,
        overwrite: bool,
        report: Path | None,
    ) -> None:
        self._data, self._output, self._report = data, output, report
        self._detail, self._keep_order, self._overwrite = detail, keep_order, overwrite

    def columns(self, verbatim: list[str]) -> list[str]:  # noqa: ARG002 - Parquet has types
        self._data, names = column_names(self._data)
        return names

    def plan(self, settings: Mapping[str, Any]) -> Plan:
        return plan_from(Plan, settings)

    def run(
        self,
        plan: Plan,
        *,
        ledger: Path | None,
        key: Path | None,
        seed: int | None,
        judge: bool,
        progress: Progress | None,
    ) -> Done:
        found: list[Verdict | str] = []
        reports: list[Callable[[Certificate], None]] = []

        def look(original: UserTable, release: Release) -> None:
            if judge:
                found.append(_judged(original, release, progress))
            if self._report is not None:
                reports.append(_reporting(original, release, self._data, self._report, progress))

        written = protect_file(
            self._data,
            plan,
            self._output,
            detail=self._detail,
            keep_order=self._keep_order,
            overwrite=self._overwrite,
            ledger=ledger,
            key=key,
            seed=seed,
            progress=progress,
            look=look if judge or self._report is not None else None,
        )
        for write in reports:
            write(written.certified)
        return Done(written, found[0] if found else None)


class _OnSpark:
    def __init__(
        self,
        data: Source,
        output: str,
        master: str | None,
        detail: bool,
        keep_order: bool,
        overwrite: bool,
        report: Path | None,
    ) -> None:
        from microveil.engines.spark.connection import open_session, read_with_spark

        spark = open_session(master).newSession()  # whose settings are its own
        from microveil.engines.spark.scratch_files import SCRATCH, place
        from microveil.release.spark_store import SparkStore

        source = place(spark, str(data.location))
        store = SparkStore(spark, source)
        self._places, self._keep_order = store.places(output, detail=detail), keep_order
        store.check(self._places, overwrite=overwrite)
        if spark.conf.get(SCRATCH, None) is None:
            spark.conf.set(SCRATCH, self._places.protected.rpartition("/")[0] or ".")
        self._table = read_with_spark(spark, source)
        self._data, self._report = data, report

    def columns(self, verbatim: list[str]) -> list[str]:  # noqa: ARG002 - Parquet has types
        return list(self._table.columns)

    def plan(self, settings: Mapping[str, Any]) -> Plan:
        return plan_from(Plan, settings)

    def run(
        self,
        plan: Plan,
        *,
        ledger: Path | None,
        key: Path | None,
        seed: int | None,
        judge: bool,
        progress: Progress | None,
    ) -> Done:
        release = protect(self._table, plan, ledger=ledger, key=key, seed=seed, progress=progress)
        with given_back_on_failure(release.spending):
            found = _judged(self._table, release, progress) if judge else None
            written = release.write_to(self._places, keep_order=self._keep_order)
        if self._report is not None:
            write = _reporting(self._table, release, self._data, self._report, progress)
            write(written.certified)
        return Done(written, found)


def tables_on_spark(
    original: Source, protected: str, detail: str | None, master: str | None
) -> dict[str, Any]:
    """Open an original, its release and the private detail on Spark, for `evaluate`."""
    from microveil.engines.spark.connection import open_session, read_with_spark

    spark = open_session(master).newSession()
    from microveil.engines.spark.scratch_files import place
    from microveil.release.spark_store import SparkStore

    beside = SparkStore(spark).places(protected, detail=True).detail
    return {
        "original": read_with_spark(spark, place(spark, str(original.location))),
        "release": read_with_spark(spark, place(spark, protected)),
        "detail": detail or beside,
    }


def _reporting(
    original: UserTable, release: Release, data: Source, path: Path, progress: Progress | None
) -> Callable[[Certificate], None]:
    """Evaluate a release where records of it are drawn; return what writes its private report."""
    from microveil.judge.evaluation import evaluate
    from microveil.show.report import report

    evaluation = evaluate(original, release, progress=progress)

    def write(certificate: Certificate) -> None:
        page = report(data, release, evaluation=evaluation, certificate=certificate)
        write_text(path, page, private=True)

    return write


def _judged(original: UserTable, release: Release, progress: Progress | None) -> Verdict | str:
    """Judge a release; where that cannot be done, say why: it is released all the same."""
    if progress:
        progress("looking for people in the release", 0, 1)
    try:
        return verdict(original, release)
    except MicroveilError as error:
        return f"{error}."
