"""The whole reproduction: load data, run experiments, draw figures, judge claims."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from microveil.errors import PlanError
from microveil.formats import moved_into_place
from microveil.lab.paper.claims import ClaimVerdict
from microveil.lab.paper.claims.document import write_claims
from microveil.lab.paper.datasets import DATA_SETS, load_data_set, make_directory
from microveil.lab.paper.diagnosis import Diagnosis, diagnose
from microveil.lab.paper.experiments import KS, QUICK_KS, QUICK_RUNS, RUNS, list_experiments
from microveil.lab.paper.runner import run_experiments
from microveil.measures.learning import scikit_learn
from microveil.types import Progress


@dataclass(frozen=True)
class Reproduction:
    """What was written, and how many of the paper's claims got each verdict."""

    results: Path
    claims: Path
    figures: tuple[Path, ...]
    verdicts: Mapping[ClaimVerdict, int]


def reproduce(
    data_dir: Path | None,
    out: Path,
    runs: int = RUNS,
    quick: bool = False,
    progress: Progress | None = None,
) -> Reproduction:
    """Repeat every experiment of the paper; needs ``microveil[paper]``.

    Writes ``results.parquet`` (the figures of every run), four charts as SVG and PNG, and
    ``claims.md``. Finished experiments are kept in ``parts`` and not repeated, so an interrupted
    reproduction resumes where it stopped, and a full one continues a quick one.

    Parameters
    ----------
    data_dir
        Directory of the data sets. By default the directory in the environment variable
        MICROVEIL_DATA, then the cache, then a download from their public addresses.
    out
        Directory to write to; created if it does not exist.
    runs
        Number of repetitions of every experiment, each with different noise.
    quick
        A few values of k and at most three runs.
    progress
        Called with the current step, how much of it is done, and how much there is.
    """
    if runs < 1:
        raise PlanError(f"runs must be 1 or more, got {runs}")
    import microveil.lab.paper.paper_figures  # noqa: F401 - names a missing extra, as does the next

    scikit_learn()
    make_directory(out)
    tables = {
        name: load_data_set(known, data_dir, progress=progress) for name, known in DATA_SETS.items()
    }
    runs = min(runs, QUICK_RUNS) if quick else runs
    results = run_experiments(list_experiments(runs, quick=quick), tables, out / "parts", progress)
    return write_reproduction(results, diagnose(tables, QUICK_KS if quick else KS, runs), out)


def write_reproduction(results: pl.DataFrame, diagnosis: Diagnosis, out: Path) -> Reproduction:
    """Write results, claims and figures.

    Parameters
    ----------
    results
        One row per release, as `microveil.lab.paper.experiments` describes them.
    diagnosis
        What explains them.
    out
        Directory to write to.
    """
    from microveil.lab.paper.paper_figures import draw_figures

    document, verdicts = write_claims(results, diagnosis)
    results_path, claims_path = out / "results.parquet", out / "claims.md"
    with moved_into_place([results_path, claims_path]) as (parquet, claims):
        results.write_parquet(parquet)
        claims.write_text(document, encoding="utf-8")
    return Reproduction(results_path, claims_path, tuple(draw_figures(results, out)), verdicts)
