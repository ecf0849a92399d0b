"""A certificate in words. Every sentence about a guarantee must hold exactly as it is written."""

import math
from collections.abc import Sequence

from microveil.release.certificate import (
    Certificate,
    Exposure,
    ExposureKind,
    LedgerState,
    MaskedAttribute,
    PooledGroup,
)
from microveil.release.guarantees import ConditionKind, Level, exactly, rounded_up
from microveil.show.words.attribute_marks import (
    bound_mark,
    by_attribute,
    named,
    names_of,
    noted_of,
)
from microveil.show.words.synthetic_words import (
    level_of_synthetic,
    spent_on,
    synthetic_rows_of,
    synthetic_statement,
)

SCOPE = (
    "This certificate states what was done and what epsilon covers. It is not a clearance: whether "
    "the release may be published depends on what can be linked or inferred, which only its data "
    "holder can measure."
)
SEEDED = "NOT FOR PUBLICATION: the random numbers were seeded and can be repeated"
ATTRIBUTE_COLUMNS = (
    "attribute",
    "method",
    "clusters",
    "epsilon",
    "domain",
    "level 2 bound",
    "exact values",
)
"""The head of the table of masked attributes."""

NUMBER_COLUMNS = ("epsilon", "level 2 bound")
"""Those that hold numbers."""

_NO_BOUND: dict[ConditionKind, str] = {
    "re-clustering-only": "the noise covers a record that moves from cluster to cluster (level 2), "
    "but not a record that keeps its cluster whatever value it takes",
    "one-record-per-cluster": "a {whose} may have {records} records, and in a cluster that two of "
    "them share the noise covers only one",
    "no-differential-privacy": "settings read from the data can distinguish two tables, so no "
    "differential privacy is claimed",
    "clusters-from-data": "the data decided where clusters begin and end, and another table may be "
    "divided quite differently",
    "clusters-of-units": "clusters end where enough different units are together, and may be "
    "divided quite differently when a unit changes",
}
_EXCEPTIONS: dict[ConditionKind, str] = {
    "noise-scales-fixed": "this is individual differential privacy with fixed noise scales: it "
    "compares this table with its neighbours, not any two neighbouring tables. A neighbour's own "
    "noise scales are not covered; they may differ and so distinguish it from this table",
    "observed-range-only": "this covers only values inside the range observed in the data, from "
    "which the domain and the noise grid were read",
    "observed-categories-only": "this covers only categories observed in the data",
    "noise-grid-unchanged": "this covers only values that leave the noise grid unchanged: it was "
    "read from the data, where the last decimal and the largest value decide it",
}
_EXPOSED: dict[ExposureKind, str] = {
    "record-count": "The number of records.",
    "kept-values": "Kept attributes, which are published unchanged: {names}.",
    "strata-of-clusters": "That records which share a masked value or a joint cluster belong to "
    "one stratum: {names}.",
    "records-of-units": "Which records belong to one unit, as far as only they agree in {names}, "
    "and how many records a unit has.",
    "records-of-persons": "Which records belong to one person, here and in every table made with "
    "the same key file: the pseudonyms in {names} show it. Whose records they are is hidden from "
    "everyone who does not have the key file, and from no one who has it. How many records a "
    "person has, and where the identifier is missing, is not hidden.",
    "threads-of-persons": "Which records belong to one pseudonym in {names}, here and in every "
    "release made with the same joint clusters, and how many records it has. Whose records they "
    "are is hidden from everyone who does not have the key file, and from no one who has it.",
    "intervals-of-dates": "Intervals between a person's dates, and times of day, in {names}: all "
    "dates of a person are moved by one secret number of days. Epsilon does not cover this: an "
    "attacker who knows one date of a person can work out all the others.",
    "missing-values": "Which values are missing{where}: nulls stay where they are.",
    "missing-per-joint-cluster": "How many values are missing in each joint cluster.",
    "records-left-out": "That records with missing values were left out.",
    "shared-values": "Which records share a masked value: {names} (level 3).",
    "values-of-joint-clusters": "Which masked values a joint cluster contains, but not which "
    "record has which: {names} (level 3).",
    "exact-values": "Exact values: a value that all records of a cluster share, and that one "
    "record cannot move, is published without noise{crowd}: {names}.",
    "exact-values-but-trimmed": "Exact values: a value that all records of a cluster share, except "
    "some of those trimmed at its ends, and that one record cannot move, is published without "
    "noise{crowd}: {names}.",
    "exact-categories": "Exact values: a category that leads its cluster by so much that one "
    "record cannot change it is published unchanged{crowd}: {names}.",
    "values-by-chance": "True values by chance: a masked value that carries noise may coincide "
    "with a true one. A value that a cluster agrees on and fewer {people} have stays as it is in "
    "up to {chance} of all releases by rounding, and in half of them or more at an end of its "
    "domain or where values are put in order: {names}.",
    "labels": "Labels of columns and of values, which are those of the original file, including "
    "labels of values that no record has: {names}.",
    "missing-codes": "Which declared missing code stands for a missing value: codes stay on their "
    "record: {names}.",
    "missing-codes-moved": "How many values each declared missing code stands for, in every joint "
    "cluster where attributes are pooled and otherwise in the table, but not in which records: "
    "{names}.",
    "missing-codes-averaged": "Which declared missing code is the most frequent in a joint cluster "
    "most of whose values are missing; all its records have it: {names}.",
    "row-order": "The order of the rows, which is that of the original.",
}


def certificate_sections(certificate: Certificate) -> dict[str, list[str]]:
    """Put a certificate into sentences, by section."""
    return {
        "Scope": [scope_of(certificate)],
        "What epsilon covers": [
            f"{level_heading(level)}. {level_statement(certificate, level)}"
            for level in certificate.levels
        ],
        **remarks_of(certificate),
        **by_attribute(certificate),
    }


def remarks_of(certificate: Certificate) -> dict[str, list[str]]:
    """Say what else a reader must know, by section; sections that are empty are left out."""
    ledger = certificate.ledger
    sections = {
        "Ledger": [ledger_statement(ledger, certificate.epsilon)] if ledger else [],
        "What is not protected": [_exposed(one, certificate) for one in certificate.not_protected],
        "Notes": [f"{_capitalised(noted_of(note, certificate))}." for note in certificate.notes],
    }
    return {title: sentences for title, sentences in sections.items() if sentences}


def is_seeded(certificate: Certificate) -> bool:
    """Whether a release is not for publication, since its random numbers can be repeated."""
    return certificate.randomness == "seeded"


def scope_of(certificate: Certificate) -> str:
    """Say what a certificate is, and what it is not."""
    return f"{SEEDED}. {SCOPE}" if is_seeded(certificate) else SCOPE


def level_heading(level: Level) -> str:
    """Name a level and its bound."""
    bound = "no bound" if level.epsilon is None else f"epsilon at most {rounded_up(level.epsilon)}"
    bound += f", delta {level.delta:g}" if level.delta else ""
    return f"{level.level}. {level.name.capitalize()}: {bound}{', enforced' * level.enforced}"


def level_statement(certificate: Certificate, level: Level) -> str:
    """State what a level covers, and on which conditions."""
    if certificate.synthetic is not None:
        return level_of_synthetic(certificate, certificate.synthetic, level.level)
    statements = {1: _fixed_clusters, 2: _re_clustered, 3: _as_released}
    return statements[level.level](certificate, level)


def ledger_statement(ledger: LedgerState, epsilon: float) -> str:
    """Say what earlier releases of the same people spent, and what this one adds."""
    budget, before = exactly(ledger.budget), ledger.releases_before
    chance = f" and delta {ledger.delta_after:g}" if ledger.delta_after else ""
    elsewhere = "Releases of these people made without this ledger are not counted."
    if not before:
        return (
            "This is the first release of these people in their ledger; it spends epsilon "
            f"{exactly(epsilon)}{chance} of a declared budget of {budget}. {elsewhere}"
        )
    return (
        f"Before this one, {before:,} release{'' if before == 1 else 's'} of these people spent "
        f"epsilon {exactly(ledger.epsilon_before)} of a declared budget of {budget}; with this one "
        f"it is {exactly(ledger.epsilon_after)}{chance}. Where every release states a bound at a "
        "level, the sum of these bounds holds at that level for all releases together, on the "
        "conditions of each. If one of them has no bound there, neither has the sum. "
        f"{elsewhere}"
    )


def attribute_rows(certificate: Certificate) -> list[tuple[str, ...]]:
    """Return a row for every masked attribute: what `ATTRIBUTE_COLUMNS` names."""
    if certificate.synthetic is not None:
        return synthetic_rows_of(certificate.synthetic)
    return [
        (
            a.name,
            a.method,
            clusters_text(a),
            share_text(a.epsilon),
            domain_text(a),
            _bound(a.level_2_bound),
            "possible" if a.exact_values else "none",
        )
        for a in certificate.attributes
    ]


def share_text(share: float) -> str:
    """Write a share of ε with six digits, rounded up.

    Shares differ in their last places, so that they add up to ε exactly; these are not written.

    Examples
    --------
    >>> share_text(0.10000000000000009), share_text(0.09999999999999987), share_text(1 / 3)
    ('0.1', '0.1', '0.333334')
    """
    return rounded_up(float(f"{share:.12g}"))


def clusters_text(attribute: MaskedAttribute) -> str:
    """Say how an attribute was clustered."""
    if attribute.k is None:
        return "none"
    sizes = {
        "fixed": f"k = {attribute.k}",
        "noise-optimal": f"k ≥ {attribute.k}",
        "least-squares": f"k = {attribute.k} to {2 * attribute.k - 1}",
    }
    chosen = " (from the data)" if attribute.k_from_data else ""
    trimmed = f", trim {attribute.trim:.3g}" if attribute.trim else ""
    return f"{sizes[attribute.partition or 'fixed']}{chosen}{trimmed}"


def domain_text(attribute: MaskedAttribute) -> str:
    """Say what values an attribute could take, and how they were coded before masking."""
    ends = [end for end in ("bottom", "top") if getattr(attribute, end) is not None]
    coded = f", {' and '.join(ends)} coded" if ends else ""
    rounded = f", rounded to {attribute.round_to:g}" if attribute.round_to else ""
    level = f", recoded to level {attribute.level}" if attribute.level else ""
    return f"{_domain(attribute)}{coded}{rounded}{level}"


def facts_of(certificate: Certificate) -> dict[str, str]:
    """Name what a certificate states about the release as a whole."""
    unit = certificate.unit
    per_unit = [a.name for a in certificate.attributes if a.per_unit]
    rows = {
        "software": certificate.software,
        "created": certificate.created,
        "random numbers": certificate.randomness,
        "records": f"{certificate.records:,}",
        "epsilon": f"{exactly(certificate.epsilon)} per {f'unit ({unit})' if unit else 'person'}",
        f"records per {'unit' if unit else 'person'}": f"at most {certificate.records_per_person}",
        **_facts_of_synthetic(certificate),
        **({"one value per unit": ", ".join(per_unit)} if unit else {}),
        **({"strata": ", ".join(certificate.within)} if certificate.within else {}),
        "missing values": certificate.missing,
        "pooled": "; ".join(_pooled(group, certificate) for group in certificate.groups),
        "derived": ", ".join(f"{d.name} = {d.expression}" for d in certificate.derived),
        "rules": "; ".join(certificate.rules),
        "kept, unprotected": ", ".join(certificate.kept),
        "dropped": ", ".join(certificate.dropped),
        "pseudonyms": ", ".join(certificate.pseudonyms),
        "shifted dates": ", ".join(
            f"{name} (up to {days} days)" for name, days in certificate.shifted.items()
        ),
        "row order": certificate.row_order,
    }
    if certificate.file:
        rows |= {"file": certificate.file.name, "SHA-256": certificate.file.sha256}
    return {name: value or "none" for name, value in rows.items()}


def _facts_of_synthetic(certificate: Certificate) -> dict[str, str]:
    synthetic = certificate.synthetic
    if synthetic is None:
        return {"guarantee": certificate.guarantee}
    predicts = {"predicts": synthetic.predicts} if synthetic.predicts else {}
    return {
        "release": "synthetic rows",
        "delta": f"{synthetic.delta:g}",
        "budget": spent_on(synthetic),
        **predicts,
    }


def release_statement(certificate: Certificate) -> str:
    """Say in a sentence how much was masked, and what ε covers."""
    if certificate.synthetic is not None:
        return synthetic_statement(certificate, certificate.synthetic)
    bounds = [
        "no bound" if level.epsilon is None else f"epsilon {rounded_up(level.epsilon)}"
        for level in certificate.levels
    ]
    return (
        f"{certificate.records:,} records, {len(certificate.attributes)} attributes masked. Fixed "
        f"clusters: {bounds[0]}; re-clustered: {bounds[1]}; as released: {bounds[2]}"
        f"{how_hidden(certificate)} (see the certificate for the conditions)."
    )


def how_hidden(certificate: Certificate) -> str:
    """Say how well rows are hidden where every attribute is pooled.

    Groups have joint clusters of their own, and each hides a row from those who know it alone.
    """
    pooled = sum(len(group.attributes) for group in certificate.groups)
    if not pooled or pooled < len(certificate.attributes):
        return ""
    least = min(group.anonymity for group in certificate.groups)
    known = " by the attributes of one group" if len(certificate.groups) > 1 else ""
    if certificate.lasting is None and set(certificate.pseudonyms) - {certificate.unit}:
        known += ", without using the other records that pseudonyms link to it,"
    row = f"a unit of a size that {least} have" if certificate.unit else "a person's row"
    return f", but {row} is picked{known} with probability at most 1/{least}"


def _fixed_clusters(certificate: Certificate, level: Level) -> str:
    if level.epsilon is None:
        return _without_bound(certificate, level)
    joint = ", including joint clusters" if level.has("joint-clusters-fixed") else ""
    scales = f"{',' * bool(joint)} and{_fixed_scales(level)}" if _fixed_scales(level) else ""
    fixed = f"With fixed clusters{joint}{scales}, c" if level.has("clusters-fixed") else "C"
    return (
        f"{fixed}hanging {_whose_values(certificate)} makes any set of masked values at most "
        f"exp({exactly(certificate.epsilon)}) times more or less likely{_provided(level)}."
        f"{_exceptions(certificate, level)}"
    )


def _re_clustered(certificate: Certificate, level: Level) -> str:
    if level.has("no-clusters"):
        return "No attribute is clustered, so re-clustering changes nothing: level 1 applies as is."
    whose, pooling = _whose_values(certificate), ", before pooling," * level.has("before-pooling")
    scales = f", with{_fixed_scales(level)}," if _fixed_scales(level) else ""
    if level.enforced:
        return (
            f"Changing {whose} and re-clustering{scales} makes any set of masked cluster values"
            f"{pooling} at most exp({exactly(certificate.epsilon)}) times more or less likely"
            f"{_provided(level)}.{_exceptions(certificate, level)}"
        )
    total = (
        "there is no bound"
        if level.epsilon is None
        else f"the bound is {rounded_up(level.epsilon)}, rounded up"
    )
    statement = (
        f"If {whose} change and the table is re-clustered, every cluster between the old and the "
        "new position of a record shifts, so more can be lost than at level 1. Any set of masked "
        f"cluster values of an attribute{pooling} then becomes{scales} at most exp(bound) times "
        f"more or less likely{_provided(level)}. The table of attributes lists the bound of each "
        f"attribute that has one. For all attributes together {total}."
        f"{_exceptions(certificate, level)}"
    )
    return f"{statement} {_without_bound(certificate, level)}".strip()


def _as_released(certificate: Certificate, level: Level) -> str:
    sentences = []
    if level.has("no-clusters"):
        sentences.append(
            "No attribute is clustered: every masked value has its own noise, and level 1 covers "
            "the confidential attributes as released."
        )
    shown = level.about("shared-values-visible")
    if shown:
        sentences.append(_structure(certificate, level))
    categories = level.about("category-visible")
    if categories:
        sentences.append(
            f"In {_at(level, 'category-visible', certificate)}, a cluster between clusters of one "
            "category reveals the category itself."
        )
    if certificate.groups:
        sentences += [_promise(group, certificate) for group in certificate.groups]
        sentences += _theorem(level)
    return " ".join(sentences)


def _at(level: Level, kind: ConditionKind, certificate: Certificate) -> str:
    """Name the attributes of a condition."""
    return named(level.about(kind), bound_mark(kind, level.level), certificate)


def _structure(certificate: Certificate, level: Level) -> str:
    """Say what individual clusters show where they are not pooled."""
    shown = level.about("shared-values-visible")
    sizes = (a.k for a in certificate.attributes if a.name in shown and a.k is not None)
    least = min(sizes, default=1)  # of a certificate that was changed by hand
    return (
        "The released table shows which records share a masked value in "
        f"{_at(level, 'shared-values-visible', certificate)}, and noise does not hide this. An "
        "attacker who knows every other record can tell which cluster a person is in, and so "
        "between which values of the neighbouring clusters the true value lies, at any epsilon. "
        f"At least {least} records share each masked value of one attribute, but combinations of "
        "attributes may be unique: an attacker who knows original values can link rows to people "
        "by which records share values, at any epsilon."
    )


def _promise(group: PooledGroup, certificate: Certificate) -> str:
    """Say what pooling a group promises."""
    least, names = group.anonymity, named(group.attributes, "", certificate)
    if group.pooling == "average":
        done = "averaged", f", so that at least {least} rows share every combination"
    else:
        done = "exchanged", ""
    return (
        f"Masked values of {names} were {done[0]} within joint clusters of at least {least} "
        f"{_of_what(group, certificate)}{done[1]}. Whatever an attacker knows about these "
        f"attributes of everyone, {_at_most(group, certificate)}.{_relations(group)}"
    )


def _relations(group: PooledGroup) -> str:
    """Say what exchange keeps of relations, and how seldom it brings own values back."""
    if group.block is None:
        return ""
    models = (
        " Relations between attributes follow models of the masked table, or of parts of it, where "
        "these are large enough; what these models say of relations is not hidden."
    )
    seldom = (
        f" Two masked values of one person that fewer than {group.block} of the joint cluster have "
        f"come into one row with a probability of at most 1/{group.block}, before rules."
    )
    return models * group.related + seldom * (group.block > 1)


def _of_what(group: PooledGroup, certificate: Certificate) -> str:
    if not group.of_units:
        return "records"
    per_unit = {a.name for a in certificate.attributes if a.per_unit}
    mixed = not per_unit.issuperset(group.attributes)
    ranked = ", values of records among records of the same rank in their units"
    return f"units{ranked if mixed else ''}"


def _at_most(group: PooledGroup, certificate: Certificate) -> str:
    """Bound the probability that an attacker picks the right row, or the right unit."""
    least = group.anonymity
    if not group.of_units:
        return f"the probability of picking a person's row by them is at most 1/{least}"
    stratum = " of its stratum" if certificate.within else ""
    return (
        "the probability of telling by them which of the released units a unit is, or which row "
        f"one of its records is, is at most 1/{least}, even for an attacker who can tell which "
        f"rows belong to one unit, provided that at least {least} units{stratum} have as many "
        "records as it has"
    )


def _theorem(level: Level) -> list[str]:
    """Say on which conditions pooling keeps its promise, and what stays visible."""
    pointers = {
        "kept": level.about("kept-can-identify"),
        "shifted by days": level.about("shifted-can-identify"),
        "masked, not pooled": level.about("masked-can-identify"),
    }
    named = [f"{', '.join(names)} ({how})" for how, names in pointers.items() if names]
    can = f", as {' and '.join(named)} can" if named else ""
    sentences = [
        "This is a theorem about how the release is made, not an estimate, and holds at any "
        "epsilon. It assumes that rows are in random order and that no column outside the group "
        f"identifies a row by itself{can}."
    ]
    persons, units = level.about("persons-linked"), level.about("units-linked")
    if persons:
        sentences.append(
            f"It is about one record on its own: the pseudonyms in {', '.join(persons)} show "
            "everyone which records belong to one person, here and in other tables made with the "
            "same key file, and an attacker who knows several of a person's records can use them "
            "together to narrow the person down."
        )
    if units:
        sentences.append(
            f"It is about this table on its own: the pseudonyms in {', '.join(units)} show "
            "everyone which units are the same in other tables made with the same key file, and "
            "an attacker who knows both tables can use them together to narrow a unit down."
        )
    threads = level.about("threads-last")
    if threads:
        sentences.append(
            f"It covers what the pseudonyms in {', '.join(threads)} link, in this and all earlier "
            "releases made with the same joint clusters, kept columns and numbers of records "
            "included, provided that no other table has these pseudonyms. A person may get another "
            "pseudonym from release to release; the same pseudonym is the same person."
        )
    if level.has("groups-apart"):
        sentences.append(
            "Each group has its own joint clusters: an attacker who knows attributes of several "
            "groups can narrow a row down to the records that its joint clusters have in common."
        )
    sentences.append(
        "Which masked values, or which averages, a joint cluster contains is not hidden: an "
        "attacker who knows every other record can work out which cluster of each attribute the "
        "remaining record is in, and so approximately where its value lies; and whatever all "
        "records of a joint cluster have in common is disclosed for each of them."
    )
    return sentences


def _without_bound(certificate: Certificate, level: Level) -> str:
    """Say which attributes have no bound, and why."""
    facts = {
        "whose": "unit" if certificate.unit else "person",
        "records": certificate.records_per_person,
    }
    return " ".join(
        f"No bound for {_at(level, kind, certificate)}: {why.format(**facts)}."
        for kind, why in _NO_BOUND.items()
        if level.about(kind)
    )


def _exceptions(certificate: Certificate, level: Level) -> str:
    """Say for which attributes a bound covers less."""
    return "".join(
        f" For {_at(level, kind, certificate)} {what}."
        for kind, what in _EXCEPTIONS.items()
        if level.about(kind)
    )


def _fixed_scales(level: Level) -> str:
    """Say that noise scales are fixed, where they follow the data and not the plan."""
    return " noise scales fixed as computed from this table" * level.has("noise-scales-fixed")


def _whose_values(certificate: Certificate) -> str:
    """Say whose values differ in two neighbouring tables."""
    most = certificate.records_per_person
    if certificate.unit is not None:
        once = all(a.per_unit for a in certificate.attributes)
        records = "" if once else f" (at most {most})"
        return (
            f"the confidential values of one unit ({certificate.unit}) in all its records{records}"
        )
    if most == 1:
        return "the confidential values of one record"
    return f"the confidential values of one person's records (at most {most})"


def _provided(level: Level) -> str:
    """Say what neighbouring tables have in common besides."""
    strata = ", ".join(level.about("same-strata"))
    conditions = [
        *(["the same values are missing"] if level.has("same-values-missing") else []),
        *([f"every record stays in its stratum ({strata})"] if strata else []),
    ]
    return f", provided that {' and '.join(conditions)}" if conditions else ""


def _exposed(one: Exposure, certificate: Certificate) -> str:
    """Say what the release shows."""
    names = names_of(one, certificate.not_protected, certificate)
    where = f" in {names}" if certificate.groups else ""
    told = [a for a in certificate.attributes if a.name in one.attributes]
    needed = [a.exact_from for a in told if a.exact_from is not None]
    people = "units" if certificate.unit else "people"
    crowd = f", if at least {min(needed)} {people} have it" if min(needed, default=0) > 1 else ""
    return _EXPOSED[one.kind].format(
        names=names, where=where, crowd=crowd, people=people, chance=_unmoved(told)
    )


def _unmoved(attributes: Sequence[MaskedAttribute]) -> str:
    """Bound the chance that noise of a scale of q/ε or more is less than q/2, from ε alone."""
    largest = max((a.epsilon for a in attributes), default=0.0)
    return f"{math.ceil(-1000 * math.expm1(-largest / 2) + 1e-6) / 10:g}%"


def _pooled(group: PooledGroup, certificate: Certificate) -> str:
    units = " units" if group.of_units else ""
    names = named(group.attributes, "", certificate)
    return f"{names} ({group.pooling} in joint clusters of at least {group.anonymity}{units})"


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


def _bound(epsilon: float | None) -> str:
    return "none" if epsilon is None else rounded_up(epsilon)


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
