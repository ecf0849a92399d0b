"""The certificate of synthetic rows in words; every sentence must hold exactly as it is written."""

from microveil.core.synthesis.mechanism import PaidFor
from microveil.release.certificate import Certificate, SyntheticAttribute, SyntheticRelease
from microveil.release.guarantees import exactly, rounded_up

_PURPOSES: dict[PaidFor, str] = {
    "records": "the number of records",
    "one-way": "counts of each attribute",
    "products": "how attributes go together, all pairs at once",
    "choices": "the choice of pairs to count",
    "pairs": "counts of the chosen pairs",
}


def synthetic_statement(certificate: Certificate, synthetic: SyntheticRelease) -> str:
    """Say in a sentence what was drawn, and what ε covers."""
    return (
        f"{certificate.records:,} synthetic rows of {len(synthetic.attributes)} attributes, which "
        f"belong to nobody. As released: {privacy_of(certificate, synthetic)}."
    )


def privacy_of(certificate: Certificate, synthetic: SyntheticRelease) -> str:
    """Name the bound."""
    delta = f", delta {synthetic.delta:g}" if synthetic.delta else ""
    return f"epsilon {rounded_up(certificate.epsilon)}{delta}"


def level_of_synthetic(certificate: Certificate, synthetic: SyntheticRelease, level: int) -> str:
    """State what a level covers."""
    if level < 3:
        return "There are no clusters, so that this is what holds for the release (level 3)."
    parts = [_promise(certificate, synthetic), _public(certificate), _who(certificate)]
    return " ".join(part for part in parts if part)


def spent_on(synthetic: SyntheticRelease) -> str:
    """Say what the budget was spent on."""
    shares = [f"{_PURPOSES[part.purpose]} {part.share:.1%}" for part in synthetic.spent]
    unit = "epsilon" if synthetic.rho is None else f"rho = {rounded_up(synthetic.rho)}"
    return f"of {unit}: {', '.join(shares)}"


def synthetic_rows_of(synthetic: SyntheticRelease) -> list[tuple[str, ...]]:
    """Return a row of the table of attributes for each."""
    return [
        (one.name, "synthetic", "none", "of all together", domain_of(one), "", "no")
        for one in synthetic.attributes
    ]


def domain_of(attribute: SyntheticAttribute) -> str:
    """Say what values there can be."""
    if attribute.categories is not None:
        return f"{attribute.categories:,} categories"
    ends = [one if isinstance(one, str) else exactly(one or 0.0) for one in _ends(attribute)]
    return f"{' to '.join(ends)}{', logarithmic' * attribute.log_scale}"


def _ends(attribute: SyntheticAttribute) -> tuple[float | str | None, float | str | None]:
    return attribute.lower, attribute.upper


def _promise(certificate: Certificate, synthetic: SyntheticRelease) -> str:
    whose = "unit" if certificate.unit else "person"
    name = "pure differential privacy"
    if synthetic.rho is not None:
        name = (
            f"{rounded_up(synthetic.rho)}-zero-concentrated differential privacy, from which "
            "(epsilon, delta) follows"
        )
    chance = ""
    if synthetic.delta:
        chance = f", but for a probability of at most {synthetic.delta:g}"
    return (
        f"The whole file, with the number of its rows and this certificate, is differentially "
        f"private: whatever anybody knows, adding or removing all records of one {whose} "
        f"changes the probability of every result by a factor of at most exp(epsilon){chance}. "
        f"This is {name}. What was drawn and computed from noisy counts afterwards costs nothing."
    )


def _public(certificate: Certificate) -> str:
    """Say what the guarantee takes for known."""
    drawn = certificate.missing == "drop"
    return (
        "Not covered, because it is taken to be known without the data: the names and types of "
        "columns, how the file is written, and every setting of the plan, among them domains, "
        "categories and which columns were dropped. Values outside a domain counted as its nearest "
        f"end, and what could not be read or was no category {_other(dropped=drawn)}."
    )


def _other(*, dropped: bool) -> str:
    return "left its record out" if dropped else "as missing"


def _who(certificate: Certificate) -> str:
    most = certificate.records_per_person
    if certificate.unit:
        return (
            f"Of each unit ({certificate.unit}) at most {most} record{'s' * (most > 1)}, chosen at "
            "random, were counted."
        )
    if most > 1:
        return f"This assumes that nobody has more than {most} records."
    return "This assumes that nobody has more than one record."
