"""An audit in tables and a paragraph."""

from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from microveil.lab.audit.as_run import AsRun
from microveil.lab.audit.audit_result import Audit
from microveil.lab.audit.checks import Flaw
from microveil.lab.audit.distinguishers import ALL, most_provable
from microveil.lab.audit.fixed_scales import Finding
from microveil.show.screens import MOST_BARS, ResultScreen

if TYPE_CHECKING:
    import altair as alt

FLAWS = {
    Flaw.NOISE_SIZE: "noise of the wrong size or shape",
    Flaw.SAME_SIGN: "noise of the same sign in too many clusters",
    Flaw.DEPENDENT_ATTRIBUTES: "noise in one attribute that depends on another attribute",
    Flaw.REPEATED_NOISE: "the same noise in several releases",
    Flaw.EXACT_CENTROIDS: "too many centroids published without noise",
    Flaw.INSIDE_RANGE: "too few masked values outside the range of the data",
    Flaw.TOO_FEW_ALIKE: "masked values shared by fewer than k records",
    Flaw.OTHER_CLUSTERS: "rows outside the clusters that the plan asks for",
}

_LEVELS = {1: "fixed clusters", 2: "re-clustered"}


def audit_screen(audit: Audit) -> ResultScreen:
    """Say whether anything is broken, with a row for each attack."""
    title = (
        f"Audit of {audit.runs:,} runs of the mechanism and {audit.releases:,} releases "
        "(private: computed from the original data)"
    )
    fixed = [
        (f.attribute, _LEVELS[f.level], _bound(f.claimed), f"{f.found:.3g}", f.broken)
        for f in audit.findings
    ]
    as_run = [
        (run.attribute, "as run", _bound(run.claimed), f"{run.found:.3g}", run.broken)
        for run in audit.as_run
    ]
    rows = [(*row, "BROKEN" if broken else "") for *row, broken in [*fixed, *as_run]]
    head = ("attribute", "clusters", "claimed at most", "found at least", "")
    return ResultScreen(
        title,
        _verdict(audit),
        head,
        rows,
        lambda: _chart(audit),
        lambda: Group(*audit_tables(audit), audit_in_words(audit)),
    )


def _chart(audit: Audit) -> "alt.LayerChart":
    """Draw the loss found, the exact loss and the claimed bound, with fixed clusters."""
    from microveil.show.charts.overviews import spans

    shown = [f for f in audit.findings if f.level == 1][:MOST_BARS]
    return spans(
        [f.attribute for f in shown],
        [f.found for f in shown],
        [f.exact for f in shown],
        [f.exact if f.claimed is None else f.claimed for f in shown],
        title="loss with fixed clusters, from found to claimed; the mark is the exact loss",
        description="Loss found by attacks and claimed bound, by attribute",
    )


def audit_tables(audit: Audit) -> list[Table]:
    """Lay out what attacks found, the flaws looked for, and what the informed attacker learns."""
    fixed = _table(
        f"Telling neighbouring tables apart: fixed noise scales, {audit.runs:,} runs",
        ("attribute", "clusters"),
        ("claimed at most", "exact", "found at least", ""),
    )
    for one in audit.findings:
        fixed.add_row(
            escape(one.attribute), _LEVELS[one.level], _bound(one.claimed), f"{one.exact:.4g}",
            f"{one.found:.4g}", "BROKEN" if one.broken else "",
        )  # fmt: skip
    as_run = _table(
        f"Telling neighbouring tables apart: as run, {audit.releases:,} releases of each",
        ("attribute",),
        ("claimed at most", "epsilon", "found at least", "told apart", "epsilon allows", ""),
    )
    for run in audit.as_run:
        as_run.add_row(
            escape(run.attribute), _bound(run.claimed), f"{run.epsilon:.4g}", f"{run.found:.4g}",
            f"{run.told_apart:.0%}", f"{run.allowed:.0%}", _beyond(run),
        )  # fmt: skip
    checks = _table(
        f"Flaws looked for in {audit.releases:,} releases", ("flaw", "found in"), ("p-value",)
    )
    for check in audit.checks:
        chance = "-" if check.p_value is None else f"{check.p_value:.2g}"
        where = f"BROKEN: {escape(', '.join(check.where))}" if check.where else "none"
        checks.add_row(FLAWS[check.looked_for], where, chance)
    return [table for table in (fixed, as_run, checks) if table.row_count] + _released(audit)


def _table(title: str, words: tuple[str, ...], figures: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for name in words:
        table.add_column(name)
    for name in figures:
        table.add_column(name, justify="right")
    return table


def _bound(claimed: float | None) -> str:
    return "no bound" if claimed is None else f"{claimed:.4g}"


def _beyond(run: AsRun) -> str:
    if run.broken:
        return "BROKEN"
    if run.beyond_epsilon:
        return "more than epsilon"
    return "told apart" if run.claimed is None and run.told_apart > run.allowed else ""


def _released(audit: Audit) -> list[Table]:
    """Lay out what the informed attacker learns about numbers and categories."""
    title = "What an attacker learns who knows all other records"
    pinned = _table(
        title, ("attribute",), ("median interval (st. dev.)", "narrower than 0.1", "open-ended")
    )
    for one in audit.released:
        pinned.add_row(
            escape(one.attribute), f"{one.median_width:.3g}",
            f"{one.share_below_tenth:.0%}", f"{one.open_ended:.1%}",
        )  # fmt: skip
    narrowed = _table(
        f"{title} and the clusters",
        ("attribute",),
        ("categories", "possible on average", "known for certain"),
    )
    for few in audit.narrowed:
        narrowed.add_row(
            escape(few.attribute), f"{few.categories}", f"{few.possible:.2f}", f"{few.certain:.1%}"
        )
    return [table for table in (pinned, narrowed) if table.row_count]


def audit_in_words(audit: Audit) -> str:
    """Describe the outcome in a paragraph."""
    together = {f.level: f for f in audit.findings if f.attribute == ALL}
    sentences = _verdict(audit)
    sentences += [
        f"{'With fixed clusters' if level == 1 else 'Re-clustered'} and with fixed noise scales, "
        f"the loss of the worst neighbour attacked is {finding.exact:.3g} over all attributes; "
        f"the attack proves at least {finding.found:.3g}{_limit(finding, audit)}."
        for level, finding in sorted(together.items())
    ]
    sentences += _as_run(audit)
    sentences += [_intervals(audit)] if audit.released else []
    sentences += [_categories(audit)] if audit.narrowed else []
    if audit.pooled:
        sentences.append(
            f"The masked values of {', '.join(audit.pooled)} were attacked before pooling: with "
            "fixed joint clusters, pooled values reveal nothing that masked values do not."
        )
    return " ".join(sentences)


def _as_run(audit: Audit) -> list[str]:
    """Describe how well releases tell the table from a neighbour, and what that means."""
    attributes = [f.attribute for f in audit.findings if f.level == 1 and f.attribute != ALL]
    attacked = {run.attribute: run for run in audit.as_run}
    sentences = []
    if attacked:
        most = attacked.get(ALL) or max(audit.as_run, key=lambda run: run.told_apart)
        which = "" if most.attribute == ALL else f" by {most.attribute} alone"
        sentences.append(
            f"As run, with clusters and noise scales recomputed from each table, the attack told "
            f"{most.told_apart:.0%} of {2 * audit.releases:,} releases apart{which}; a loss of "
            f"{most.epsilon:.3g} allows {most.allowed:.0%}. This proves a loss of at least "
            f"{most.found:.3g}."
        )
    above = [run.attribute for run in audit.as_run if run.beyond_epsilon]
    if above:
        sentences.append(
            f"The loss exceeds epsilon for {', '.join(above)}. This is not an error: no bound is "
            "claimed as run where clusters or noise scales follow the data. Individual "
            "differential privacy holds with both fixed; DP and DP-UM with declared domains hold "
            "as run."
        )
    left_out = [name for name in attributes if name not in attacked]
    if left_out:
        sentences.append(
            f"Not attacked as run: {', '.join(left_out)}. No bound is claimed as run for "
            "categories whose list or clusters the data decide."
        )
    return sentences


def _intervals(audit: Audit) -> str:
    narrow = min(audit.released, key=lambda one: one.median_width)
    below = float(np.mean([one.share_below_tenth for one in audit.released]))
    return (
        "Noise does not hide which records share a masked value. At any epsilon, an attacker who "
        f"knows all other records narrows {narrow.attribute} down to {narrow.median_width:.2g} "
        f"standard deviations or less for half of the people, and {below:.0%} of values to less "
        "than a tenth of a standard deviation, averaged over attributes. A larger k widens these "
        "intervals."
    )


def _categories(audit: Audit) -> str:
    most = max(audit.narrowed, key=lambda one: one.certain)
    return (
        "At any epsilon, an attacker who knows all other records and which of them share a cluster "
        "(which the table shows only where masked categories differ) is certain of "
        f"{most.attribute} for {most.certain:.1%} of people. Individual ranking does not hide "
        "categories; method DP, which forms no clusters, does."
    )


def _verdict(audit: Audit) -> list[str]:
    """Name what is broken, or state that nothing is."""
    lost = [f"{f.attribute} ({_LEVELS[f.level]})" for f in audit.findings if f.broken]
    lost += [f"{run.attribute} (as run)" for run in audit.as_run if run.broken]
    wrong = [f"the loss is larger than it should be for {', '.join(lost)}"] if lost else []
    wrong += [
        f"releases show {FLAWS[check.looked_for]}, in {', '.join(check.where)}"
        for check in audit.checks
        if check.broken
    ]
    if audit.off_grid:
        names = ", ".join(audit.off_grid)
        wrong.append(f"published values have bits below the noise grid in {names}")
    if wrong:
        return [f"The mechanism is BROKEN: {'; '.join(wrong)}."]
    return [
        "No attack found a larger loss than there should be.",
        f"{audit.releases:,} releases show none of the flaws we looked for.",
        "All lower bounds hold together with 97.5% confidence.",
    ]


def _limit(finding: Finding, audit: Audit) -> str:
    """Explain a bound that more runs would raise."""
    most = most_provable(audit.runs // 2, audit.doubt)
    if finding.exact > most:
        return f" ({audit.runs:,} runs cannot prove more than {most:.2g})"
    return ""
