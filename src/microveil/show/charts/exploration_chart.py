"""The charts of an exploration. Importing this imports Altair."""

import textwrap

from microveil.core.choices import DEFAULT_METHOD
from microveil.judge.explore.exploration import Exploration
from microveil.show.charts.canvas import alt
from microveil.show.charts.frontier_chart import frontier_and_beside
from microveil.show.charts.points import EXPECTED, JOINED, curves, map_of
from microveil.show.charts.risk_map import draw_risk_map
from microveil.show.words.exploration_words import recommendation_headline

_TITLE = f"Error and linkage, and error of {DEFAULT_METHOD} by cluster size and ε"
_WIDE = 720
_LETTERS = 110  # in a line of the caption


def exploration_chart(exploration: Exploration) -> "alt.TopLevelMixin":
    """Draw the map and the frontier, with the recommendation above them."""
    headline = recommendation_headline(exploration)
    chosen = f"Recommended: {headline}" if exploration.plan else headline
    sentences = (chosen, JOINED, f"{EXPECTED}.")
    caption = [line for sentence in sentences for line in textwrap.wrap(sentence, _LETTERS)]
    drawn = frontier_and_beside(
        curves(exploration.points),
        across="k, records in a cluster (expected)",
        up="mean SSE",
        description=f"{_TITLE}. {chosen}",
    )
    both = alt.vconcat(exploration_map(exploration).properties(width=_WIDE), drawn)
    whole: alt.VConcatChart = both.resolve_scale(color="independent", shape="independent")
    title = alt.TitleParams(_TITLE, subtitle=caption)
    return whole.properties(description=f"{_TITLE}. {chosen}", title=title)


def exploration_map(exploration: Exploration) -> "alt.LayerChart":
    """Draw error and linkage of the measured plans, and mark the recommended one."""
    places, recommended = map_of(exploration)
    return draw_risk_map(
        places,
        limit=exploration.limits.max_linkage,
        description=(
            f"Error and linkage of the measured plans. {recommendation_headline(exploration)}"
        ),
        chosen=recommended,
        named=False,
    )
