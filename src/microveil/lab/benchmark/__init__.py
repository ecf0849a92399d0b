"""Attacks × methods × ε × data: risk and usefulness of releases on one map."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import microveil
from microveil.attacks.attack_rows import CONTROLLED, Attack
from microveil.errors import PlanError
from microveil.lab.benchmark.benchmark_data import Data, open_data
from microveil.lab.benchmark.benchmark_result import Benchmark
from microveil.lab.benchmark.jobs import BenchmarkJob
from microveil.lab.benchmark.peers import REFERENCES, Candidate, list_candidates
from microveil.lab.paper.experiments import PAPER_EPSILONS
from microveil.lab.paper.runner import run_parts
from microveil.plan.plan import Plan
from microveil.types import Progress, UserTable

__all__ = ["Benchmark", "benchmark"]

QUICK_RECORDS, RECORDS = 400, 1_200


def benchmark(
    data: UserTable,
    plan: Plan | None = None,
    *,
    epsilons: Sequence[float] = PAPER_EPSILONS,
    target: str | None = None,
    quick: bool = False,
    seeds: int = 1,
    parts: Path | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """Attack releases of a table by many methods, and measure how useful they remain.

    Runs every attack that has a control on the masked attributes of releases by the paper's four
    methods, by the recommended plan and by plans in between: see `docs/findings.md`. Columns that
    are kept, derived or dropped are left out.

    Parameters
    ----------
    data
        As for `protect`; ``"census"``, ``"wine"`` or ``"sample"`` for the paper's data sets and the
        bundled sample. The paper's data sets have classes and need ``microveil[learning]``.
    plan
        Roles and domains; the plan is also a point on the map. By default the roles that
        `microveil plan` proposes.
    epsilons
        The budgets to compare.
    target
        Name of a column that is not confidential and holds classes to learn; needs
        ``microveil[learning]``.
    quick
        Attack 400 records, drawn at random, instead of 1,200.
    seeds
        Number of repetitions, each with different noise.
    parts
        Directory for finished parts, so that an interrupted run can continue.
    progress
        Called after every candidate.
    """
    if seeds < 1:
        raise PlanError(f"seeds must be 1 or more, got {seeds}")
    opened = open_data(data, plan, target).some(QUICK_RECORDS if quick else RECORDS)
    return run_candidates(opened, list_candidates(opened, epsilons), seeds, parts, progress)


def attack_beside_others(
    data: UserTable,
    plan: Plan,
    progress: Progress | None = None,
    attacks: Sequence[Attack] = CONTROLLED,
) -> Benchmark:
    """Attack a plan and others at its ε, on at most 400 records, in this process."""
    opened = open_data(data, plan).some(QUICK_RECORDS)
    compared = [c for c in list_candidates(opened, [plan.epsilon]) if c.family != REFERENCES]
    each = []
    for done, candidate in enumerate(compared):
        if progress:
            progress(candidate.name, done, len(compared))
        each.append(BenchmarkJob(opened, candidate, 0, attacks)())
    return Benchmark(pl.concat(each))


def run_candidates(
    data: Data,
    compared: Sequence[Candidate],
    seeds: int,
    parts: Path | None,
    progress: Progress | None,
    attacks: Sequence[Attack] = CONTROLLED,
) -> Benchmark:
    """Attack every candidate with every seed, in parallel."""
    jobs = [BenchmarkJob(data, each, seed, attacks) for seed in range(seeds) for each in compared]
    if parts is None:
        with TemporaryDirectory() as directory:
            return Benchmark(_run(jobs, Path(directory), progress))
    return Benchmark(_run(jobs, parts, progress))


def _run(jobs: Sequence[BenchmarkJob], parts: Path, progress: Progress | None) -> pl.DataFrame:
    parts.mkdir(mode=0o700, parents=True, exist_ok=True)  # private
    directory = parts / _edition(jobs[0].data)
    paths = {directory / f"{job.name}.parquet": job for job in jobs}
    return run_parts(paths, progress, what="attacking")


def _edition(data: Data) -> str:
    """Hash the table, its plan and the program: everything that can change the results."""
    digest = sha256(data.plan.to_toml().encode())
    digest.update(data.table.hash_rows(seed=1).to_numpy().tobytes())
    for path in sorted(Path(microveil.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
