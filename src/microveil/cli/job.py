"""The job of `microveil protect`: from where a table is to where its release goes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from microveil.cli.options import EngineName
from microveil.errors import MicroveilError, PlanError
from microveil.formats import (
    LoadedTable,
    Source,
    TableMeta,
    check_escaped,
    check_values,
    load_table,
    write_text,
)
from microveil.judge.verdict import Verdict, verdict
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate
from microveil.release.dry_run import plan_with
from microveil.release.ledger import given_back_on_failure
from microveil.release.protect import protect
from microveil.release.protect_file import column_names, is_columnwise, protect_file
from microveil.release.release import Release, Written
from microveil.release.store import LocalStore, Places
from microveil.types import Progress, UserTable


@dataclass(frozen=True)
class Done:
    """Where a release was written to, and the verdict on it, or why there is none."""

    written: Written
    verdict: Verdict | str | None

    @property
    def passed(self) -> bool:
        """Whether a verdict says that the release passes."""
        return isinstance(self.verdict, Verdict) and self.verdict.passed

    @property
    def may_be_published(self) -> bool:
        """Whether, besides, nothing on its certificate speaks against publishing it."""
        certificate = self.written.certified
        return isinstance(self.verdict, Verdict) and self.verdict.may_publish(certificate)


class ProtectJob:
    """A table to be protected; nothing is read before it must be.

    Where its release goes is checked at once. A file larger than memory is protected a column at a
    time.
    """

    def __init__(
        self,
        data: Source,
        output: str,
        *,
        engine: EngineName,
        master: str | None,
        detail: bool,
        keep_order: bool,
        overwrite: bool,
        escape_formulas: bool,
        report: Path | None,
    ) -> None:
        if master is not None and engine != "spark":
            raise PlanError("--master is for Spark only; add --engine spark")
        self._data, self._output, self._report = data, output, report
        self._detail, self._keep_order, self._overwrite = detail, keep_order, overwrite
        self._escape_formulas = escape_formulas
        if escape_formulas:
            check_escaped(output)
        self._table: UserTable = None
        self._engine: Literal["memory", "columnwise", "spark"] = engine
        if engine == "spark":
            self._places, self._table = _open_on_spark(
                data, output, master, detail=detail, overwrite=overwrite
            )
        elif is_columnwise(data, Path(output)):
            self._engine = "columnwise"
        else:
            store = LocalStore(TableMeta(data.path))
            self._places = store.places(output, detail=detail)
            store.check(self._places, overwrite=overwrite)

    def columns(self, verbatim: list[str]) -> list[str]:
        """Return the names of the table's columns."""
        if self._engine == "columnwise":
            self._data, names = column_names(self._data)
            return names
        if self._engine == "memory":
            self._table = load_table(self._data, verbatim=verbatim)
        return list(self._table.columns if self._engine == "spark" else self._table.data.columns)

    def plan(self, settings: Mapping[str, Any]) -> Plan:
        """Make a plan of settings, or say everything that is wrong with them."""
        return plan_with(settings, self._data if self._engine == "memory" else None)

    def run(self, plan: Plan, *, judge: bool, progress: Progress | None, **given: Any) -> Done:  # noqa: ANN401 - as for protect
        """Protect the table, judge the release if asked, and write it."""
        judged: list[Verdict | str] = []
        reported: list[Callable[[Certificate], None]] = []

        def look(original: UserTable, release: Release) -> None:
            if judge:
                judged.append(_judged(original, release, progress))
            if self._report is not None:
                reported.append(_reporting(original, release, self._data, self._report, progress))

        if self._engine == "columnwise":
            written = protect_file(
                self._data, plan, self._output, detail=self._detail, overwrite=self._overwrite,
                keep_order=self._keep_order, escape_formulas=self._escape_formulas,
                progress=progress,
                look=look if judge or self._report else None, **given,
            )  # fmt: skip
        else:
            table = self._loaded(plan) if self._engine == "memory" else self._table
            release = protect(table, plan, progress=progress, **given)
            with given_back_on_failure(release.spending, release.joined):
                look(table, release)
                written = release.write_to(
                    self._places,
                    keep_order=self._keep_order,
                    escape_formulas=self._escape_formulas,
                )
        for write in reported:
            write(written.certified)
        return Done(written, judged[0] if judged else None)

    def _loaded(self, plan: Plan) -> LoadedTable:
        """Return the table, of which everything that is released can be written."""
        table: LoadedTable = self._table or load_table(self._data, **plan.reading)
        released = [name for name, a in plan.attributes.items() if a.role != "identifier"]
        as_they_are = (*plan.kept, *plan.shifted)
        check_values(table.data, as_they_are, released, self._places.protected)
        return table


def _open_on_spark(
    data: Source, output: str, master: str | None, *, detail: bool, overwrite: bool
) -> tuple[Places, UserTable]:
    """Check where a release goes on Spark, and open its table."""
    from microveil.engines.spark.connection import open_session, read_with_spark

    spark = open_session(master).newSession()  # whose settings are its own
    from microveil.engines.spark.scratch_files import SCRATCH, place
    from microveil.release.spark_store import SparkStore

    source = place(spark, str(data.location))
    store = SparkStore(spark, source)
    places = store.places(output, detail=detail)
    store.check(places, overwrite=overwrite)
    if spark.conf.get(SCRATCH, None) is None:
        spark.conf.set(SCRATCH, places.protected.rpartition("/")[0] or ".")
    return places, read_with_spark(spark, source)


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
    """Evaluate a release; return what writes its report once the release is written."""
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
        progress("attacking the release", 0, 1)
    try:
        return verdict(original, release)
    except MicroveilError as error:
        return f"{error}."
