"""The map in docs/explanation/findings.md: attacks × methods × ε on Census and Wine Quality.

Writes docs/findings/results.parquet and a map of each data set; keeps what is done in
`bench-map/`, so that a run that was stopped goes on. Both data sets are public, and so are the
results. About 20 minutes of processor time. Wine Quality is a random sample of 1,200 of its 4,898
records, the same every time.
"""

import argparse
from pathlib import Path

import polars as pl

from bench.peers import peers
from microveil.lab.benchmark import RECORDS, Benchmark, run_candidates
from microveil.lab.benchmark.benchmark_data import KNOWN, open_data
from microveil.lab.benchmark.peers import list_candidates
from microveil.lab.benchmark.results_file import write_benchmark
from microveil.lab.paper.experiments import PAPER_EPSILONS

FINDINGS = Path(__file__).parent.parent / "docs" / "findings"
PARTS = Path("bench-map")


def main() -> None:
    """Run everything that is missing, and write results and maps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    each = [_run(name, given.seeds) for name in KNOWN]
    found = Benchmark(pl.concat(one.results for one in each))
    FINDINGS.mkdir(exist_ok=True)
    for path in write_benchmark(found, FINDINGS):
        path.chmod(0o644)
        print(f"wrote {path}")


def _run(name: str, seeds: int) -> Benchmark:
    data = open_data(name).some(RECORDS)
    compared = [*list_candidates(data, PAPER_EPSILONS), *peers()]

    def show(_: str, done: int, total: int) -> None:
        print(f"{data.name}: {done} of {total}", flush=True)

    return run_candidates(data, compared, seeds, PARTS, show)


if __name__ == "__main__":
    main()
