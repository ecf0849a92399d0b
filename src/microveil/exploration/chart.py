"""The chart of an exploration. Importing this imports Altair."""

import textwrap

from microveil.charts.base import alt
from microveil.charts.frontier import frontier_and_beside
from microveil.core.choices import DEFAULT_METHOD
from microveil.exploration.curves import EXPECTED, curves
from microveil.exploration.result import Exploration

_TITLE = f"Error of {DEFAULT_METHOD} by cluster size and ε"
_LETTERS = 110  # in a line of the caption


def chart(exploration: Exploration) -> "alt.TopLevelMixin":
    """Draw the frontier, with the recommendation above it."""
    sentences = (f"Recommended: {exploration.headline}", f"{EXPECTED}.")
    caption = [line for sentence in sentences for line in textwrap.wrap(sentence, _LETTERS)]
    drawn = frontier_and_beside(
        curves(exploration.points),
        across="k, records in a cluster (expected)",
        up="mean SSE",
        description=f"{_TITLE}. {sentences[0]}",
    )
    return drawn.properties(title=alt.TitleParams(_TITLE, subtitle=caption))
