"""How far records move: errors that compare records one by one.

With exchange, rows belong to nobody: the distance of a row from the record it stands for then says
little about what a table is good for.
"""

from collections.abc import Mapping

import numpy as np

from microveil.compare.asked import Asked, Scale
from microveil.compare.examined import Examined
from microveil.compare.figures import Fact, Figure, Items, NotComputed
from microveil.compare.pairing import deviation
from microveil.measures import distances
from microveil.types import Reals

MOVES = ("utility.mean_sse", "utility.sse_sst", "utility.il1s")


def move_figures(seen: Examined, asked: Asked) -> Items:
    """Compare records one by one: how far numbers have moved."""
    pair = seen.pair
    if not pair.numeric:
        yield NotComputed(MOVES, "no_numbers")
        return
    facts = {"exchanged": True} if seen.plan and seen.plan.exchanged else {}
    cells, moved = 0, 0.0
    for name, values, masked in pair.columns():
        if not deviation(values):
            yield NotComputed(("utility.sse_sst",), "constant_where_both", name)
            continue
        (ratio,) = distances.sse_sst(values[:, np.newaxis], masked[:, np.newaxis])
        yield Figure("utility.sse_sst", name, float(ratio), facts)
        (mean,) = distances.il1s(values[:, np.newaxis], masked[:, np.newaxis])
        cells, moved = cells + len(values), moved + len(values) * float(mean)
    if cells:
        yield Figure("utility.il1s", None, moved / cells, facts)
    yield _mean_sse(*pair.complete_records(), asked.scale, facts)


def _mean_sse(
    original: Reals, released: Reals, scale: Scale, facts: Mapping[str, Fact]
) -> Figure | NotComputed:
    if not len(original) or not all(map(deviation, original.T)):
        return NotComputed(("utility.mean_sse",), "too_few_complete_in_both")
    value = distances.mean_sse(original, released, scale=scale)
    facts = {**facts, "scale": scale, "attributes": original.shape[1]}
    return Figure("utility.mean_sse", None, value, facts)
