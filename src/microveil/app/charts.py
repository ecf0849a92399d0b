"""The charts of the page, from the package that draws all of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from microveil.judge.explore import Exploration
from microveil.show.charts.distributions import distribution
from microveil.show.charts.exploration_chart import exploration_map
from microveil.show.charts.histograms import Shares
from microveil.show.charts.use_chart import use_chart
from microveil.show.words.use_words import UseRow

if TYPE_CHECKING:
    import altair as alt


_AROUND = 110  # pixels of axes and legend, which Streamlit counts as part of a chart's height


def before_and_after(shares: Shares) -> "alt.LayerChart":
    """Draw one attribute before and after."""
    said = f"Shares of records by {shares.name}, before and after"
    return fitted(distribution(shares, description=said))


def map_chart(exploration: Exploration) -> "alt.LayerChart":
    """Draw error and linkage of the plans that were compared, and mark the recommended one."""
    return fitted(exploration_map(exploration))


def chart_of_use(use: str, rows: Sequence[UseRow]) -> "alt.LayerChart":
    """Draw what a release is used for, before and after."""
    return fitted(use_chart(use, rows))


def fitted(chart: "alt.LayerChart") -> "alt.LayerChart":
    """Leave room for axes and legend."""
    return chart.properties(height=chart.height + _AROUND)
