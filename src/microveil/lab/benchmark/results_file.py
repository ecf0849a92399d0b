"""A benchmark of several tables, written into a directory."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from microveil.errors import PlanError
from microveil.formats import moved_into_place
from microveil.lab.benchmark import Benchmark, benchmark
from microveil.lab.paper.datasets import make_directory
from microveil.plan.plan import Plan
from microveil.types import Progress


def benchmark_all(
    names: Sequence[str],
    plan: Plan | None,
    out: Path,
    *,
    epsilons: Sequence[float],
    target: str | None,
    quick: bool,
    seeds: int,
    progress: Progress | None,
) -> tuple[Benchmark, list[Path]]:
    """Benchmark every named table; write results and maps, and keep finished parts.

    Only the owner can read the files: they are computed from the data.
    """
    import microveil.show.charts.render  # noqa: F401 - says what to install, before any work is done

    if len(names) > 1 and (plan is not None or target is not None):
        raise PlanError(
            "a plan or a target applies to one table; name one table, or leave both out"
        )
    make_directory(out)
    each = [
        benchmark(
            name,
            plan,
            epsilons=epsilons,
            target=target,
            quick=quick,
            seeds=seeds,
            parts=out / "parts",
            progress=progress,
        )
        for name in names
    ]
    found = Benchmark(pl.concat(one.results for one in each))
    return found, write_benchmark(found, out)


def write_benchmark(found: Benchmark, out: Path) -> list[Path]:
    """Write results.parquet, and a map for each table."""
    from microveil.lab.benchmark.drawing import draw_map
    from microveil.show.charts.render import to_svg

    maps = {
        out / f"map-{_file_name(name)}.svg": to_svg(draw_map(name, found.points(name)))
        for name in found.names
    }
    paths = [out / "results.parquet", *maps]
    with moved_into_place(paths) as temporary:
        for path in temporary:
            path.touch(mode=0o600)
        found.results.write_parquet(temporary[0])
        for path, svg in zip(temporary[1:], maps.values(), strict=True):
            path.write_text(svg, encoding="utf-8")
    return paths


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
