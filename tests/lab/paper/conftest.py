"""What several tests of the reproduction share."""

from collections.abc import Iterator
from itertools import product
from math import log
from pathlib import Path

import polars as pl
import pytest

from microveil.lab.paper.datasets import CENSUS, DataSet
from microveil.lab.paper.experiments import (
    ALPHAS,
    CONSTANT,
    EXPERIMENT_COLUMNS,
    MICROVEIL,
    NOISELESS,
    ORIGINAL,
    PAPER_EPSILONS,
)

KS = (3, 5, 10, 15, 50, 100)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep tests away from the user's cache and settings; the cache is here instead."""
    monkeypatch.delenv("MICROVEIL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "microveil"


@pytest.fixture(scope="session")
def tiny() -> DataSet:
    """A data set of three records."""
    return DataSet(
        name="Tiny",
        file_names=("tiny.csv", "tiny.zip"),
        home="https://example.org/tiny",
        urls=(),
        records=3,
        columns={"wage": 7.5, "tax rate": 6.0, "class": 3.0},
        attributes=("tax rate", "wage"),
        class_column="class",
        class_above=0,
        class_names=("none", "some"),
        second_class=2,
    )


@pytest.fixture(scope="session")
def as_published() -> pl.DataFrame:
    """Results as the paper describes them, and a line for microveil, made up."""
    return pl.DataFrame(list(_rows()), schema=EXPERIMENT_COLUMNS)


def _rows() -> Iterator[dict[str, object]]:
    for dataset, run in product(("Census", "Wine Quality"), (1, 2)):
        jitter = 1 + 0.0002 * (run - 1.5)
        wine = dataset != CENSUS.name
        bound = (0.85, 0.5) if wine else (0.9, 0.92)

        def row(method: str, *, at: tuple[float | None, ...], sse: float | None = None,
                f: tuple[float, float] | None = None, correlation: float = 0.5,
                dataset: str = dataset, run: int = run, jitter: float = jitter,
                ) -> dict[str, object]:  # fmt: skip
            alpha, epsilon, k = at
            return {
                "dataset": dataset, "method": method, "alpha": alpha, "epsilon": epsilon, "k": k,
                "run": run, "mean_sse_std": sse and sse * jitter,
                "mean_sse_variance": sse and 10 * sse * jitter, "correlation": correlation,
                "without_noise": 0.0, "f_first_class": f and f[0] * jitter,
                "f_second_class": f and f[1] * jitter,
            }  # fmt: skip

        yield row(ORIGINAL, at=(None, None, None), f=bound)
        yield row(CONSTANT, at=(None, None, None), f=(0.6, 0.4))
        for alpha, (place, epsilon) in product(ALPHAS, enumerate(PAPER_EPSILONS)):
            plain = 1e5 * (alpha / 1.5) ** 2 * (1, 0.97, 0.9)[place]
            yield row("DP", at=(alpha, epsilon, None), sse=plain, correlation=0.0)
            yield row(MICROVEIL, at=(alpha, epsilon, None),
                      sse=(5, 0.1, 0.04)[place] * alpha / 1.5,
                      f=_share(bound, (0.9, 0.95, 1.0)[place]))  # fmt: skip
            for k in KS:
                at = (alpha, epsilon, k)
                by_cluster = 0.99 * plain * (3 / k) ** (0.3, 0.6, 2.55)[place]
                yield row("DP-UM", at=at, sse=by_cluster)
                loss = (0.20, 0.10, 0.05)[place] + 0.3 / k + 0.01 * (alpha - 1.5)
                yield row("iDP-LS", at=at, sse=by_cluster * (0.98, 0.9, 0.7)[place],
                          f=_share(bound, 1 - loss))  # fmt: skip
                loss = (0.10, 0.03, 0.0)[place] + 0.02 * k / KS[-1] - 0.05 * (wine and place > 0)
                level = (20, 0.5, 0.05)[place]
                yield row("iDP-CBLS", at=at, sse=level * (1 + 0.2 * abs(log(k / 10))),
                          f=_share(bound, 1 - loss))  # fmt: skip
        for k in KS:
            yield row(NOISELESS, at=(None, None, k), sse=0.05 * k / 100,
                      f=_share(bound, 1 - 0.07 * k / KS[-1]))  # fmt: skip


def _share(bound: tuple[float, float], share: float) -> tuple[float, float]:
    return bound[0] * share, bound[1] * share
