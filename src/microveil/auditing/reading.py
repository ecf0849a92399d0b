"""The outcome of an audit for people: tables and a paragraph."""

from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from microveil.auditing import Audit, Finding

_LEVELS = {1: "fixed clusters", 2: "re-clustered"}


def tables(audit: "Audit") -> list[Table]:
    """Lay out findings and what the informed adversary learns."""
    found = Table(
        title=f"Telling tables apart, {audit.runs:,} runs", title_justify="left", box=SIMPLE
    )
    for name in ("attribute", "clusters", "claimed at most", "exact", "found at least", ""):
        found.add_column(name, justify="left" if name in ("attribute", "clusters") else "right")
    for finding in audit.findings:
        claimed = "no bound" if finding.claimed is None else f"{finding.claimed:.4g}"
        found.add_row(
            escape(finding.attribute), _LEVELS[finding.level], claimed, f"{finding.exact:.4g}",
            f"{finding.found:.4g}", "BROKEN" if finding.broken else "",
        )  # fmt: skip
    return [found, *_released(audit)]


def _released(audit: "Audit") -> list[Table]:
    """Lay out what the informed adversary learns of numbers and of categories."""
    title = "Knowing all other records, as released"
    pinned = Table(title=title, title_justify="left", box=SIMPLE)
    for name in ("attribute", "median interval (st. dev.)", "narrower than 0.1", "open-ended"):
        pinned.add_column(name, justify="left" if name == "attribute" else "right")
    for one in audit.released:
        pinned.add_row(
            escape(one.attribute), f"{one.median_width:.3g}",
            f"{one.share_below_tenth:.0%}", f"{one.open_ended:.1%}",
        )  # fmt: skip
    narrowed = Table(title=f"{title}, and the clusters", title_justify="left", box=SIMPLE)
    for name in ("attribute", "categories", "possible on average", "known for certain"):
        narrowed.add_column(name, justify="left" if name == "attribute" else "right")
    for few in audit.narrowed:
        narrowed.add_row(
            escape(few.attribute), f"{few.categories}", f"{few.possible:.2f}", f"{few.certain:.1%}"
        )
    return [table for table in (pinned, narrowed) if table.row_count]


def in_words(audit: "Audit") -> str:
    """Say the outcome in a paragraph."""
    together = {f.level: f for f in audit.findings if f.attribute == "all together"}
    sentences = [_verdict(audit)]
    sentences += [
        f"{'With fixed clusters' if level == 1 else 'Re-clustered'}, the worst neighbour "
        f"attacked is at a loss of {finding.exact:.3g} for all attributes together, and the attack "
        f"proved {finding.found:.3g} with 95% confidence{_limit(finding, audit.runs)}."
        for level, finding in sorted(together.items())
    ]
    sentences += [_intervals(audit)] if audit.released else []
    sentences += [_categories(audit)] if audit.narrowed else []
    if audit.joint:
        sentences.append(
            f"What somebody who knows all other records learns of {', '.join(audit.joint)} from "
            "joint clusters is not measured: the clusters beside a value do not bound it."
        )
    return " ".join(sentences)


def _intervals(audit: "Audit") -> str:
    narrow = min(audit.released, key=lambda one: one.median_width)
    below = float(np.mean([one.share_below_tenth for one in audit.released]))
    return (
        "Noise does not hide which records share a masked value: somebody who knows all other "
        f"records pins half of the people's {narrow.attribute} to an interval of "
        f"{narrow.median_width:.2g} standard deviations or less, and on average over the "
        f"attributes {below:.0%} of values to less than a tenth of a standard deviation, "
        "whatever epsilon is. A larger k widens these intervals."
    )


def _categories(audit: "Audit") -> str:
    most = max(audit.narrowed, key=lambda one: one.certain)
    return (
        "Somebody who knows all other records, and which of them share a cluster (the table shows "
        "that only where masked categories differ), knows the category of "
        f"{most.certain:.1%} of people in {most.attribute} for certain, whatever epsilon is. "
        "Clusters by individual ranking do not hide a category; method DP, which forms none, does."
    )


def _verdict(audit: "Audit") -> str:
    wrong = [f"{f.attribute} ({_LEVELS[f.level]})" for f in audit.findings if f.broken]
    if wrong:
        return f"The mechanism is BROKEN: it loses more than it should in {', '.join(wrong)}."
    if audit.off_grid:
        return (
            "The mechanism is BROKEN: published values have bits below the noise grid in "
            f"{', '.join(audit.off_grid)}."
        )
    return "No attack found more than the mechanism should lose."


def _limit(finding: "Finding", runs: int) -> str:
    """Explain a bound that more runs would raise."""
    most = float(np.log(runs / 2 / 4))
    if finding.exact > most:
        return f" ({runs:,} runs cannot prove much more than {most:.2g})"
    return ""
