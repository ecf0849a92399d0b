"""How often an audit calls broken what is not, and how long the default audit of Census takes.

Honest releases of small tables with noise from the operating system: numbers with and without
ties, categories and dates, every method, both guarantees and all post-processing.
"""

import sys
import time
import warnings
from itertools import product

import numpy as np
import polars as pl

from bench.paper import load_with_domains
from microveil import Confidential, Plan, audit
from microveil.core.choices import GuaranteeName, MethodName, Post
from microveil.lab.audit.audit_words import audit_in_words
from microveil.lab.paper.datasets import CENSUS

AUDITS = 400
ATTRIBUTES = {
    "pay": Confidential(lower=0, upper=100),
    "age": Confidential(lower=0, upper=30),
    "sex": Confidential(kind="nominal", categories=("f", "m")),
    "born": Confidential(lower=0, upper=9_000),
}


def table(random: np.random.Generator) -> pl.DataFrame:
    """Make up a small table."""
    records = int(random.integers(9, 40))
    return pl.DataFrame(
        {
            "pay": random.normal(50, 9, records).clip(0, 100),
            "age": random.integers(0, 6, records),
            "sex": random.choice(["f", "m"], records),
            "born": random.integers(0, 9_000, records),
        }
    )


def plans() -> list[Plan]:
    """List the plans in turn."""
    methods: tuple[MethodName, ...] = ("DP-UM", "iDP-LS", "iDP-CBLS")
    guarantees: tuple[GuaranteeName, ...] = ("fixed-clusters", "re-clustered")
    posts: tuple[Post, ...] = ("none", "isotonic", "penalised-isotonic")
    clustered = product(methods, guarantees, posts)
    return [Plan.published(epsilon=8.0, method="DP", attributes=ATTRIBUTES)] + [
        Plan.published(epsilon=8.0, k=3, method=m, guarantee=g, post=p, attributes=ATTRIBUTES)
        for m, g, p in clustered
    ]


def main() -> None:
    """Print the alarms of honest audits, and the audit of Census."""
    warnings.simplefilter("ignore")
    random, every = np.random.default_rng(), plans()
    audits = int(sys.argv[1]) if len(sys.argv) > 1 else AUDITS
    broken = 0
    for number in range(audits):
        outcome = audit(table(random), every[number % len(every)], runs=1_000, releases=60)
        if outcome.broken:
            broken += 1
            print("  ", audit_in_words(outcome).split(". ")[0])
    print(f"{broken} of {audits} honest audits called the mechanism broken", flush=True)
    census, attributes = load_with_domains(CENSUS)
    started = time.perf_counter()
    outcome = audit(census, Plan.published(epsilon=1.0, k=10, attributes=attributes))
    print(f"audit of Census: {time.perf_counter() - started:.0f} s; {audit_in_words(outcome)}")


if __name__ == "__main__":
    main()
