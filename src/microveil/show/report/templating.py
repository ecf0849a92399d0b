"""Put pages together: one file, nothing from the network, nothing run but Vega.

The page's policy lets a browser run the one script whose hash it states. Charts are data: Vega
reads them with its own interpreter, so that the policy need not allow text to be run as code.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from microveil.errors import require, visible
from microveil.show.charts.render import CONFIG, VEGA_LITE, vl_convert

if TYPE_CHECKING:
    import altair as alt

jinja2 = require("jinja2", "report")

_DRAW = """
const page = document.body;
const options = {ast: true, actions: false, renderer: "svg", mode: "vega-lite", config: %s};
const specs = JSON.parse(document.getElementById("charts").textContent);
Promise.all(specs.map((spec, number) => vegaEmbed("#chart-" + number, spec, options)))
  .then(() => { page.dataset.charts = "drawn"; })
  .catch(() => { page.dataset.charts = "failed"; });
""" % json.dumps(CONFIG)  # noqa: UP031 - full of braces


def render(template: str, charts: "Sequence[alt.LayerChart]" = (), **context: Any) -> str:  # noqa: ANN401
    """Fill a template. Everything in it is escaped but the script and the charts' data."""
    script = _script() if charts else ""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("microveil.show.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: visible(value) if type(value) is str else value,  # not the script
        trim_blocks=True,
        lstrip_blocks=True,
    )
    from markupsafe import Markup

    page: str = environment.get_template(template).render(
        policy=_policy(script),
        script=Markup(script),  # noqa: S704 - the bundle, which holds nothing of the user's
        specs=Markup(_as_json([chart.to_dict() for chart in charts])),  # noqa: S704
        **context,
    )
    return page


def _policy(script: str) -> str:
    digest = b64encode(sha256(script.encode()).digest()).decode()
    allowed = f"'sha256-{digest}'" if script else "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in the versions that go with Altair, and what to do."""
    bundle = vl_convert.javascript_bundle(_DRAW, vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _as_json(specs: list[dict[str, Any]]) -> str:
    """Write JSON that no HTML parser takes for markup."""
    text = json.dumps(specs, allow_nan=False)  # ASCII
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
