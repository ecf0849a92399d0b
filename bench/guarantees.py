"""Error of the guarantee that survives re-clustering, beside the published methods.

Census and Wine Quality, domains [0, 1.5·max], ε = 1, ten runs; log10 of mean SSE in standard
deviations.
"""

from collections.abc import Iterator
from typing import Any

from bench.paper import load_with_domains, log_mean_sse
from microveil.lab.paper.datasets import CENSUS, WINE
from microveil.plan.plan import Plan

K = (50, 100, 200, 400)
PUBLISHED_K = (3, 5, 10, 15, 25, 50, 100, 200, 400)


def plans() -> Iterator[tuple[str, dict[str, Any], tuple[int, ...]]]:
    """List rows of the table: label, settings, values of k."""
    for method in ("DP-UM", "iDP-LS", "iDP-CBLS"):
        yield f"{method}, published", {"method": method}, PUBLISHED_K
    for post in ("none", "isotonic", "penalised-isotonic"):
        for method in ("DP-UM", "iDP-LS", "iDP-CBLS"):
            settings = {"method": method, "guarantee": "re-clustered", "post": post}
            yield f"{method}, re-clustered, post = {post}", settings, K


def main() -> None:
    """Print the best k and its error for each row and data set."""
    for dataset in (CENSUS, WINE):
        table, attributes = load_with_domains(dataset)
        print(f"{dataset.name}: {table.height:,} records × {table.width} attributes, ε = 1")
        for label, settings, ks in plans():
            errors = {
                k: log_mean_sse(
                    table, Plan.published(epsilon=1.0, k=k, attributes=attributes, **settings)
                )
                for k in ks
                if k <= table.height
            }
            best = min(errors, key=lambda k: errors[k])
            print(f"  {label:<48} log10 mean SSE {errors[best]:6.2f} at k = {best}")


if __name__ == "__main__":
    main()
