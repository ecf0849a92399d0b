"""The chart of an exploration. Importing this imports Altair."""

import textwrap

from microveil.core.choices import DEFAULT_METHOD
from microveil.judge.explore.exploration import Exploration
from microveil.show.charts.canvas import alt
from microveil.show.charts.frontier_chart import frontier_and_beside
from microveil.show.charts.points import EXPECTED, JOINED, curves, map_of
from microveil.show.charts.risk_map import risk_map

_TITLE = f"Error and linkage, and error of {DEFAULT_METHOD} by cluster size and ε"
_WIDE = 720
_LETTERS = 110  # in a line of the caption


def exploration_chart(exploration: Exploration) -> "alt.TopLevelMixin":
    """Draw the frontier, with the recommendation above it."""
    chosen = f"Recommended: {exploration.headline}" if exploration.plan else exploration.headline
    sentences = (chosen, JOINED, f"{EXPECTED}.")
    caption = [line for sentence in sentences for line in textwrap.wrap(sentence, _LETTERS)]
    places, recommended = map_of(exploration)
    map_of_all = risk_map(
        places,
        limit=exploration.limits.max_linkage,
        description="Error and worst linkage of what was measured",
        chosen=recommended,
        named=False,
    ).properties(width=_WIDE)
    drawn = frontier_and_beside(
        curves(exploration.points),
        across="k, records in a cluster (expected)",
        up="mean SSE",
        description=f"{_TITLE}. {sentences[0]}",
    )
    both = alt.vconcat(map_of_all, drawn).resolve_scale(color="independent", shape="independent")
    title = alt.TitleParams(_TITLE, subtitle=caption)
    whole: alt.VConcatChart = both.properties(description=f"{_TITLE}. {sentences[0]}", title=title)
    return whole
