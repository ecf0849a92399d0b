"""A certificate laid out for terminals and notebooks."""

from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from microveil.release.certificate import Certificate
from microveil.show.screens import MOST_BARS, ResultScreen
from microveil.show.words.certificate_words import (
    ATTRIBUTE_COLUMNS,
    NUMBER_COLUMNS,
    SEEDED,
    attribute_rows,
    certificate_sections,
    facts_of,
    is_seeded,
    release_statement,
)

if TYPE_CHECKING:
    import altair as alt

_TITLE = "Certificate of a release protected with microveil"


def show_certificate(certificate: Certificate) -> RenderableType:
    """Lay out a certificate for people."""
    (_, scope), *sections = certificate_sections(certificate).items()
    parts: list[RenderableType] = [
        Text(_TITLE, style="bold"),
        Text(f"{scope[0]}\n", style="bold red" if is_seeded(certificate) else ""),
        _facts(certificate),
        _masked(certificate),
    ]
    for title, sentences in sections:
        parts.append(Text(f"\n{title}" if title != sections[0][0] else title, style="bold"))
        parts += [Padding(Text(sentence), (0, 0, 0, 2)) for sentence in sentences]
    return Group(*parts)


def certificate_screen(certificate: Certificate) -> ResultScreen:
    """Summarise a certificate; its whole is every sentence of it."""
    return summary_screen(certificate, _TITLE)


def summary_screen(certificate: Certificate, title: str) -> ResultScreen:
    """Summarise what was masked and what ε covers."""
    seeded = [SEEDED] if is_seeded(certificate) else []
    roles = {
        "Derived": tuple(attribute.name for attribute in certificate.derived),
        "Kept, unprotected": certificate.kept,
        "Dropped": certificate.dropped,
        "Pseudonyms": certificate.pseudonyms,
        "Shifted dates": tuple(certificate.shifted),
    }
    others = [f"{role}: {', '.join(names)}." for role, names in roles.items() if names]
    order = f"Row order: {certificate.row_order}."
    return ResultScreen(
        title,
        [*seeded, release_statement(certificate), *others, order],
        ATTRIBUTE_COLUMNS,
        attribute_rows(certificate),
        lambda: _chart(certificate),
        lambda: show_certificate(certificate),
        sections=certificate_sections(certificate),
    )


def _chart(certificate: Certificate) -> "alt.LayerChart":
    """Draw each attribute's share of ε, and its bound when re-clustered where all have one."""
    from microveil.show.charts.overviews import amounts, spans

    if certificate.synthetic is not None:
        spent = certificate.synthetic.spent
        said = "What the budget was spent on"
        purposes, parts = [str(part.purpose) for part in spent], [part.share for part in spent]
        return amounts(purposes, parts, title="share of the budget", description=said)
    shown = certificate.attributes[:MOST_BARS]
    names, shares = [a.name for a in shown], [a.epsilon for a in shown]
    bounds = [a.level_2_bound for a in shown if a.level_2_bound is not None]
    if len(bounds) < len(shown):
        said = "How ε is shared by attributes"
        return amounts(names, shares, title="share of ε", description=said)
    title = "loss: with fixed clusters (mark), re-clustered (end)"
    zeros = [0.0] * len(shown)
    return spans(names, zeros, shares, bounds, title=title, description=f"Bounds of the {title}")


def show_release(certificate: Certificate) -> RenderableType:
    """Say what a data holder needs to know right after a release was written."""
    return Text(release_statement(certificate))


def show_stamp(certificate: Certificate) -> RenderableType | None:
    """Warn if the random numbers were seeded; otherwise return nothing."""
    return Text(f"{SEEDED}\n", style="bold red") if is_seeded(certificate) else None


def _facts(certificate: Certificate) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for name, value in facts_of(certificate).items():
        grid.add_row(Text(name, style="bold"), Text(value, overflow="fold"))
    return grid


def _masked(certificate: Certificate) -> RenderableType:
    grid = Table(header_style="bold", box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False)
    for name in ATTRIBUTE_COLUMNS:
        side = "right" if name in NUMBER_COLUMNS else "left"
        grid.add_column(name, justify=side, overflow="fold")  # type: ignore[arg-type]
    for row in attribute_rows(certificate):
        grid.add_row(*map(escape, row))
    return grid
