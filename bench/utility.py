"""How much error each lever takes away at the same ε, alone and together.

Census and Wine Quality, domains [0, 1.5·max], ten runs; log10 of mean SSE in standard deviations.
"""

from typing import Any

from bench.paper import load_with_domains, log_mean_sse
from microveil.lab.paper.datasets import CENSUS, WINE
from microveil.plan.plan import Plan

EPSILONS = (0.01, 0.1, 1.0)
PUBLISHED_K = (3, 5, 7, 10, 15, 25, 50, 100, 200)
LEVERS: dict[str, dict[str, Any]] = {
    "k chosen": {"k": "auto", "post": "none"},
    "isotonic alone, k = 10": {"k": 10, "post": "isotonic"},
    "penalised isotonic alone, k = 10": {"k": 10, "post": "penalised-isotonic"},
    "k chosen, penalised isotonic": {"k": "auto", "post": "penalised-isotonic"},
    "least squares, k = 10": {"k": 10, "partition": "least-squares", "post": "none"},
    "noise-optimal alone": {"k": 3, "partition": "noise-optimal", "post": "none"},
    "noise-optimal and isotonic": {"k": 3, "partition": "noise-optimal", "post": "isotonic"},
}


def main() -> None:
    """Print a table of log10 mean SSE."""
    for dataset in (CENSUS, WINE):
        table, attributes = load_with_domains(dataset)
        print(f"{dataset.name}: log10 mean SSE at ε = {', '.join(map(str, EPSILONS))}")
        published = [
            min(
                log_mean_sse(table, Plan.published(epsilon=epsilon, k=k, attributes=attributes))
                for k in PUBLISHED_K
            )
            for epsilon in EPSILONS
        ]
        print(_row("published iDP-CBLS, best k", published))
        for label, settings in LEVERS.items():
            plans = [Plan.published(epsilon=e, attributes=attributes, **settings) for e in EPSILONS]
            print(_row(label, [log_mean_sse(table, plan) for plan in plans]))
        plans = [Plan(epsilon=e, anonymity=0, attributes=attributes) for e in EPSILONS]
        print(_row("all: recommended, not pooled", [log_mean_sse(table, p) for p in plans]))


def _row(label: str, errors: list[float]) -> str:
    return f"  {label:<34}" + "".join(f"{error:8.2f}" for error in errors)


if __name__ == "__main__":
    main()
