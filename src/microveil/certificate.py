"""The public certificate: plan facts only, and what they promise, in words.

Nothing here may depend on the data beyond the number of records, the column names and which
values are missing, all of which the release shows anyway.
"""

import json
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from microveil.accounting import reclustered_bound
from microveil.errors import FileError
from microveil.methods import METHODS, MethodName
from microveil.plan import Kind, Missing, Plan
from microveil.settle import DomainSource, GridSource, Masking, Settled

Publication = Literal[
    "for publication",
    "NOT FOR PUBLICATION: the random numbers were seeded and can be repeated",
]
FOR_PUBLICATION, NOT_FOR_PUBLICATION = get_args(Publication)


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MaskedAttribute(_Entry):
    """A confidential attribute and what was done to it."""

    name: str
    kind: Kind
    method: MethodName
    k: Annotated[int | None, Field(description="records in a cluster; null where none are formed")]
    clusters: Annotated[int | None, Field(description="null where none are formed")]
    epsilon: Annotated[float, Field(description="this attribute's share of epsilon")]
    lower: Annotated[float | None, Field(description="declared; null if not declared")]
    upper: Annotated[float | None, Field(description="declared; null if not declared")]
    domain: DomainSource
    grid_step: Annotated[float | None, Field(description="null where it follows the data")]
    grid: GridSource
    level_2_bound: Annotated[
        float | None, Field(description="data-free bound on the re-clustered loss; null: no bound")
    ]


class DerivedAttribute(_Entry):
    """An attribute recomputed from released ones."""

    name: str
    expression: str


class Level(_Entry):
    """One of the three things ε may be asked to cover."""

    level: Literal[1, 2, 3]
    name: Literal["fixed clusters", "re-clustered", "as released"]
    epsilon: Annotated[float | None, Field(description="bound on the loss; null: no bound")]
    statement: str


class ProtectedFile(_Entry):
    """The file this certificate belongs to."""

    name: str
    sha256: str
    row_order: Literal["random", "as in the original"]


class Certificate(_Entry):
    """The public certificate of a release."""

    certificate_version: Literal[1] = 1
    software: str
    created: str
    publication: Publication
    randomness: Literal["operating system", "seeded"]
    records: int
    epsilon: float
    records_per_person: int
    missing: Missing
    attributes: tuple[MaskedAttribute, ...]
    derived: tuple[DerivedAttribute, ...]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    levels: tuple[Level, ...]
    not_protected: tuple[str, ...]
    notes: tuple[str, ...]
    file: ProtectedFile | None = None

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read a certificate from a JSON file."""
        try:
            return cls.model_validate_json(Path(path).read_bytes())
        except OSError as error:
            raise FileError(f"certificate {path}: cannot be read: {error.strerror}") from None
        except ValidationError:
            raise FileError(f"certificate {path}: not a certificate that this version of "
                            "microveil can read") from None  # fmt: skip


def certify(settled: Settled, *, records: int, seeded: bool) -> Certificate:
    """Write the certificate of a release that is not yet in a file."""
    plan = settled.plan
    attributes = tuple(_entry(masking, plan) for masking in settled.maskings)
    return Certificate(
        software=f"microveil {version('microveil')}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        publication=NOT_FOR_PUBLICATION if seeded else FOR_PUBLICATION,
        randomness="seeded" if seeded else "operating system",
        records=records,
        epsilon=plan.epsilon,
        records_per_person=plan.records_per_person,
        missing=plan.missing,
        attributes=attributes,
        derived=tuple(
            DerivedAttribute(name=name, expression=d.expression) for name, d in plan.derived.items()
        ),
        kept=plan.names("kept"),
        dropped=plan.names("identifier"),
        levels=(_level_1(settled), _level_2(settled, attributes), _level_3(attributes)),
        not_protected=_not_protected(settled, attributes),
        notes=settled.notes,
    )


def _entry(masking: Masking, plan: Plan) -> MaskedAttribute:
    method, declared = masking.method, plan.confidential[masking.name]
    bounded = method.name != "iDP-CBLS" or plan.records_per_person == 1
    bound = reclustered_bound(
        method,
        masking.epsilon,
        clusters=masking.clusters,
        records=masking.records,
        domain_units=masking.domain_units.upper - masking.domain_units.lower,
    )
    return MaskedAttribute(
        name=masking.name,
        kind=masking.kind,
        method=method.name,
        k=masking.k if method.clustered else None,
        clusters=masking.clusters if method.clustered else None,
        epsilon=masking.epsilon,
        lower=declared.lower,
        upper=declared.upper,
        domain=masking.domain_source,
        grid_step=None if masking.grid_source == "data" else masking.grid.step,
        grid=masking.grid_source,
        level_2_bound=bound if bounded else None,
    )


def _level_1(settled: Settled) -> Level:
    plan = settled.plan
    held = "With clusters and noise scales held as they were computed from this table, c"
    clustered = any(m.method.clustered for m in settled.maskings)
    statement = (
        f"{held if clustered else 'C'}hanging {_whose_values(plan)} makes any set of "
        f"masked values at most exp({_exact(plan.epsilon)}) times more or less likely"
    )
    statement += _if_missing(plan) + "."
    individual = _names(m.name for m in settled.maskings if m.method.promise == "iDP")
    if individual:
        statement += (
            f" For {individual} this is individual differential privacy: it compares this table "
            "with its neighbours, not any two neighbouring tables."
        )
    return Level(
        level=1, name="fixed clusters", epsilon=plan.epsilon,
        statement=statement + _exceptions(settled),
    )  # fmt: skip


def _whose_values(plan: Plan) -> str:
    if plan.records_per_person == 1:
        return "the confidential values of one record"
    return f"the confidential values of one person's records ({plan.records_per_person} at most)"


def _if_missing(plan: Plan) -> str:
    return "" if plan.missing == "error" else ", provided the same values are missing"


def _exceptions(settled: Settled) -> str:
    text = ""
    inside = _names(m.name for m in settled.maskings if m.domain_source == "data")
    if inside:
        text += (
            f" For {inside} it covers only values inside the range seen in the data, from which "
            "the domain was read"
        )
        voided = _names(
            m.name for m in settled.maskings
            if m.domain_source == "data" and m.method.promise == "DP"
        )  # fmt: skip
        text += f"; {voided} can claim no differential privacy." if voided else "."
    shared = _names(m.name for m in settled.maskings if m.method.name == "iDP-CBLS")
    if settled.plan.records_per_person > 1 and shared:
        text += f" For {shared} it holds only while no two records of a person share a cluster."
    return text


def _level_2(settled: Settled, attributes: tuple[MaskedAttribute, ...]) -> Level:
    unbounded = _names(a.name for a in attributes if a.level_2_bound is None)
    bounds = [a.level_2_bound for a in attributes if a.level_2_bound is not None]
    total = None if unbounded else sum(bounds)
    if not any(METHODS[a.method].clustered for a in attributes):
        statement = (
            "No attribute is clustered, so there is nothing to form again: the statement of "
            "level 1 holds as it is."
        )
        return Level(level=2, name="re-clustered", epsilon=total, statement=statement)
    statement = (
        f"If {_whose_values(settled.plan)} change and the clusters are formed again, every cluster "
        "between an old and a new place shifts, and more can be lost than at level 1. With noise "
        "scales held as they were computed from this table, any set of masked cluster values then "
        "becomes at most exp(bound) times more or less likely"
        f"{_if_missing(settled.plan)}. Bounds, rounded up: "
    )
    statement += "; ".join(f"{a.name} ({a.method}) {_bound_in_words(a)}" for a in attributes)
    if total is None:
        statement += f". {unbounded}: no bound."
    else:
        statement += f"; {rounded_up(total)} in all." + _exceptions(settled)
    return Level(level=2, name="re-clustered", epsilon=total, statement=statement)


def _bound_in_words(attribute: MaskedAttribute) -> str:
    if attribute.level_2_bound is None:
        return "no bound for several records of one person"
    return rounded_up(attribute.level_2_bound)


def _level_3(attributes: tuple[MaskedAttribute, ...]) -> Level:
    clustered = [a for a in attributes if METHODS[a.method].clustered]
    if not clustered:
        statement = (
            "No attribute is clustered: every masked value has noise of its own, and the statement "
            "of level 1 covers the confidential attributes as they are released."
        )
        total = sum(a.epsilon for a in attributes)
        return Level(level=3, name="as released", epsilon=total, statement=statement)
    statement = (
        f"The table shows which records share a masked value in {_names(a.name for a in clustered)}"
        ", and noise does not hide that. Someone who knows every other record can tell which "
        "cluster a person is in, and so that the true value lies between the smallest and largest "
        "value of that cluster, whatever epsilon is. At this level the protection is that of "
        f"microaggregation with clusters of {min(a.k or 0 for a in clustered)} records or more."
    )
    return Level(level=3, name="as released", epsilon=None, statement=statement)


def _not_protected(settled: Settled, attributes: tuple[MaskedAttribute, ...]) -> tuple[str, ...]:
    plan = settled.plan
    items = ["The number of records."]
    if plan.names("kept"):
        items.append(f"Kept attributes, published as they are: {', '.join(plan.names('kept'))}.")
    if plan.missing == "keep":
        items.append("Which values are missing: nulls stay where they are.")
    if plan.missing == "drop":
        items.append("That records with missing values were left out.")
    clustered = [a.name for a in attributes if METHODS[a.method].clustered]
    if clustered:
        items.append(f"Which records share a masked value: {', '.join(clustered)} (level 3).")
    cluster_based = [a.name for a in attributes if a.method == "iDP-CBLS"]
    if cluster_based:
        items.append(
            "Values shared by all records of a cluster: one record cannot move such a cluster, so "
            f"iDP-CBLS publishes the value without noise: {', '.join(cluster_based)}."
        )
    return tuple(items)


def rounded_up(bound: float) -> str:
    """Write a bound with six digits, never below what it is.

    Examples
    --------
    >>> rounded_up(1 / 3), rounded_up(108.0), rounded_up(1.000000001)
    ('0.333334', '108', '1.00001')
    """
    digits = Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(bound)
    return f"{digits.normalize():f}"


def _exact(number: float) -> str:
    return repr(number).removesuffix(".0")


def _names(names: Iterable[str]) -> str:
    return ", ".join(names)


if __name__ == "__main__":
    schema = Certificate.model_json_schema(mode="serialization")
    sys.stdout.write(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
