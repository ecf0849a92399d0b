"""The outcome of an audit for people: tables and a paragraph."""

from typing import TYPE_CHECKING

import numpy as np
from rich.box import SIMPLE
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from microveil.lab.audit.distinguishers import ALL, most_provable
from microveil.show.screens import MOST_BARS, ResultScreen

if TYPE_CHECKING:
    import altair as alt

    from microveil.lab.audit import AsRun, Audit, Finding

_LEVELS = {1: "fixed clusters", 2: "re-clustered"}


def audit_screen(audit: "Audit") -> ResultScreen:
    """Say whether anything is broken, with a row for each attack."""
    title = (
        f"Audit: {audit.runs:,} runs of the mechanism, {audit.releases:,} releases; private: it "
        "depends on the data"
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
        lambda: Group(*tables(audit), in_words(audit)),
    )


def _chart(audit: "Audit") -> "alt.LayerChart":
    """Draw with fixed clusters what was found, what is lost and what is claimed."""
    from microveil.show.charts.overviews import spans

    shown = [f for f in audit.findings if f.level == 1][:MOST_BARS]
    return spans(
        [f.attribute for f in shown],
        [f.found for f in shown],
        [f.exact for f in shown],
        [f.exact if f.claimed is None else f.claimed for f in shown],
        title="loss with fixed clusters: found to claimed, exact (mark)",
        description="What attacks found and what is claimed, by attribute",
    )


def tables(audit: "Audit") -> list[Table]:
    """Lay out what attacks found, what was looked for, and what the informed adversary learns."""
    fixed = _table(
        f"Telling tables apart with noise scales fixed, {audit.runs:,} runs of the mechanism",
        ("attribute", "clusters"),
        ("claimed at most", "exact", "found at least", ""),
    )
    for one in audit.findings:
        fixed.add_row(
            escape(one.attribute), _LEVELS[one.level], _bound(one.claimed), f"{one.exact:.4g}",
            f"{one.found:.4g}", "BROKEN" if one.broken else "",
        )  # fmt: skip
    as_run = _table(
        f"Telling them apart as run, {audit.releases:,} releases of the table and of a neighbour",
        ("attribute",),
        ("claimed at most", "epsilon", "found at least", "told apart", "epsilon allows", ""),
    )
    for run in audit.as_run:
        as_run.add_row(
            escape(run.attribute), _bound(run.claimed), f"{run.epsilon:.4g}", f"{run.found:.4g}",
            f"{run.told_apart:.0%}", f"{run.allowed:.0%}", _beyond(run),
        )  # fmt: skip
    checks = _table(
        f"Looked for in {audit.releases:,} releases", ("what", "where"), ("probability by chance",)
    )
    for check in audit.checks:
        chance = "-" if check.p_value is None else f"{check.p_value:.2g}"
        where = f"FOUND: {escape(', '.join(check.where))}" if check.where else "nowhere"
        checks.add_row(check.looked_for, where, chance)
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


def _beyond(run: "AsRun") -> str:
    if run.broken:
        return "BROKEN"
    return "more than epsilon" if run.beyond_epsilon else ""


def _released(audit: "Audit") -> list[Table]:
    """Lay out what the informed adversary learns of numbers and of categories."""
    title = "Knowing all other records, as released"
    pinned = _table(
        title, ("attribute",), ("median interval (st. dev.)", "narrower than 0.1", "open-ended")
    )
    for one in audit.released:
        pinned.add_row(
            escape(one.attribute), f"{one.median_width:.3g}",
            f"{one.share_below_tenth:.0%}", f"{one.open_ended:.1%}",
        )  # fmt: skip
    narrowed = _table(
        f"{title}, and the clusters",
        ("attribute",),
        ("categories", "possible on average", "known for certain"),
    )
    for few in audit.narrowed:
        narrowed.add_row(
            escape(few.attribute), f"{few.categories}", f"{few.possible:.2f}", f"{few.certain:.1%}"
        )
    return [table for table in (pinned, narrowed) if table.row_count]


def in_words(audit: "Audit") -> str:
    """Say the outcome in a paragraph."""
    together = {f.level: f for f in audit.findings if f.attribute == ALL}
    sentences = _verdict(audit)
    sentences += [
        f"{'With fixed clusters' if level == 1 else 'Re-clustered'} and with noise scales fixed, "
        f"the worst neighbour attacked is at a loss of {finding.exact:.3g} for all attributes "
        f"together, and the attack proved {finding.found:.3g}{_limit(finding, audit)}."
        for level, finding in sorted(together.items())
    ]
    sentences += _as_run(audit)
    sentences += [_intervals(audit)] if audit.released else []
    sentences += [_categories(audit)] if audit.narrowed else []
    if audit.pooled:
        sentences.append(
            f"Masked values of {', '.join(audit.pooled)} were attacked before they are pooled: "
            "with joint clusters fixed, pooled values tell nothing that masked values do not."
        )
    return " ".join(sentences)


def _as_run(audit: "Audit") -> list[str]:
    """Say how well releases tell the table from a neighbour, and what that means."""
    attributes = [f.attribute for f in audit.findings if f.level == 1 and f.attribute != ALL]
    attacked = {run.attribute: run for run in audit.as_run}
    sentences = []
    if attacked:
        most = attacked.get(ALL) or max(audit.as_run, key=lambda run: run.told_apart)
        which = "" if most.attribute == ALL else f" by {most.attribute} alone"
        sentences.append(
            f"As run, with clusters and noise scales computed anew from each table, "
            f"{most.told_apart:.0%} of {2 * audit.releases:,} releases of the table and of a "
            f"neighbour were told apart{which}, where a loss of {most.epsilon:.3g} allows "
            f"{most.allowed:.0%}; that proves a loss of {most.found:.3g} or more."
        )
    above = [run.attribute for run in audit.as_run if run.beyond_epsilon]
    if above:
        sentences.append(
            f"This is more than epsilon in {', '.join(above)}, and not an error: nothing is "
            "claimed as run where noise scales follow the data. Individual differential privacy "
            "holds with noise scales fixed; DP and DP-UM with declared domains hold as run."
        )
    left_out = [name for name in attributes if name not in attacked]
    if left_out:
        sentences.append(
            f"Not attacked as run: {', '.join(left_out)}. Nothing is claimed as run where the data "
            "decide where clusters begin and end, or which categories there are."
        )
    return sentences


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


def _verdict(audit: "Audit") -> list[str]:
    """Say what is broken, or that nothing is."""
    lost = [f"{f.attribute} ({_LEVELS[f.level]})" for f in audit.findings if f.broken]
    lost += [f"{run.attribute} (as run)" for run in audit.as_run if run.broken]
    wrong = [f"it loses more than it should in {', '.join(lost)}"] if lost else []
    wrong += [
        f"releases show {check.looked_for}, in {', '.join(check.where)}"
        for check in audit.checks
        if check.broken
    ]
    if audit.off_grid:
        names = ", ".join(audit.off_grid)
        wrong.append(f"published values have bits below the noise grid in {names}")
    if wrong:
        return [f"The mechanism is BROKEN: {'; '.join(wrong)}."]
    return [
        "No attack found more than the mechanism should lose.",
        f"Nothing was found in {audit.releases:,} releases that they must not show.",
        "All lower bounds hold together with 97.5% confidence.",
    ]


def _limit(finding: "Finding", audit: "Audit") -> str:
    """Explain a bound that more runs would raise."""
    most = most_provable(audit.runs // 2, audit.doubt)
    if finding.exact > most:
        return f" ({audit.runs:,} runs cannot prove more than {most:.2g})"
    return ""
