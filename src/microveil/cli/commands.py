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
    JointFile,
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
    UseOption,
    parse_domains,
    plan_flags,
    reads,
)
from microveil.cli.processes import hide_passwords
from microveil.errors import MicroveilError, PlanError, defect, visible

if TYPE_CHECKING:
    from microveil.formats import Source

app = typer.Typer(
    help="Protect a table of people before publishing it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 done, 1 a mistake in plan, data or files, 2 a wrong option, 3 a defect "
    "of microveil, 4 a release that protect wrote does not pass its verdict.",
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

RISKY = 4
"""Exit code for a release that was written but does not pass its verdict."""


@app.callback(invoke_without_command=True)
def version_option(
    show: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Protect a table of people before publishing it."""
    if show:
        from microveil import __version__

        typer.echo(f"microveil {__version__}")
        raise typer.Exit


@app.command("plan")
@reads("data")
def plan_command(
    data: "Source",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Plan to write.")] = None,
    check: Annotated[
        Path | None,
        typer.Option(help="Plan to check instead; lists everything that is wrong with it."),
    ] = None,
    use: UseOption = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Take what is proposed, and ask nothing.")
    ] = False,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Inspect a file and write a commented plan to edit, or check an edited plan.

    On a terminal it asks three questions first, each with what it proposes: whose the rows are,
    what an attacker could know, and what the table will be used for.
    """
    from microveil.cli.asking import Asking, on_terminal
    from microveil.cli.screens_of_commands import lost_of, show_proposed
    from microveil.formats import check_output, load_table, write_text
    from microveil.plan.uses import Use

    if check is not None:
        _check_plan(check, data, quiet=quiet)
        return
    if output is None:
        raise PlanError("give -o PLAN to write a plan, or --check PLAN to check one")
    check_output(output, overwrite=overwrite, source=data.path, suffixes=(".toml",))
    said = {"uses": [Use.parse(text) for text in use]} if use else {}
    asking = Asking(data, load_table(data), _say, said)
    asks = on_terminal() and not (yes or quiet)
    proposed = asking.ask() if asks else asking.proposed()
    write_text(output, proposed.toml, private=True)
    _say(show_proposed(proposed), quiet=quiet)
    _say(lost_of(proposed), quiet=quiet or not lost_of(proposed))
    _say(f"Wrote {output}. Read and edit it, then run: microveil protect {data.path or 'DATA'} "
         f"--plan {output} -o protected.parquet", quiet=quiet)  # fmt: skip


def _check_plan(path: Path, data: "Source", *, quiet: bool) -> None:
    from microveil.errors import all_of
    from microveil.release.dry_run import check

    problems = check(data, path)
    if problems:
        raise all_of(problems)
    _say(f"{path} fits the data. Next: microveil protect {data.path or 'DATA'} --plan {path} "
         "-o protected.parquet", quiet=quiet)  # fmt: skip


@app.command("risk")
@reads("data")
def risk_command(
    data: "Source",
    quasi_identifier: Annotated[list[str], QUASI_IDENTIFIER],
    weight: Annotated[
        str | None, typer.Option(help="Column of sampling weights; default: the plan's.")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="Plan in TOML, for its sampling weight.")
    ] = None,
    household: Annotated[
        str | None, typer.Option(help="Column that identifies the household of a record.")
    ] = None,
    sensitive: Annotated[
        list[str] | None, typer.Option(help="Column whose values must not be learned.")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="Protected file, to compare before and after.")
    ] = None,
    sampling_fraction: Annotated[
        float, typer.Option(help="Sampling fraction, used for DIS.")
    ] = 0.01,
    json: Annotated[bool, typer.Option("--json", help="Print every figure as JSON.")] = False,
) -> None:
    """Count the people who stand out by what an attacker may know, before or after protecting.

    Prints k-anonymity, expected re-identifications, SUDA2 and l-diversity, as sdcMicro does, and
    writes nothing. The figures are computed from the original data: keep them private.
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


@app.command("protect")
@reads("data", "File, database address, or for Spark any location with Parquet.")
@plan_flags()
def protect_command(
    data: "Source",
    output: OutputPlace,
    plan: Annotated[Path | None, typer.Option(help="Plan in TOML.")] = None,
    *,
    settings: dict[str, Any],
    drop: Annotated[list[str] | None, typer.Option(help="Identifier to drop.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Column to publish unchanged.")] = None,
    domain: Annotated[
        list[str] | None, typer.Option(metavar="NAME=LOWER:UPPER", help="Declared domain.")
    ] = None,
    nominal: Annotated[
        list[str] | None, typer.Option(help="Column of categories, which are read from the data.")
    ] = None,
    detail: Annotated[
        bool, typer.Option("--detail", help="Also write the private detail, which evaluate needs.")
    ] = False,
    keep_order: Annotated[
        bool, typer.Option("--keep-order", help="Keep the order of rows instead of shuffling them.")
    ] = False,
    escape_formulas: Annotated[
        bool,
        typer.Option("--escape-formulas", help="In CSV, keep spreadsheets from running text."),
    ] = False,
    use: UseOption = None,
    known: KnownColumns = None,
    people: People = 1.0,
    no_verdict: Annotated[
        bool, typer.Option("--no-verdict", help="Write the release without measuring it first.")
    ] = False,
    accept_risk: Annotated[
        bool,
        typer.Option("--accept-risk", help="Exit with 0 also where the release does not pass."),
    ] = False,
    engine: EngineOption = "memory",
    master: Master = None,
    report: Report = None,
    ledger: LedgerOf = None,
    key_file: KeyFile = None,
    joint: JointFile = None,
    seed: Seed = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Protect a file with a plan, with flags, or with a plan that flags override.

    With flags alone, every column that is not dropped, kept or nominal is a confidential attribute
    of numbers, dates or times.
    Writes the protected file and its public certificate next to it. First it attacks the release,
    measures what was lost, and prints a verdict, which is private. Where the release does not pass,
    it is written all the same, and the exit code is 4, unless --accept-risk or --no-verdict is
    given.
    """
    from microveil.cli.job import ProtectJob
    from microveil.cli.screens_of_commands import show_verdict
    from microveil.plan.flags import plan_for_columns, settings_from_file, with_scenario, with_uses
    from microveil.plan.plan import read_plan_text
    from microveil.plan.problems import located
    from microveil.release.key import key_of
    from microveil.release.ledger import check_left
    from microveil.show.certificates import show_release, show_stamp
    from microveil.show.words.grading import PUBLISH
    from microveil.show.words.rule_words import rule_statement
    from microveil.show.words.thread_words import threads_statement

    _check_report(report, overwrite=overwrite, source=data.path)
    job = ProtectJob(
        data, output, engine=engine, master=master, detail=detail, keep_order=keep_order,
        overwrite=overwrite, escape_formulas=escape_formulas, report=report,
    )  # fmt: skip
    settings |= {"na": data.na} if data.na else {}
    settings |= {"dates": data.dates} if data.dates else {}
    roles: dict[str, Any] = {
        "drop": drop or [], "keep": keep or [], "nominal": nominal or [],
        "domains": parse_domains(domain or []),
    }  # fmt: skip
    text = None if plan is None else read_plan_text(plan)
    given = {*settings, "uses"} if use else settings
    with located(text, elsewhere=given), _progress(quiet=quiet) as progress:
        if plan is not None:
            chosen = job.plan(settings_from_file(plan, **roles, **settings))
        elif "epsilon" not in settings:
            raise PlanError("give a plan with --plan, or a privacy budget with --epsilon")
        else:
            chosen = plan_for_columns(job.columns(roles["keep"]), **roles, **settings)
        chosen = with_uses(with_scenario(chosen, known or (), people), use or ())
        key_of(chosen, key_file, seed).check_apart(output)
        check_left(chosen, ledger, seed)
        done = job.run(
            chosen, ledger=ledger, key=key_file, joint=joint, seed=seed, judge=not no_verdict,
            progress=progress,
        )  # fmt: skip
    written, certificate = done.written, done.written.certified
    stamp = show_stamp(certificate)
    if stamp:
        _errors.print(stamp, end="")
    _say(show_release(certificate), quiet=quiet)
    for line in (*map(rule_statement, written.rules), *map(threads_statement, written.threads)):
        _say(line, quiet=quiet)
    if done.verdict is not None:
        _say(show_verdict(done.verdict), quiet=quiet)
    _say(f"Protected   {written.protected}\nCertificate {written.certificate}", quiet=quiet)
    if done.may_be_published:
        _say(PUBLISH, quiet=quiet)
    if written.detail:
        _say(f"Private     {written.detail} (do not publish)", quiet=quiet)
    if report is not None:
        _say(f"Report      {report} (do not publish)", quiet=quiet)
    if not (no_verdict or done.passed):
        _end_risky(accepted=accept_risk)


def _end_risky(*, accepted: bool) -> None:
    """Say that a release was written that does not pass, and end with an exit code of its own."""
    from microveil.show.words.grading import ACCEPTED, RISKY_RELEASE

    _errors.print(f"risk: {ACCEPTED if accepted else RISKY_RELEASE}", markup=False)
    if not accepted:
        raise typer.Exit(RISKY)


@app.command("key")
def key_command(
    file: Annotated[Path, typer.Argument(help="Key file to write, e.g. people.key.")],
    quiet: Quiet = False,
) -> None:
    """Create a key file for pseudonyms, to use for every table that shares them.

    Anyone who has the key file can link a pseudonym to its person; without it, nobody can make the
    same pseudonyms.
    """
    from microveil.release.key import Key

    Key.make(file)
    _say(
        f"Wrote {file}. Keep it private, store it apart from releases, and do not lose it.",
        quiet=quiet,
    )


@app.command("joint")
def joint_command(
    file: Annotated[Path, typer.Argument(help="File of joint clusters, e.g. people.clusters.")],
    turnover: Annotated[
        float | None,
        typer.Option(
            help="Share of all persons expected to leave, join or change from release to release, "
            "e.g. 0.05: larger joint clusters then let more of the others keep a pseudonym."
        ),
    ] = None,
    withdraw: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Take out a release that was never shared."),
    ] = None,
) -> None:
    """Show or create the joint clusters of a group of people, which last from release to release.

    With --turnover, the file is created if it does not exist. Then protect every table of these
    people with --joint and the same --key-file: a person keeps a pseudonym as long as that many
    others have the same history in all releases.
    """
    from microveil.cli.screens_of_commands import show_joint
    from microveil.release.persistent import LastingClusters, declare_turnover, forget

    if turnover is not None:
        declare_turnover(file, turnover)
    if withdraw is not None:
        forget(file, withdraw)
    _say(show_joint(LastingClusters.read(file)))


@app.command("ledger")
def ledger_command(
    file: Annotated[Path, typer.Argument(help="Ledger, e.g. people.ledger.json.")],
    budget: Annotated[
        float | None,
        typer.Option(help="Privacy budget per person that all releases together may spend."),
    ] = None,
    limit: Annotated[
        float | None,
        typer.Option(
            help="Highest chance by which an attacker who knows everything but the random draws "
            "may pick a person by all releases, e.g. 0.1."
        ),
    ] = None,
    withdraw: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Stop counting a release that was never shared."),
    ] = None,
) -> None:
    """Show or create the ledger of a group of people: the budget their releases have spent.

    With --budget, the ledger is created if it does not exist. Then protect every table of these
    people with --ledger: a release that would exceed the remaining budget is refused before any
    work is done, and one that passes the limit before anything is released. A run that was killed
    counts until it is withdrawn.
    """
    from microveil.cli.screens_of_commands import show_ledger
    from microveil.release import ledger as ledgers

    if budget is not None:
        ledgers.declare(file, budget)
    if limit is not None:
        ledgers.declare_limit(file, limit)
    if withdraw is not None:
        ledgers.withdraw(file, withdraw)
    _say(show_ledger(ledgers.Ledger.read(file)))


@app.command("certificate")
def certificate_command(
    file: Annotated[Path, typer.Argument(help="Certificate, e.g. protected.certificate.json.")],
    html: Annotated[Path | None, typer.Option(help="Public HTML page to write.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Print a certificate and verify the file next to it."""
    from microveil.formats import sha256_of, write_text
    from microveil.release.certificate import Certificate
    from microveil.show.certificates import show_certificate

    _check_report(html, overwrite=overwrite, source=file)
    read = Certificate.read(file)
    protected = read.file_beside(file)
    if read.file and protected and sha256_of(protected) != read.file.sha256:
        raise MicroveilError(
            f"{protected}: not the file this certificate was written for: it was changed, or it "
            "belongs to another release; put the right file next to it, or protect again"
        )
    _say(show_certificate(read))
    if protected:
        _say(f"{protected}: matches the certificate.")
    if html is not None:
        from microveil.show.report import certificate_page

        write_text(html, certificate_page(read))
        _say(f"Wrote {html}")


@app.command("evaluate")
@reads("original", "Original file, or database address.")
def evaluate_command(
    original: "Source",
    protected: Annotated[
        str, typer.Argument(help="Protected file; for Spark any location with Parquet.")
    ],
    detail: Annotated[
        str | None, typer.Option(help="Private detail, which holds the order of rows.")
    ] = None,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="The release was written with --keep-order.")
    ] = False,
    target: TargetColumn = None,
    quasi_identifier: Annotated[list[str] | None, QUASI_IDENTIFIER] = None,
    use: UseOption = None,
    known: KnownColumns = None,
    people: People = 1.0,
    engine: EngineOption = "memory",
    master: Master = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    report: Report = None,
    overwrite: Overwrite = False,
) -> None:
    """Measure how useful and how risky a release is, compared with its original.

    For files larger than memory, and on Spark, a sample of people is searched for in the whole
    release; every figure says so.
    Measures that compare record by record need the private detail or a release written with
    --keep-order; either is found if it is next to the protected file. The figures are computed from
    the original data: keep them private.
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
            uses=use or (),
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


@app.command("audit")
@reads("data")
def audit_command(
    data: "Source",
    plan: Annotated[Path, typer.Option(help="Plan in TOML.")],
    runs: Annotated[int, typer.Option(help="Number of runs on each table.")] = 10_000,
    releases: Annotated[
        int | None,
        typer.Option(
            help="Number of releases; default: one per 25 runs, between 20 and 400, and 100 of a "
            "synthetic release, whose exact loss is replayed."
        ),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after about this long.")] = None,
    seed: Seed = None,
) -> None:
    """Attack releases of your own table to test the guarantee.

    Reports which changes of a record an attacker can detect and which values are pinned down.
    Writes nothing. The figures are computed from the original data: keep them private.
    """
    from microveil.lab.audit import Audit, audit
    from microveil.lab.audit.replayed import Replay, replay
    from microveil.plan.plan import Plan, read_plan_text
    from microveil.plan.problems import located

    with located(read_plan_text(plan)), _progress(quiet=False) as progress:
        planned = Plan.read(plan)
        outcome: Audit | Replay
        if planned.release == "synthetic":
            outcome = replay(data, planned, runs=releases or 100, seed=seed, progress=progress)
        else:
            outcome = audit(
                data,
                planned,
                runs=runs,
                releases=releases,
                seconds=seconds,
                seed=seed,
                progress=progress,
            )
    _say(outcome)
    if outcome.broken:
        raise MicroveilError("the mechanism failed the audit, see above; please report this")


@app.command("explore")
@reads("data")
def explore_command(
    data: "Source",
    plan: Annotated[
        Path | None, typer.Option(help="Plan in TOML, for its roles and domains.")
    ] = None,
    target: TargetColumn = None,
    epsilon: EpsilonsTried = None,
    max_linkage: Annotated[
        float, typer.Option(help="Largest share of rows that an attack may link.")
    ] = 0.1,
    max_error: Annotated[
        float | None, typer.Option(help="Largest mean SSE; default: no limit.")
    ] = None,
    min_anonymity: Annotated[
        int, typer.Option(help="Smallest number of records in a joint cluster; 0 for no limit.")
    ] = 0,
    runs: Annotated[int, typer.Option(help="Number of runs of every measured plan.")] = 3,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Recommended plan to write.")
    ] = None,
    svg: Annotated[
        Path | None, typer.Option(help="Chart to write; needs microveil[report].")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods, clusters and budgets on a file and recommend a plan.

    The figures and charts are computed from the original data: keep them private.
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
        raise PlanError(
            f"no measured plan keeps to the limits, so {output} was not written; loosen a limit or "
            "try other budgets"
        )
    contents = {".toml": found.plan.to_toml if found.plan else str, ".svg": found.to_svg}
    if wanted:
        with moved_into_place(list(wanted)) as temporary:
            for path, ending in zip(temporary, wanted.values(), strict=True):
                path.touch(mode=0o600)  # they depend on the data
                path.write_text(contents[ending](), encoding="utf-8")
    _say(found, quiet=quiet)
    for path in wanted:
        _say(f"Wrote {path}", quiet=quiet)


@app.command("benchmark")
def benchmark_command(
    data: Annotated[
        list[str] | None,
        typer.Argument(help='Files, or "census", "wine" or "sample"; default: sample.'),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="Plan in TOML, for its roles and domains; also attacked."),
    ] = None,
    target: TargetColumn = None,
    epsilon: EpsilonsTried = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory to write to.")] = Path(
        "microveil-benchmark"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Attack 400 records of each table instead of 1,200.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="Number of repetitions.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Attack releases of a table made by many methods, and plot risk against usefulness.

    Writes results.parquet and one map per table, and resumes where it was stopped. The figures and
    maps are computed from the original data: keep them private.
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


@app.command("reproduce")
def reproduce_command(
    data: Annotated[Path | None, typer.Option(help="Directory with the paper's data sets.")] = None,
    out: Annotated[Path, typer.Option(help="Directory to write to.")] = Path("microveil-paper"),
    runs: Annotated[int, typer.Option(help="Number of repetitions of every experiment.")] = 10,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most three repetitions, and few values of k.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Repeat every experiment of the paper and check every claim about its results.

    Writes results.parquet, four figures and claims.md, and resumes where it was stopped.
    """
    from microveil.lab.paper import reproduce

    with _progress(quiet=quiet) as progress:
        written = reproduce(data, out, runs, quick, progress)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in written.verdicts.items())
    _say(f"Claims of the paper: {verdicts}. See {written.claims}", quiet=quiet)
    for figure in written.figures:
        _say(f"Figure {figure}", quiet=quiet)


@app.command("demo")
def demo_command(
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory to write to.")] = Path(
        "microveil-demo"
    ),
    epsilon: Annotated[
        float | None,
        typer.Option(help="Privacy budget; default: 1 per person, 8 per household."),
    ] = None,
    survey: Annotated[
        bool,
        typer.Option("--survey", help="Use a survey of 30,000 people in 12,000 households."),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Protect a bundled sample of fictitious people and show it before and after."""
    from microveil.cli.demo import run_demo

    with _progress(quiet=False) as progress:
        parts = run_demo(
            output, epsilon=epsilon, households=survey, overwrite=overwrite, progress=progress
        )
    for part in parts:
        _say(part)


@app.command("app")
def app_command(
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8501,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the browser.")
    ] = False,
    ledger: Annotated[
        list[Path] | None, typer.Option(help="Ledger that the page may enter releases into.")
    ] = None,
    key_file: Annotated[
        list[Path] | None, typer.Option(help="Key file of pseudonyms that the page may use.")
    ] = None,
) -> None:
    """Open a page in the browser that leads from a file to its release.

    It listens on 127.0.0.1 only: nobody else on the network can reach the data. The address that is
    printed lets one browser in, once. The page reads no file of this machine but those named here.
    """
    from secrets import token_urlsafe

    from microveil.app.server import NAMED, WHY, address, check_server, serve

    check_server(port)
    NAMED.ledgers = tuple(str(path.absolute()) for path in ledger or ())
    NAMED.keys = tuple(str(path.absolute()) for path in key_file or ())
    token = token_urlsafe(32)
    _say(f"The page is at {address(port, token)}\n{WHY}")
    serve(port, token, browser=not no_browser)


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
