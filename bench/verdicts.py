"""Draw the verdicts on two releases of the bundled sample, as they look in a terminal.

`python -m bench.verdicts` writes `docs/figures/verdict.svg`: the paper's method alone, and what
`microveil demo` does. The figures are those of seeded releases.
"""

import re
from pathlib import Path

from rich.console import Console
from rich.text import Text

from microveil import Plan, protect, verdict
from microveil.plan.sample import people, people_plan, recommended_people_plan

PICTURE = Path(__file__).parent.parent / "docs" / "figures" / "verdict.svg"
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def main() -> None:
    """Protect, judge and draw."""
    console = Console(record=True, width=96, force_terminal=True, color_system="truecolor")
    _show(console, "The paper's method alone: noise, and most rows can be found", people_plan())
    console.print()
    _show(console, "What microveil demo does: pooled, nothing kept", recommended_people_plan())
    picture = console.export_svg(title="microveil protect")
    picture = _FONTS.sub("", picture).replace("Fira Code", "DejaVu Sans Mono")
    PICTURE.write_text(picture, encoding="utf-8")


def _show(console: Console, title: str, plan: Plan) -> None:
    console.print(Text(title, style="bold underline"))
    console.print(verdict(people(), protect(people(), plan, seed=1, keep_order=True), seed=1))


if __name__ == "__main__":
    main()
