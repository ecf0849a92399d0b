"""Charts as pictures, without a browser, and how they all look. Importing this imports Altair."""

from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from microveil.errors import require, visible
from microveil.show.charts.canvas import alt

if TYPE_CHECKING:
    import vl_convert
else:
    vl_convert = require("vl_convert", "report")

__all__ = ["CONFIG", "VEGA_LITE", "to_png", "to_svg", "vl_convert"]

CONFIG = {
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "mark": {"aria": False},  # the text of every mark is an expression, with names in it
    "axis": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
             "gridColor": "#e4e4e4", "domainColor": "#888888"},
    "legend": {"labelFontSize": 11},
    "title": {"anchor": "start", "offset": 14, "fontSize": 14, "subtitleFontSize": 12,
              "subtitlePadding": 6, "subtitleColor": "#444444"},
}  # fmt: skip
"""Of Vega-Lite."""

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
"""The version that goes with Altair."""


def to_svg(chart: "alt.TopLevelMixin") -> str:
    """Draw a chart as SVG, with its description as text alternative.

    Examples
    --------
    >>> from microveil.show.charts.distributions import bars
    >>> chart = bars(["a"], [1], [1], title="share", description="Only one")
    >>> to_svg(chart.properties(width=200))[:34]
    '<svg role="img" aria-label="Only o'
    """
    spec = _visible(chart.to_dict())
    svg = vl_convert.vegalite_to_svg(spec, vl_version=VEGA_LITE, config=CONFIG)
    told = quoteattr(str(spec.get("description", "")))
    return svg.replace("<svg ", f'<svg role="img" aria-label={told} ', 1)


def to_png(chart: "alt.TopLevelMixin", *, scale: float = 2.0) -> bytes:
    """Draw a chart as PNG, so many pixels to one of the chart."""
    return vl_convert.vegalite_to_png(
        _visible(chart.to_dict()), vl_version=VEGA_LITE, config=CONFIG, scale=scale
    )


def _visible(part: Any) -> Any:  # noqa: ANN401 - any part of a specification
    """Write out control characters in names, at which what draws ends the process."""
    if isinstance(part, str):
        return visible(part)
    if isinstance(part, dict):
        return {name: _visible(below) for name, below in part.items()}
    return [_visible(below) for below in part] if isinstance(part, list) else part
