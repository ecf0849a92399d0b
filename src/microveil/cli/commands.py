"""The command line: commands call the library and hold no logic."""

import math
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.progress import Progress
from rich.segment import Segment

from microveil.cli.options import (
    QUASI_IDENTIFIER,
    EngineOption,
    EpsilonsTried,
    KeyFile,
    KnownColumns,
    LedgerOf,
    Master,
    OutputPlace,
    Overwrite,
    People,
    Quiet,
    Report,
    Seed,
    TargetColumn,
    parse_domains,
    plan_flags,
    reads,
)
from microveil.cli.processes import hide_passwords
from microveil.errors import MicroveilError, PlanError, defect, visible

if TYPE_CHECKING:
    from microveil.formats import Source

app = typer.Typer(
    help="Protect a table of people before it is published.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class _Visible(Console):
    """A terminal that shows control characters, wherever in a name or text they came from."""

    def render(self, *args: Any, **options: Any) -> Iterable[Segment]:  # noqa: ANN401 - as Console has it
        """Lay out what is to be printed."""
        for text, style, control in super().render(*args, **options):
            yield Segment(text if control else visible(text), style, control)


_errors = _Visible(stderr=True, soft_wrap=True, highlight=False)

_FIRST_SENTENCE = re.compile(r".*?[.](?=\s|$)", re.DOTALL)

DEFECT = 3
"""Exit code for a defect of microveil, after 0 (done), 1 (the user's mistake) and 2 (usage)."""


@app.callback(invoke_without_command=True)
def version(
    show: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Protect a table of people before it is published."""
    if show:
        from microveil import __version__

        typer.echo(f"microveil {__version__}")
        raise typer.Exit


@app.command()
@reads("data")
def plan(
    data: "Source",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The plan to write.")
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(help="A plan to check instead: everything that is wrong with it, at once."),
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Look at a file and write a commented plan that a person can edit, or check an edited one."""
    from microveil.cli.screens_of_commands import lost_of, show_proposed
    from microveil.formats import check_output, load_table, write_text
    from microveil.plan.propose.proposal import propose

    if check is not None:
        _check_plan(check, data, quiet=quiet)
        return
    if output is None:
        raise PlanError("give a plan to write with -o, or one to check with --check")
    check_output(output, overwrite=overwrite, source=data.path, suffixes=(".toml",))
    table = load_table(data)
    proposed = propose(table.data, data.name, table.meta.described, na=data.na, dates=data.dates)
    write_text(output, proposed.toml, private=True)
    _say(show_proposed(proposed), quiet=quiet)
    _say(lost_of(proposed), quiet=quiet or not lost_of(proposed))
    _say(f"Wrote {output}. Read it, edit it, then: microveil protect {data.path or 'DATA'} "
         f"--plan {output} -o protected.parquet", quiet=quiet)  # fmt: skip


def _check_plan(path: Path, data: "Source", *, quiet: bool) -> None:
    from microveil.errors import all_of
    from microveil.release.dry_run import check

    problems = check(data, path)
    if problems:
        raise all_of(problems)
    _say(f"{path} fits the data. Next: microveil protect {data.path or 'DATA'} --plan {path} "
         "-o protected.parquet", quiet=quiet)  # fmt: skip


@app.command()
@reads("data")
def risk(
    data: "Source",
    quasi_identifier: Annotated[list[str], QUASI_IDENTIFIER],
    weight: Annotated[
        str | None, typer.Option(help="A column of sampling weights, by default the plan's.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="A plan in TOML, for its sampling weight.")
    ] = None,
    household: Annotated[
        str | None, typer.Option(help="A column that says which records belong together.")
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="A column that must not be learnt.")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="A protected file, to compare before and after.")
    ] = None,
    sampling_fraction: Annotated[
        float, typer.Option(help="The sampling fraction, for DIS.")
    ] = 0.01,
    json: Annotated[bool, typer.Option("--json", help="Print JSON with every figure.")] = False,
) -> None:
    """Count who stands out by what others may know, before protecting a file or after.

    k-anonymity, expected re-identifications, SUDA2 and l-diversity, as sdcMicro has them. Nothing
    is written. What it prints is a function of the data: keep it private.
    """
    from microveil.measures.classical import risk
    from microveil.plan.plan import Plan
    from microveil.show.risks import risks_side_by_side

    made = None if plan is None else Plan.read(plan)
    tables = {"original": data} | ({} if release is None else {"release": data.of_release(release)})
    found = {
        name: risk(
            table,
            keys=quasi_identifier,
            weight=weight,
            household=household,
            sensitive=sensitive or (),
            sampling_fraction=sampling_fraction,
            plan=made,
        )
        for name, table in tables.items()
    }
    if json:
        figures: dict[str, Any] = {name: each.to_dict() for name, each in found.items()}
        shown = figures["original"] if release is None else figures
        typer.echo(visible(dumps(shown, indent=2, ensure_ascii=False)))
    else:
        _say(risks_side_by_side(found))


@app.command()
@reads("data", "A file, the address of a database, or for Spark any place with Parquet.")
@plan_flags()
def protect(
    data: "Source",
    output: OutputPlace,
    plan: Annotated[Path | None, typer.Option(help="A plan in TOML.")] = None,
    *,
    settings: dict[str, Any],
    drop: Annotated[list[str] | None, typer.Option(help="An identifier to drop.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A column to publish as it is.")] = None,
    domain: Annotated[
        list[str] | None, typer.Option(metavar="NAME=LOWER:UPPER", help="A declared domain.")
    ] = None,
    nominal: Annotated[
        list[str] | None, typer.Option(help="A column of categories, read from the data.")
    ] = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Also write the private detail.")
    ] = False,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Keep the order of rows, instead of a random one.")
    ] = False,
    known: KnownColumns = None,
    people: People = 1.0,
    no_verdict: Annotated[
        bool, typer.Option("--no-verdict", help="Do not measure the release before writing it.")
    ] = False,
    engine: EngineOption = "memory",
    master: Master = None,
    report: Report = None,
    ledger: LedgerOf = None,
    key_file: KeyFile = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Protect a file by a plan, by flags, or by a plan that flags override.

    With flags alone, every column that is not dropped, kept or nominal is a confidential attribute
    of numbers, dates or times.
    Writes the protected file and beside it its public certificate. Before that it measures who
    could be found in the release and what was lost, and prints a verdict, for you alone.
    """
    from microveil.cli.job import open_job
    from microveil.cli.screens_of_commands import show_verdict
    from microveil.judge.verdict import Verdict
    from microveil.plan.flags import plan_for_columns, settings_from_file, with_scenario
    from microveil.plan.plan import read_plan_text
    from microveil.plan.problems import located
    from microveil.release.key import key_of
    from microveil.release.ledger import check_left
    from microveil.show.certificates import show_release, show_stamp
    from microveil.show.words.grading import PUBLISH
    from microveil.show.words.rule_words import rule_statement

    _check_report(report, overwrite=overwrite, source=data.path)
    job = open_job(
        data, output, engine=engine, master=master, detail=detail, keep_order=keep_order,
        overwrite=overwrite, report=report,
    )  # fmt: skip
    settings |= {"na": data.na} if data.na else {}
    settings |= {"dates": data.dates} if data.dates else {}
    roles: dict[str, Any] = {
        "drop": drop or [], "keep": keep or [], "nominal": nominal or [],
        "domains": parse_domains(domain or []),
    }  # fmt: skip
    judge = not no_verdict and not quiet
    text = None if plan is None else read_plan_text(plan)
    with located(text, elsewhere=settings), _progress(quiet=quiet) as progress:
        if plan is not None:
            chosen = job.plan(settings_from_file(plan, **roles, **settings))
        elif "epsilon" not in settings:
            raise PlanError("give a plan with --plan, or a privacy budget with --epsilon")
        else:
            chosen = plan_for_columns(job.columns(roles["keep"]), **roles, **settings)
        chosen = with_scenario(chosen, known or (), people)
        key_of(chosen, key_file, seed).check_apart(output)
        check_left(chosen, ledger, seed)
        done = job.run(
            chosen, ledger=ledger, key=key_file, seed=seed, judge=judge, progress=progress
        )
    written, certificate = done.written, done.written.certified
    stamp = show_stamp(certificate)
    if stamp:
        _errors.print(stamp, end="")
    _say(show_release(certificate), quiet=quiet)
    for rule in written.rules:
        _say(rule_statement(rule), quiet=quiet)
    if done.verdict is not None:
        _say(show_verdict(done.verdict))
    _say(f"Protected   {written.protected}\nCertificate {written.certificate}", quiet=quiet)
    if isinstance(done.verdict, Verdict) and done.verdict.may_publish(certificate):
        _say(PUBLISH)
    if written.detail:
        _say(f"Private     {written.detail} (do not publish)", quiet=quiet)
    if report is not None:
        _say(f"Report      {report} (do not publish)", quiet=quiet)


@app.command("key")
def make_key(
    file: Annotated[Path, typer.Argument(help="The key to write, e.g. people.key.")],
    quiet: Quiet = False,
) -> None:
    """Make the key of pseudonyms, once for all tables in which people are to have the same ones.

    Whoever has the key can find out whose a pseudonym is; without it nobody can make the same ones.
    """
    from microveil.release.key import Key

    Key.make(file)
    _say(f"Wrote {file} (keep it private, apart from releases, and do not lose it)", quiet=quiet)


@app.command()
def ledger(
    file: Annotated[Path, typer.Argument(help="A ledger, e.g. people.ledger.json.")],
    budget: Annotated[
        float | None,
        typer.Option(help="Declare what all releases of these people may spend of a person."),
    ] = None,
    withdraw: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="Count a release no longer, which nobody has seen or will see."
        ),
    ] = None,
) -> None:
    """Show or make the ledger of a group of people: what all releases of them have spent.

    With a budget the ledger is made if there is none. Then protect every table of these people
    with --ledger: what would spend more than is left is refused before any work. A run that was
    killed stays in the ledger and counts until it is withdrawn.
    """
    from microveil.cli.screens_of_commands import show_ledger
    from microveil.release import ledger as ledgers

    if budget is not None:
        ledgers.declare(file, budget)
    if withdraw is not None:
        ledgers.withdraw(file, withdraw)
    _say(show_ledger(ledgers.Ledger.read(file)))


@app.command()
def certificate(
    file: Annotated[Path, typer.Argument(help="A certificate, e.g. protected.certificate.json.")],
    html: Annotated[Path | None, typer.Option(help="A public page to write.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Print a certificate for people, and check it against its file where that lies beside it."""
    from microveil.formats import sha256_of, write_text
    from microveil.release.certificate import Certificate
    from microveil.show.certificates import show_certificate

    _check_report(html, overwrite=overwrite, source=file)
    read = Certificate.read(file)
    protected = read.file_beside(file)
    if read.file and protected and sha256_of(protected) != read.file.sha256:
        raise MicroveilError(
            f"{protected}: the file is not the one this certificate was written for: they "
            "belong to different releases, or the file was changed; protect the table again, or "
            "put the matching files together"
        )
    _say(show_certificate(read))
    if protected:
        _say(f"{protected}: matches the certificate.")
    if html is not None:
        from microveil.show.report import certificate_page

        write_text(html, certificate_page(read))
        _say(f"Wrote {html}")


@app.command()
@reads("original", "The original file, or the address of a database.")
def evaluate(
    original: "Source",
    protected: Annotated[
        str, typer.Argument(help="The protected file, for Spark any place with Parquet.")
    ],
    detail: Annotated[
        str | None, typer.Option(help="The private detail, which holds the order of rows.")
    ] = None,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="The release was written with --keep-order.")
    ] = False,
    target: TargetColumn = None,
    quasi_identifier: Annotated[list[str] | None, QUASI_IDENTIFIER] = None,
    known: KnownColumns = None,
    people: People = 1.0,
    engine: EngineOption = "memory",
    master: Master = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    report: Report = None,
    overwrite: Overwrite = False,
) -> None:
    """Measure how useful and how risky a release is, against its original.

    Of files larger than memory, and on Spark, records are drawn, and their people are looked for in
    the whole release; every figure says so.
    Measures that compare records one by one need the private detail, or a release written with
    --keep-order; either is found if it lies beside the protected file. What is printed is a
    function of the data: keep it private.
    """
    from microveil.cli.job import tables_on_spark
    from microveil.formats import write_text
    from microveil.judge.evaluation import evaluate
    from microveil.release.release import order_beside

    _check_report(report, overwrite=overwrite, source=original.path)
    files: dict[str, Any]
    if engine == "spark":
        files = tables_on_spark(original, protected, detail, master)
    else:
        order, kept = (detail, aligned) if detail or aligned else order_beside(Path(protected))
        files = {"original": original, "release": original.of_release(Path(protected)),
                 "detail": order, "aligned": kept}  # fmt: skip
    with _progress(quiet=False) as progress:
        outcome = evaluate(
            **files,
            target=target,
            quasi_identifiers=quasi_identifier or (),
            known=known or (),
            people=people,
            progress=progress,
        )
    if json:
        typer.echo(visible(dumps(outcome.to_dict(), indent=2, ensure_ascii=False)))
    else:
        _say(outcome)
    if report is not None:
        from microveil.show.report import report as page_of

        write_text(report, page_of(**files, evaluation=outcome), private=True)
        _say(f"Report {report} (do not publish)", quiet=json)


@app.command()
@reads("data")
def audit(
    data: "Source",
    plan: Annotated[Path, typer.Option(help="A plan in TOML.")],
    runs: Annotated[int, typer.Option(help="How often the mechanism runs on each table.")] = 10_000,
    releases: Annotated[
        int | None,
        typer.Option(help="How often it is released, by default once in 25 runs, 20 to 400 times."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after about so many seconds.")] = None,
    seed: Seed = None,
) -> None:
    """Attack releases of your own table: what can be told apart, and what is pinned down.

    Nothing is written. What it prints is a function of the data: keep it private.
    """
    from microveil.lab.audit import audit
    from microveil.plan.plan import Plan, read_plan_text
    from microveil.plan.problems import located

    with located(read_plan_text(plan)), _progress(quiet=False) as progress:
        outcome = audit(
            data,
            Plan.read(plan),
            runs=runs,
            releases=releases,
            seconds=seconds,
            seed=seed,
            progress=progress,
        )
    _say(outcome)
    if outcome.broken:
        raise MicroveilError("the mechanism is broken, as said above; please report this")


@app.command()
@reads("data")
def explore(
    data: "Source",
    plan: Annotated[
        Path | None, typer.Option(help="A plan in TOML, for its roles and domains.")
    ] = None,
    target: TargetColumn = None,
    epsilon: EpsilonsTried = None,
    max_linkage: Annotated[
        float, typer.Option(help="The largest share of rows that an attack may link.")
    ] = 0.1,
    max_error: Annotated[
        float | None, typer.Option(help="The largest mean SSE, by default any.")
    ] = None,
    min_anonymity: Annotated[
        int, typer.Option(help="The least number of records in a joint cluster, 0 for none.")
    ] = 0,
    runs: Annotated[int, typer.Option(help="How often the measured points are run.")] = 3,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The recommended plan to write.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="The chart to write; needs microveil[report].")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods, clusters and budgets on a file, and recommend a plan.

    What it prints and draws is a function of the data: keep it private.
    """
    from microveil.formats import check_output, moved_into_place
    from microveil.judge.explore import explore
    from microveil.plan.plan import Plan, read_plan_text
    from microveil.plan.problems import located

    wanted = {path: ending for path, ending in ((output, ".toml"), (svg, ".svg")) if path}
    for path, ending in wanted.items():
        check_output(path, overwrite=overwrite, source=data.path, suffixes=(ending,))
    if svg is not None:
        import microveil.show.charts.render  # noqa: F401 - says what to install
    text = None if plan is None else read_plan_text(plan)
    with located(text), _progress(quiet=quiet) as progress:
        found = explore(
            data,
            None if plan is None else Plan.read(plan),
            epsilons=epsilon or (0.01, 0.1, 1.0),
            target=target,
            max_linkage=max_linkage,
            max_error=math.inf if max_error is None else max_error,
            min_anonymity=min_anonymity,
            runs=runs,
            progress=progress,
        )
    if output is not None and found.plan is None:
        _say(found, quiet=quiet)
        raise PlanError(f"{found.headline}, so {output} was not written")
    contents = {".toml": found.plan.to_toml if found.plan else str, ".svg": found.to_svg}
    if wanted:
        with moved_into_place(list(wanted)) as temporary:
            for path, ending in zip(temporary, wanted.values(), strict=True):
                path.touch(mode=0o600)  # they depend on the data
                path.write_text(contents[ending](), encoding="utf-8")
    _say(found, quiet=quiet)
    for path in wanted:
        _say(f"Wrote {path}", quiet=quiet)


@app.command()
def benchmark(
    data: Annotated[
        list[str] | None,
        typer.Argument(help='Files, or "census", "wine" and "sample"; by default the sample.'),
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="A plan in TOML, for roles and domains and as a point.")
    ] = None,
    target: TargetColumn = None,
    epsilon: EpsilonsTried = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The directory to write to.")
    ] = Path("microveil-benchmark"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Attack 400 records of each table instead of 1,200.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="How often everything is done.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Attack releases of a table by many methods, and draw risk against usefulness.

    Writes results.parquet and a map of each table. Goes on where it was stopped. What it prints and
    draws is a function of the data: keep it private.
    """
    from microveil.lab.benchmark.results_file import benchmark_all
    from microveil.plan.plan import Plan, read_plan_text
    from microveil.plan.problems import located

    text = None if plan is None else read_plan_text(plan)
    with located(text), _progress(quiet=quiet) as progress:
        found, written = benchmark_all(
            data or ["sample"],
            None if plan is None else Plan.read(plan),
            output,
            epsilons=epsilon or (0.01, 0.1, 1.0),
            target=target,
            quick=quick,
            seeds=seeds,
            progress=progress,
        )
    _say(found, quiet=quiet)
    for path in written:
        _say(f"Wrote {path}", quiet=quiet)


@app.command()
def reproduce(
    data: Annotated[
        Path | None, typer.Option(help="The directory with the paper's data sets.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The directory to write to.")] = Path("microveil-paper"),
    runs: Annotated[int, typer.Option(help="How often every experiment is repeated.")] = 10,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most three runs and few values of k.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Repeat every experiment of the paper and check every claim it makes of its results.

    Writes results.parquet, four figures and claims.md. Goes on where it was stopped.
    """
    from microveil.lab.paper import reproduce

    with _progress(quiet=quiet) as progress:
        written = reproduce(data, out, runs, quick, progress)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in written.verdicts.items())
    _say(f"Claims of the paper: {verdicts}. See {written.claims}", quiet=quiet)
    for figure in written.figures:
        _say(f"Figure {figure}", quiet=quiet)


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The directory to write to.")
    ] = Path("microveil-demo"),
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget of a person, by default 1; of a household 8."),
    ] = None,
    survey: Annotated[
        bool,
        typer.Option("--survey", help="Take a survey of 30,000 persons in 12,000 households."),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Protect a bundled sample of made-up people and show it before and after."""
    from microveil.cli.demo import run_demo

    with _progress(quiet=False) as progress:
        parts = run_demo(
            output, epsilon=epsilon, households=survey, overwrite=overwrite, progress=progress
        )
    for part in parts:
        _say(part)


@app.command("app")
def page(
    port: Annotated[int, typer.Option(help="The port to listen on.")] = 8501,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the browser.")
    ] = False,
) -> None:
    """Open a page in the browser that goes from a file to its release.

    It listens on 127.0.0.1 only, so that nobody else on the network can reach the data.
    """
    from microveil.app.server import WHY, address, check, serve

    check(port)
    _say(f"The page is at {address(port)}. {WHY}")
    serve(port, browser=not no_browser)


def _check_report(path: Path | None, *, overwrite: bool, source: Path | None) -> None:
    """Refuse a page that could not be written or drawn, before any work is done."""
    if path is not None:
        import microveil.show.report  # noqa: F401 - says what to install
        from microveil.formats import check_output

        check_output(path, overwrite=overwrite, source=source, suffixes=(".html",))


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Show warnings about privacy and files, a line each, once the work is done."""
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        try:
            yield
        finally:
            for message in dict.fromkeys(str(warning.message) for warning in caught):
                _errors.print(f"warning: {message}", markup=False)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Any]:
    """Give a function that moves a progress bar on, which is shown on a terminal only."""
    if quiet or not _errors.is_terminal:
        yield None
        return
    with Progress(console=_errors, transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, total: bar.update(
            task, description=what, completed=done, total=total
        )


def _say(what: RenderableType, *, quiet: bool = False) -> None:
    if not quiet:
        _Visible(soft_wrap=isinstance(what, str), highlight=False, markup=False).print(what)


_ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def _end(number: int, _: object) -> None:
    """End as Ctrl+C does, removing temporary files; further signals must not interrupt that."""
    for other in _ENDINGS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Remove temporary files where a signal ends the work; afterwards there are none."""
    for number in _ENDINGS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number in _ENDINGS:
            if signal.getsignal(number) is _end:
                signal.signal(number, signal.SIG_DFL)


def _with_whole_sentences() -> None:
    """Let `--help` show the first sentence of every command, which Click would cut."""
    for command in app.registered_commands:
        described = _FIRST_SENTENCE.match((command.callback and command.callback.__doc__) or "")
        if described:
            command.short_help = " ".join(described.group().split())


_with_whole_sentences()


def main() -> None:
    """Run the command line; a user's mistake is one line and exit code 1."""
    hide_passwords()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        with _ended_by_signals(), _warnings_shown():
            app()
    except MicroveilError as error:
        _errors.print(f"error: {error}", markup=False)
        sys.exit(1)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # what Polars raises when it panics is no Exception
        if os.environ.get("MICROVEIL_DEBUG"):
            raise
        _errors.print(defect(error), markup=False)
        sys.exit(DEFECT)
