"""Attacks × methods × ε × data: how risky and how useful releases are, on one map."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

import microveil
from microveil.attacks.registry import CONTROLLED, Attack
from microveil.errors import PlanError
from microveil.lab.benchmark.benchmark_data import Data, open_data
from microveil.lab.benchmark.jobs import Job
from microveil.lab.benchmark.peers import REFERENCES, Candidate, candidates
from microveil.lab.paper.runner import run_parts
from microveil.plan.plan import Plan
from microveil.shown import Shown
from microveil.types import Progress, UserTable

__all__ = ["Benchmark", "benchmark"]

EPSILONS = (0.01, 0.1, 1.0)
QUICK_RECORDS, RECORDS = 400, 1_200


@dataclass(frozen=True, eq=False)
class Benchmark(Shown):
    """What was measured. It is a function of the data: private, unless these are public.

    Attributes
    ----------
    results
        One row per attack: see `microveil.lab.benchmark.jobs.SCHEMA`.
    """

    results: pl.DataFrame

    @property
    def names(self) -> list[str]:
        """The tables, in the order in which they were given."""
        return self.results["data"].unique(maintain_order=True).to_list()

    def points(self, name: str) -> pl.DataFrame:
        """Return the points of one table's map: see `microveil.lab.benchmark.map_points`."""
        from microveil.lab.benchmark.map_points import points_of

        return points_of(self.results.filter(data=name))

    def map_as_svg(self, name: str) -> str:
        """Draw the map of one table."""
        from microveil.lab.benchmark.drawing import draw
        from microveil.show.charts.render import to_svg

        return to_svg(draw(name, self.points(name)))


def benchmark(
    data: UserTable,
    plan: Plan | None = None,
    *,
    epsilons: Sequence[float] = EPSILONS,
    target: str | None = None,
    quick: bool = False,
    seeds: int = 1,
    parts: Path | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """Attack releases of a table by many methods, and measure what they are still good for.

    Nine attacks, each with a control, on the masked attributes of the paper's four methods, of what
    is recommended, and of plans between: see `docs/findings.md`. Columns that are kept, derived or
    dropped take no part.

    Parameters
    ----------
    data
        As for `protect`; ``"census"``, ``"wine"`` or ``"sample"`` for the paper's data sets and the
        bundled sample.
    plan
        Roles and domains, and a point of its own. By default the roles that `microveil plan`
        proposes.
    epsilons
        The budgets to compare.
    target
        The name of a column that is not confidential and holds classes to learn.
    quick
        Attack 400 records, drawn at random, instead of 1,200.
    seeds
        How often everything is done, each time with other noise.
    parts
        A directory that keeps what is done, so that a run that was stopped goes on.
    progress
        Called after every candidate.
    """
    if seeds < 1:
        raise PlanError(f"seeds must be 1 or more, got {seeds}")
    opened = open_data(data, plan, target).some(QUICK_RECORDS if quick else RECORDS)
    return run_candidates(opened, candidates(opened, epsilons), seeds, parts, progress)


def attack_beside_others(
    data: UserTable,
    plan: Plan,
    progress: Progress | None = None,
    attacks: Sequence[Attack] = CONTROLLED,
) -> Benchmark:
    """Attack a plan and others at its ε on 400 records at most, in this process."""
    opened = open_data(data, plan).some(QUICK_RECORDS)
    compared = [c for c in candidates(opened, [plan.epsilon]) if c.family != REFERENCES]
    each = []
    for done, candidate in enumerate(compared):
        if progress:
            progress("attacking", done, len(compared))
        each.append(Job(opened, candidate, 0, attacks)())
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
    jobs = [Job(data, each, seed, attacks) for seed in range(seeds) for each in compared]
    if parts is None:
        with TemporaryDirectory() as directory:
            return Benchmark(_run(jobs, Path(directory), progress))
    return Benchmark(_run(jobs, parts, progress))


def _run(jobs: Sequence[Job], parts: Path, progress: Progress | None) -> pl.DataFrame:
    parts.mkdir(mode=0o700, parents=True, exist_ok=True)  # what is kept depends on the data
    directory = parts / _edition(jobs[0].data)
    paths = {directory / f"{job.name}.parquet": job for job in jobs}
    return run_parts(paths, progress, what="attacking")


def _edition(data: Data) -> str:
    """Digest the table, its plan and the program: whatever changes results changes it."""
    digest = sha256(data.plan.to_toml().encode())
    digest.update(data.table.hash_rows(seed=1).to_numpy().tobytes())
    for path in sorted(Path(microveil.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
