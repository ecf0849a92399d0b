"""Classical disclosure risk in words."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from microveil.core.suda import MOST_SUBSETS
from microveil.measures.classical_result import ALARMING_DIS, LIMITS, Diversity, Risk, Suda
from microveil.show.screens import MOST_BARS, ResultScreen
from microveil.show.words.numbers import percent

if TYPE_CHECKING:
    import altair as alt


def risk_screen(risk: Risk) -> ResultScreen:
    """Say who can be found by quasi-identifiers, with the figures a steward looks at."""
    title = f"Risk to {risk.records:,} records (private: computed from the original data)"
    drawn = (lambda: _draw(risk)) if risk.suda is not None and risk.suda.records else None
    lines = [risk_sentence(risk), *risk_notes(risk)]
    rows = [*risk_rows(risk)]
    return ResultScreen(
        title, lines, ("figure", "value"), rows, drawn, lambda: risks_side_by_side({"table": risk})
    )


def _draw(risk: Risk) -> "alt.LayerChart":
    from microveil.show.charts.overviews import amounts

    parts = {} if risk.suda is None else risk.suda.contributions
    shown = sorted(parts, key=lambda key: -parts[key])[:MOST_BARS]
    title = "share of SUDA2 scores"
    values = [parts[key] for key in shown]
    return amounts(shown, values, title=title, description=f"{title} by quasi-identifier")


def risks_side_by_side(risks: dict[str, Risk]) -> RenderableType:
    """Lay out the risk of one table, or of several, each under its name."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=len(risks) > 1)
    found = [dict(risk_rows(each)) for each in risks.values()]
    grid.add_column("")
    for name in risks:
        grid.add_column(name, justify="right")
    for label in dict.fromkeys(label for rows in found for label in rows):
        grid.add_row(Text(label), *(Text(rows.get(label, "–")) for rows in found))
    named = len(risks) > 1
    sentences = [
        f"{n}: {risk_sentence(x)}" if named else risk_sentence(x) for n, x in risks.items()
    ]
    notes = dict.fromkeys(note for each in risks.values() for note in risk_notes(each))
    return Group(grid, Text(""), *map(Text, sentences), *(Text(n, style="dim") for n in notes))


def risk_sentence(risk: Risk) -> str:
    """Say the risk in plain words."""
    estimated = (
        "estimated by the weights"
        if risk.weight
        else "taking the table for the whole population, since no weight was given"
    )
    return (
        f"{risk.sample_uniques:,} of {risk.records:,} records "
        f"({percent(risk.sample_uniques / risk.records)}) are unique on {_joined(risk.keys)}. An "
        "attacker who knows these columns for everybody would re-identify about "
        f"{_number(risk.expected_reidentifications)} of the people in the table "
        f"({percent(risk.global_risk)}), {estimated}."
    )


def risk_rows(risk: Risk) -> Iterator[tuple[str, str]]:
    """Give each figure that a steward looks at, with what it is."""
    yield "unique records (violate 2-anonymity)", _share(risk, risk.violations[2])
    for k in LIMITS[1:]:
        yield (
            f"records in classes below {k} (violate {k}-anonymity)",
            _share(risk, risk.violations[k]),
        )
    yield "expected population uniques", _share(risk, risk.population_uniques)
    yield "expected re-identifications", _share(risk, risk.expected_reidentifications)
    if risk.household is not None:
        expected = risk.household.expected_reidentifications
        yield "expected re-identifications with household", _share(risk, expected)
    yield "largest risk of one record", percent(risk.largest_risk)
    if risk.suda is not None:
        yield from _suda_rows(risk, risk.suda)
    for each in risk.sensitive:
        yield from _diversity_rows(risk, each)


def _suda_rows(risk: Risk, suda: Suda) -> Iterator[tuple[str, str]]:
    alarming = int((risk.per_record["dis"] > ALARMING_DIS).sum())
    yield "SUDA2: special uniques", _share(risk, suda.records)
    yield f"SUDA2: records with DIS above {ALARMING_DIS}", _share(risk, alarming)
    if suda.records:
        key = max(suda.contributions, key=lambda key: suda.contributions[key])
        yield "SUDA2: column that contributes most", key


def _diversity_rows(risk: Risk, each: Diversity) -> Iterator[tuple[str, str]]:
    name, alike = each.attribute, each.distinct_below[LIMITS[0]]
    yield f"{name}: records in classes of one value", _share(risk, alike)
    yield f"{name}: fewest distinct values (l-diversity)", f"{each.least_distinct:,}"
    yield f"{name}: fewest distinct values by entropy", f"{each.least_entropy:.3g}"
    if each.largest_distance is not None:
        yield f"{name}: largest distance (t-closeness)", f"{each.largest_distance:.3g}"


def _share(risk: Risk, count: float) -> str:
    return f"{_number(count)} ({percent(count / risk.records)})"


def risk_notes(risk: Risk) -> list[str]:
    """Say what to know when reading the figures."""
    notes = []
    if risk.incomplete:
        notes.append(
            f"Records with a missing quasi-identifier (it matches any value): {risk.incomplete:,}."
        )
    if risk.suda is None:
        notes.append(
            f"SUDA2 was not computed: {risk.combinations:,} combinations of {len(risk.keys)} "
            f"columns have too many subsets (more than {MOST_SUBSETS:,}); give fewer columns."
        )
    return notes


def _number(count: float) -> str:
    return f"{count:,.0f}" if count == int(count) or count >= 100 else f"{count:,.3g}"


def _joined(names: tuple[str, ...]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last
