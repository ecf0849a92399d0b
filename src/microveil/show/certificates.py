"""A certificate in words, for terminals and pages."""

from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from microveil.release.certificate import SEEDED, Certificate, MaskedAttribute
from microveil.release.guarantees import exactly, rounded_up
from microveil.release.release import Release
from microveil.show.screens import MOST_BARS, ResultScreen

if TYPE_CHECKING:
    import altair as alt


def show_certificate(certificate: Certificate) -> RenderableType:
    """Lay out a certificate for people."""
    parts: list[RenderableType] = [
        Text("Certificate of a release protected with microveil", style="bold"),
        Text(certificate.scope + "\n", style="bold red" if _is_seeded(certificate) else ""),
        _facts(certificate),
        _masked(certificate),
        Text("What epsilon covers", style="bold"),
    ]
    parts += [_paragraph(f"{x.level}. {x.name}: {x.statement}") for x in certificate.levels]
    for title, items in (
        ("What is not protected", certificate.not_protected),
        ("Notes", certificate.notes),
    ):
        if items:
            parts.append(Text("\n" + title, style="bold"))
            parts += [_paragraph(item) for item in items]
    return Group(*parts)


def certificate_screen(certificate: Certificate) -> ResultScreen:
    """Say at a glance what a certificate says; its whole is every sentence of it."""
    title = "Certificate of a release protected with microveil"
    return _screen(certificate, title)


def release_screen(release: Release) -> ResultScreen:
    """Say at a glance what was released."""
    library = type(release.data).__module__.partition(".")[0]
    title = f"Release: a {library} table of {len(release.data.columns):,} columns"
    return _screen(release.certificate, title)


def _screen(certificate: Certificate, title: str) -> ResultScreen:
    """Say at a glance what was masked and what ε covers."""
    seeded = [SEEDED] if _is_seeded(certificate) else []
    derived = tuple(attribute.name for attribute in certificate.derived)
    roles = {
        "Derived": derived,
        "Kept, unprotected": certificate.kept,
        "Dropped": certificate.dropped,
        "Pseudonyms": certificate.pseudonyms,
        "Moved by days": tuple(certificate.shifted),
    }
    others = [f"{role}: {', '.join(names)}." for role, names in roles.items() if names]
    rows = [
        (a.name, a.method, clusters_of(a), rounded_up(a.epsilon), domain_of(a))
        for a in certificate.attributes
    ]
    head = ("attribute", "method", "clusters", "epsilon", "domain")
    lines = [*seeded, said_of(certificate), *others, f"Row order: {certificate.row_order}."]
    return ResultScreen(
        title, lines, head, rows, lambda: _chart(certificate), lambda: show_certificate(certificate)
    )


def _chart(certificate: Certificate) -> "alt.LayerChart":
    """Draw each attribute's share of ε, and its bound when re-clustered where all have one."""
    from microveil.show.charts.overviews import amounts, spans

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
    """Say what a steward needs to know right after a release was written."""
    return Text(said_of(certificate))


def said_of(certificate: Certificate) -> str:
    """Say in a sentence how much was masked, and what ε covers."""
    bounds = [
        "no bound" if level.epsilon is None else f"epsilon {rounded_up(level.epsilon)}"
        for level in certificate.levels
    ]
    return (
        f"{certificate.records:,} records, {len(certificate.attributes)} attributes masked. Fixed "
        f"clusters: {bounds[0]}; re-clustered: {bounds[1]}; as released: {bounds[2]}"
        f"{how_hidden(certificate)} (the certificate says on which conditions)."
    )


def how_hidden(certificate: Certificate) -> str:
    """Say how well rows are hidden where every attribute is pooled.

    Groups have joint clusters of their own, and each hides a row from those who know it alone.
    """
    pooled = sum(len(group.attributes) for group in certificate.groups)
    if pooled < len(certificate.attributes):
        return ""
    least = min(group.anonymity for group in certificate.groups)
    known = " by the attributes of one group" if len(certificate.groups) > 1 else ""
    if set(certificate.pseudonyms) - {certificate.unit}:
        known += " on its own, without the records that pseudonyms link to it,"
    row = f"a unit of a size that {least} have" if certificate.unit else "a person's row"
    return f", but {row} is picked{known} with a chance of at most 1 in {least}"


def show_stamp(certificate: Certificate) -> RenderableType | None:
    """Warn if the random numbers were seeded; otherwise return nothing."""
    return Text(f"{SEEDED}\n", style="bold red") if _is_seeded(certificate) else None


def _is_seeded(certificate: Certificate) -> bool:
    return certificate.randomness == "seeded"


def facts_of(certificate: Certificate) -> dict[str, str]:
    """Say what a certificate holds besides attributes and levels, for people."""
    whose = f"unit ({certificate.unit})" if certificate.unit else "person"
    per_unit = [a.name for a in certificate.attributes if a.per_unit]
    rows = {
        "software": certificate.software,
        "created": certificate.created,
        "random numbers": certificate.randomness,
        "records": f"{certificate.records:,}",
        "epsilon": f"{exactly(certificate.epsilon)} per {whose}",
        "guarantee": certificate.guarantee,
        "records per unit" if certificate.unit else "records per person": (
            f"{certificate.records_per_person}"
        ),
        **({"one value per unit": ", ".join(per_unit)} if certificate.unit else {}),
        **({"strata": ", ".join(certificate.within)} if certificate.within else {}),
        "missing values": certificate.missing,
        "pooled": "; ".join(
            f"{', '.join(g.attributes)} ({g.pooling} in joint clusters of {g.anonymity}"
            f"{' units' if g.of_units else ''} or more)"
            for g in certificate.groups
        ),
        "derived": ", ".join(f"{d.name} = {d.expression}" for d in certificate.derived),
        "rules": "; ".join(certificate.rules),
        "kept, unprotected": ", ".join(certificate.kept),
        "dropped": ", ".join(certificate.dropped),
        "pseudonyms": ", ".join(certificate.pseudonyms),
        "moved with people": ", ".join(
            f"{name} (up to {days} days)" for name, days in certificate.shifted.items()
        ),
        "row order": certificate.row_order,
        "ledger": certificate.ledger.statement if certificate.ledger else "",
    }
    if certificate.file:
        rows |= {
            "file": certificate.file.name,
            "SHA-256": certificate.file.sha256,
        }
    return {name: value or "none" for name, value in rows.items()}


def _facts(certificate: Certificate) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for name, value in facts_of(certificate).items():
        grid.add_row(Text(name, style="bold"), Text(value, overflow="fold"))
    return grid


def _masked(certificate: Certificate) -> RenderableType:
    grid = Table(header_style="bold", box=SIMPLE)
    for name in ("attribute", "method", "clusters"):
        grid.add_column(name)
    for name in ("epsilon", "domain", "level 2 bound"):
        grid.add_column(name, justify="right")
    for a in certificate.attributes:
        bound = "none" if a.level_2_bound is None else rounded_up(a.level_2_bound)
        figures = (rounded_up(a.epsilon), domain_of(a), bound)
        grid.add_row(escape(a.name), a.method, clusters_of(a), *figures)
    return grid


def clusters_of(attribute: MaskedAttribute) -> str:
    """Say how an attribute was clustered."""
    if attribute.k is None:
        return "none"
    chosen = " (from the data)" if attribute.k_from_data else ""
    shape = "" if attribute.partition == "fixed" else f", {attribute.partition}"
    trimmed = f", trimmed by {attribute.trim:.3g}" if attribute.trim else ""
    return f"k = {attribute.k}{chosen}{shape}{trimmed}"


def domain_of(attribute: MaskedAttribute) -> str:
    """Say what values an attribute could take, and how they were coded before masking."""
    return f"{_domain(attribute)}{coding_of(attribute)}"


def coding_of(attribute: MaskedAttribute) -> str:
    """Say what became of values before they were masked; empty if they stayed as they were."""
    ends = [end for end in ("bottom", "top") if getattr(attribute, end) is not None]
    coded = f", {' and '.join(ends)} coded" if ends else ""
    rounded = f", rounded to {attribute.round_to:g}" if attribute.round_to else ""
    level = f", recoded to level {attribute.level}" if attribute.level else ""
    return f"{coded}{rounded}{level}"


def _domain(attribute: MaskedAttribute) -> str:
    if attribute.domain == "data":
        return "from the data"
    if attribute.categories is not None:
        return f"{attribute.categories} categories"
    ends = (attribute.lower, attribute.upper)
    if ends == (None, None):
        return "none"
    return " to ".join(map(_end, ends))


def _end(end: float | str | None) -> str:
    if end is None:
        return "open"
    return end if isinstance(end, str) else f"{end:,.10g}"


def _paragraph(text: str) -> RenderableType:
    return Padding(Text(text), (0, 0, 0, 2))
