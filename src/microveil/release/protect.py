"""The straight line: resolve → prepare → mask attributes → pool → keep rules → finish."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from microveil.engines.base import MaskingEngine, OpenTable, Pooled, Shift
from microveil.engines.memory import memory_table, open_table
from microveil.engines.refusals import no_lasting_clusters
from microveil.errors import DataError, FileWarning, PlanError, PrivacyWarning, noted, warn
from microveil.formats import load_table
from microveil.plan.plan import Plan
from microveil.release.assumptions import assumptions_of
from microveil.release.budget_shares import warn_of_small_shares
from microveil.release.certificate import certify
from microveil.release.choose_k import resolve_and_choose
from microveil.release.detail import Detail
from microveil.release.histories import shown_classes
from microveil.release.key import Key, key_of
from microveil.release.ledger import reserved
from microveil.release.persistent import Joining, joining
from microveil.release.release import Release, check_order
from microveil.release.resolve import ResolvedPlan
from microveil.release.rule_outcomes import as_table, outcomes_of
from microveil.release.store import LocalStore, Store
from microveil.release.synthesise_here import synthesise_in_memory
from microveil.types import Progress, UserTable


def protect(
    data: UserTable,
    plan: Plan | None = None,
    *,
    keep_order: bool = False,
    ledger: str | Path | None = None,
    key: str | Path | None = None,
    joint: str | Path | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Protect a table of people.

    Guarantee
    ---------
    With clusters and noise scales fixed, the masked values of a table and of any neighbour are
    within a factor exp(ε) of each other in probability: attribute a pays its share ε_a, and the
    shares add up to ε. The certificate says what happens when clusters are formed again, and what
    the released table shows besides.

    Parameters
    ----------
    data
        A Polars or pandas DataFrame, a Polars LazyFrame, a PyArrow Table, a Spark DataFrame, the
        path of a file, or a `Source` that says how to read one. A pandas index is dropped, with a
        warning unless it only numbers the rows.
    plan
        What to do with each attribute. Without one, `Plan.propose` proposes it; `Release.assumed`
        lists what it takes for granted and `Release.plan` is there to edit.
    keep_order
        Leave the rows of `Release.data` in the order of a table in memory, instead of a random one.
        It tells who is who, and the certificate says so. What `Release.write` writes is in random
        order unless it is told to keep the order, and on Spark `Release.data` always is.
    ledger
        The ledger of these people, by default the plan's, into which the release is entered; see
        `microveil ledger`. If it would spend more than is left of their budget, it is refused
        before any work is done. Once `protect` returns it is spent, whether or not it is written.
    key
        The file with the key of pseudonyms, which a plan with pseudonyms needs; `microveil key`
        makes one. Keep it apart from releases.
    joint
        The file of joint clusters of these people, which `microveil joint` begins: persons keep
        joint clusters and pseudonyms from release to release where that does not give them away.
        Once `protect` returns the release is entered.
    seed
        For experiments only: repeatable noise. The certificate then says 'not for publication',
        and nothing is entered into a ledger or a file of joint clusters.
    progress
        Called after every attribute and every group that is pooled.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [31, 35, 38, 52, 57, 58] * 5})
    >>> plan = Plan(epsilon=1.0, attributes={"age": "confidential"})
    >>> release = protect(people, plan)
    >>> len(release.data), release.certificate.attributes[0].epsilon
    (30, 1.0)
    """
    if plan is None:
        if key is not None or joint is not None:
            raise PlanError("key and joint go with a plan; Plan.propose(table) proposes one")
        return _protect_as_proposed(
            data, keep_order=keep_order, ledger=ledger, seed=seed, progress=progress
        )
    require_plan(plan)
    check_order(plan, keep_order=keep_order)
    secret, on_spark = key_of(plan, key, seed), type(data).__module__.startswith("pyspark.")
    with (
        reserved(plan, ledger, seed, here=not on_spark) as spending,
        joining(plan, joint, secret, seed, keep_order=keep_order) as joined,
    ):
        release = _protect(data, plan, secret, joined, seed, progress).entered(spending)
    return release if keep_order else release.shuffled()


def _protect_as_proposed(
    data: UserTable,
    *,
    keep_order: bool,
    ledger: str | Path | None,
    seed: int | None,
    progress: Progress | None,
) -> Release:
    """Propose a plan and protect by it; one warning says that there is something to read."""
    from microveil.plan.propose.proposal import propose

    if type(data).__module__.startswith("pyspark."):
        raise PlanError("a table on Spark needs a plan; propose one from a sample: Plan.propose")
    read = load_table(data)
    proposed = propose(open_table(read.data).to_native(), "a table", read.meta.described)
    plan = Plan.from_toml(proposed.toml)
    with noted() as notes:
        release = protect(
            data, plan, keep_order=keep_order, ledger=ledger, seed=seed, progress=progress
        )
    assumed = assumptions_of(plan)
    warn(
        f"no plan was given, so microveil assumed {len(assumed)} things: print(release) lists "
        "them; to change them, edit the plan that Plan.propose(table) returns",
        PrivacyWarning,
    )
    return replace(release, assumed=assumed, warned=tuple(notes))


def _protect(
    data: UserTable, plan: Plan, key: Key, joined: Joining | None, seed: int | None,
    progress: Progress | None,
) -> Release:  # fmt: skip
    """Walk the line on the engine that suits the table."""
    if type(data).__module__.startswith("pyspark."):
        if joined is not None:
            raise no_lasting_clusters()
        from microveil.engines.spark.spark_engine import SparkTable
        from microveil.release.spark_store import SparkStore

        if plan.release == "synthetic":
            raise PlanError(
                'release = "synthetic" does not run on Spark yet; write the table as a Parquet '
                "file, and protect that: files larger than memory need little of it",
                setting="release",
            )
        if plan.na:
            raise PlanError("na applies to files; set these values to null in Spark", setting="na")
        spark = SparkStore(data.sparkSession)
        spark.remove_leftovers()
        opened: OpenTable = SparkTable.open(data, plan, seed)
        return run_plan(plan, opened, spark, seed=seed, progress=progress, key=key)
    _tell_of_index(data)
    read = load_table(data, **plan.reading)
    if plan.release == "synthetic":
        made = synthesise_in_memory(read.data, plan, read.meta, seed, progress)
        return replace(made, original=read.data)
    opened = memory_table(read.data, inferred=read.meta.inferred, codes=read.meta.codes)
    store = LocalStore(read.meta)
    made = run_plan(plan, opened, store, seed=seed, progress=progress, key=key, joined=joined)
    return replace(made, original=read.data)


def _tell_of_index(data: UserTable) -> None:
    """Warn of a pandas index that is dropped, unless it only numbers the rows."""
    if not type(data).__module__.startswith("pandas"):
        return
    named = [str(name) for name in data.index.names if name is not None]
    if named or data.index.dtype.kind not in "iu":
        which = (
            f"the index {', '.join(map(repr, named))}" if named else "the index, which has no name,"
        )
        warn(
            f"{which} is dropped; to give it a role, make it a column with reset_index()",
            FileWarning,
        )


def require_plan(plan: Plan) -> None:
    """Refuse what is not a plan."""
    if not isinstance(plan, Plan):
        raise PlanError(
            f"plan must be a microveil.Plan, got {type(plan).__name__}; "
            "Plan.read reads one from a TOML file"
        )


def run_plan(
    plan: Plan,
    table: OpenTable,
    store: Store,
    *,
    seed: int | None,
    progress: Progress | None,
    key: Key | None = None,
    joined: Joining | None = None,
) -> Release:
    """Walk the line on a table; what was stored on the way goes if it fails."""
    try:
        resolved = resolve_and_choose(plan, table)
        warn_of_small_shares(resolved, table)
        return run_resolved(
            resolved, table, store, seed=seed, progress=progress, key=key, joined=joined
        )
    except BaseException:
        table.discard()
        raise


def run_resolved(
    resolved: ResolvedPlan,
    table: OpenTable,
    store: Store,
    *,
    seed: int | None,
    progress: Progress | None = None,
    key: Key | None = None,
    joined: Joining | None = None,
) -> Release:
    """Mask the table that the plan was resolved against.

    Without a key, pseudonyms are made with one that is thrown away.
    """
    plan, key = resolved.plan, key or Key.throwaway()
    table = table.prepared(resolved.preparation)
    engine = table.engine()
    if joined is None:
        _hide_people(engine, plan, key, key.pseudonym)
    else:
        engine.last(joined.lasting, resolved.pools[0])
    losses = _mask(engine, resolved, seed, progress)
    pooled = _pool(engine, resolved, seed, progress)
    if joined is not None:
        _hide_people(engine, plan, key, joined.pseudonym)
    rules = outcomes_of(resolved, table, *engine.keep_rules(resolved.rules, resolved.systems))
    derived = {name: plan.derived[name] for name in plan.derivation_order}
    rows = engine.finish(resolved.columns, derived)
    certificate = certify(resolved, pooled, records=table.records, seeded=seed is not None)
    if joined is not None:
        certificate = certificate.with_lasting_clusters(joined.before)
    joint = {names: label for one in pooled for names, label in one.joint.items()}
    unit = pooled[0].unit if pooled else None
    return Release(
        rows=rows,
        certificate=certificate.arranged(rows.row_order),
        detail=Detail(
            engine.clusters([a.name for a in resolved.attributes]),
            losses,
            rows.positions,
            plan,
            joint=joint,
            rules=as_table(rules) if rules else None,
        ),
        rules=rules,
        plan=plan,
        store=store,
        seed=seed,
        key=key,
        joined=joined,
        classes=partial(shown_classes, rows, joint, unit, plan),
    )


def _hide_people(
    engine: MaskingEngine, plan: Plan, key: Key, pseudonym: Callable[[str], str]
) -> None:
    """Put pseudonyms in the place of identifiers, and move dates with their people."""
    people = plan.names("pseudonym")
    shifts = {
        name: Shift(people[0], partial(key.shift, days=attribute.days))
        for name, attribute in plan.shifted.items()
    }
    for name, most in engine.hide(dict.fromkeys(people, pseudonym), shifts).items():
        if len(people) == 1 and plan.unit is None and most > plan.records_per_person:
            raise DataError(
                f"epsilon protects a whole person, who has up to {most:,} records by these "
                f"pseudonyms, got records_per_person = {plan.records_per_person:,}; set it to "
                f"{most:,} or more",
                attribute=name,
                setting="records_per_person",
            )


def _mask(
    engine: MaskingEngine, resolved: ResolvedPlan, seed: int | None, progress: Progress | None
) -> pl.DataFrame:
    """Mask every attribute; return what a record can lose in each."""
    losses, attributes, steps = [], resolved.attributes, _steps(resolved)
    with ThreadPoolExecutor(engine.threads) as threads:
        rows = threads.map(lambda attribute: engine.mask(attribute, seed), attributes)
        for done, (attribute, row) in enumerate(zip(attributes, rows, strict=True), start=1):
            losses.append(row)
            if progress:
                progress(f"masking {attribute.name}", done, steps)
    return pl.concat(losses)


def _pool(
    engine: MaskingEngine, resolved: ResolvedPlan, seed: int | None, progress: Progress | None
) -> list[Pooled]:
    """Pool masked values, one group after the other."""
    pooled = []
    for done, pool in enumerate(resolved.pools, start=len(resolved.attributes) + 1):
        pooled.append(engine.pool(pool, seed))
        if progress:
            progress(f"pooling {', '.join(pool.names)}", done, _steps(resolved))
    return pooled


def _steps(resolved: ResolvedPlan) -> int:
    return len(resolved.attributes) + len(resolved.pools)
