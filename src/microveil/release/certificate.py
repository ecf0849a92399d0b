"""The public certificate: facts of the plan only, and what they promise.

Nothing here may depend on the data beyond the number of records, the column names and which
values are missing, all of which the release shows anyway.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    computed_field,
    model_validator,
)

from microveil.core.attribute import (
    AttributeKind,
    AttributeSettings,
    CategorySettings,
    DomainSource,
    GridSource,
    TimeStep,
)
from microveil.core.choices import GuaranteeName, MethodName, Missing, Partition, Pooling, Post
from microveil.core.pooling import Pool
from microveil.core.synthesis.mechanism import PaidFor
from microveil.engines.base import Pooled
from microveil.errors import FileError
from microveil.formats import check_regular
from microveil.plan.plan import Plan
from microveil.plan.roles import Bound
from microveil.release.guarantees import (
    Condition,
    Level,
    can_be_without_noise,
    level_1_bound,
    level_2_bound,
    three_levels,
)
from microveil.release.notes import Many, Note
from microveil.release.resolve import ResolvedPlan
from microveil.shown import Shown

_LARGEST = 20 * 10**6  # bytes: ten thousand attributes take half of it
Randomness = Literal["operating system", "seeded"]
RowOrder = Literal["random", "as in the original"]
ExposureKind = Literal[
    "record-count", "kept-values", "strata-of-clusters", "records-of-units", "records-of-persons",
    "threads-of-persons",
    "intervals-of-dates", "missing-values", "missing-per-joint-cluster", "records-left-out",
    "shared-values", "values-of-joint-clusters", "exact-values", "exact-values-but-trimmed",
    "exact-categories", "values-by-chance", "labels", "missing-codes", "missing-codes-moved",
    "missing-codes-averaged", "row-order",
]  # fmt: skip


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MaskedAttribute(_Entry):
    """A confidential attribute and what was done to it."""

    name: str
    kind: AttributeKind
    method: MethodName
    k: Annotated[int | None, Field(description="records in a cluster; null where none are formed")]
    k_from_data: bool
    partition: Annotated[Partition | None, Field(description="null where no clusters are formed")]
    trim: Annotated[
        float | None,
        Field(
            description="share of a cluster's records, rounded down, that its mean leaves out at "
            "each end; null where the ends of clusters are not pulled in, and for categories"
        ),
    ]
    post: Post
    epsilon: Annotated[float, Field(description="this attribute's share of epsilon")]
    lower: Annotated[float | str | None, Field(description="declared; null if not declared")]
    upper: Annotated[float | str | None, Field(description="declared; null if not declared")]
    top: Annotated[
        float | str | None, Field(description="values above were moved to it before masking")
    ] = None
    bottom: Annotated[
        float | str | None, Field(description="values below were moved to it before masking")
    ] = None
    round_to: Annotated[
        float | None, Field(description="values were rounded to its multiples before masking")
    ] = None
    level: Annotated[
        int | None, Field(description="of the taxonomy, to whose groups categories were recoded")
    ] = None
    per_unit: Annotated[
        bool, Field(description="masked once for each unit, and equal in all its records")
    ] = False
    categories: Annotated[int | None, Field(description="how many are declared; null if none are")]
    time_step: Annotated[
        TimeStep | None, Field(description="masked dates and times are multiples of it")
    ]
    domain: DomainSource
    grid_step: Annotated[
        float | None, Field(description="null where it follows the data, and for categories")
    ]
    grid: Annotated[GridSource | None, Field(description="null for categories")]
    exact_values: Annotated[
        bool,
        Field(
            description="whether a cluster's value that no record can move is published without "
            "noise"
        ),
    ]
    exact_from: Annotated[
        int | None,
        Field(
            description="persons, or units, who have a value that goes out without noise, at "
            "least; 0: any number; null: none goes out without noise"
        ),
    ] = None
    level_1_bound: Annotated[
        float | None, Field(description="data-free bound with fixed clusters; null: no bound")
    ]
    level_2_bound: Annotated[
        float | None, Field(description="data-free bound when re-clustered; null: no bound")
    ]


class PooledGroup(_Entry):
    """Attributes whose masked values were pooled in joint clusters, formed by MDAV."""

    attributes: Many[str]
    anonymity: Annotated[
        int, Field(description="every joint cluster has as many records, or units, or more")
    ]
    of_units: Annotated[
        bool, Field(description="whether joint clusters are of units, and not of records")
    ] = False
    pooling: Pooling
    block: Annotated[
        int | None,
        Field(
            description="two masked values of one person come into one row with a chance of at "
            "most one in as many; null: averaged"
        ),
    ]
    related: Annotated[
        bool,
        Field(
            description="whether exchange keeps relations, by models of the masked table or of "
            "parts of it that are large enough"
        ),
    ] = False
    distances: Annotated[
        Literal["original values", "masked values"],
        Field(description="between what joint clusters were formed"),
    ]
    parts: Annotated[int, Field(description="parts by median splits that MDAV ran over, each")]
    smallest_class: Annotated[
        int | None,
        Field(
            description="records that share the rarest combination of averages, before rules; "
            "null: exchanged"
        ),
    ]


class Exposure(_Entry):
    """Something that the release shows, and that epsilon does not cover."""

    kind: ExposureKind
    attributes: Annotated[
        Many[str], Field(description="that it is about; none: it is about the release")
    ] = ()


class DerivedAttribute(_Entry):
    """An attribute recomputed from released ones."""

    name: str
    expression: str


class ProtectedFile(_Entry):
    """The file this certificate belongs to."""

    name: str
    sha256: str


class LedgerState(_Entry):
    """What earlier releases of the same people spent, as their ledger has it."""

    budget: Annotated[float, Field(description="declared for all releases of these people")]
    releases_before: int
    epsilon_before: Annotated[float, Field(description="spent by earlier releases, per person")]
    epsilon_after: Annotated[float, Field(description="spent with this release, per person")]
    delta_after: Annotated[
        float, Field(description="with this release, probability of telling more than epsilon")
    ] = 0.0
    attributes_before: Annotated[
        dict[str, float],
        Field(description="spent by earlier releases on attributes of the same names"),
    ]


class SyntheticAttribute(_Entry):
    """An attribute of synthetic rows, as the plan declares it."""

    name: str
    kind: AttributeKind
    lower: Annotated[float | str | None, Field(description="null for categories")]
    upper: Annotated[float | str | None, Field(description="null for categories")]
    step: Annotated[
        float | None,
        Field(
            description="of dates in days, of times in microseconds, how far values are apart; "
            "null for categories"
        ),
    ]
    categories: Annotated[int | None, Field(description="how many are declared; null for numbers")]
    log_scale: bool
    atoms: Many[float]


class BudgetPart(_Entry):
    """What a part of the budget was spent on."""

    purpose: PaidFor
    share: Annotated[float, Field(description="of epsilon where delta is 0, otherwise of rho")]


class SyntheticRelease(_Entry):
    """How synthetic rows were made, and what that cost."""

    delta: Annotated[float, Field(description="0: pure differential privacy")]
    rho: Annotated[
        float | None,
        Field(description="of zero-concentrated differential privacy; null where delta is 0"),
    ]
    spent: Many[BudgetPart]
    attributes: Many[SyntheticAttribute]
    predicts: Annotated[
        str | None, Field(description="the attribute each of whose values may have its own model")
    ]


class Certificate(Shown, _Entry):
    """The public certificate of a release; `print` shows all of it, as the command does."""

    certificate_version: Literal[4] = 4
    software: str
    created: str
    randomness: Randomness
    records: int
    epsilon: float
    guarantee: GuaranteeName
    records_per_person: Annotated[
        int, Field(description="the most records of one person, or of one unit")
    ]
    unit: Annotated[
        str | None,
        Field(description="the column of units, whose epsilon it is; null: of persons"),
    ] = None
    within: Annotated[
        Many[str], Field(description="strata, which clusters and joint clusters do not cross")
    ] = ()
    missing: Missing
    attributes: Many[MaskedAttribute]
    groups: Many[PooledGroup]
    derived: Many[DerivedAttribute]
    kept: Many[str]
    dropped: Many[str]
    pseudonyms: Annotated[
        Many[str], Field(description="identifiers replaced by pseudonyms, made with a key")
    ] = ()
    shifted: Annotated[
        dict[str, int],
        Field(description="dates moved by one secret number of days per person, and the most days"),
    ] = {}
    rules: Annotated[Many[str], Field(description="what masked values were changed to keep")] = ()
    synthetic: Annotated[
        SyntheticRelease | None, Field(description="null: every row is that of a record, masked")
    ] = None
    levels: tuple[Level, Level, Level]
    not_protected: Many[Exposure]
    notes: Many[Note]
    row_order: RowOrder
    ledger: Annotated[
        LedgerState | None, Field(description="null: no ledger was kept, or the release is seeded")
    ] = None
    lasting: Annotated[
        int | None,
        Field(
            description="earlier releases of the same people with joint clusters and pseudonyms "
            "that last; null: they are of this release alone"
        ),
    ] = None
    file: ProtectedFile | None = None

    def with_lasting_clusters(self, before: int) -> "Certificate":
        """Return the certificate of a release with joint clusters that last."""
        replaced = ("persons-linked", "units-linked", "kept-can-identify")
        *others, released = self.levels
        left = tuple(one for one in released.conditions if one.kind not in replaced)
        last = Condition(kind="threads-last", attributes=self.pseudonyms)
        released = released.model_copy(update={"conditions": (*left, last)})
        exposed = tuple(
            one.model_copy(update={"kind": "threads-of-persons"})
            if one.kind == "records-of-persons"
            else one
            for one in self.not_protected
        )
        changes = {"levels": (*others, released), "not_protected": exposed, "lasting": before}
        return self.model_copy(update=changes)

    def arranged(self, row_order: RowOrder, **changes: object) -> "Certificate":
        """Return the certificate of the same release with its rows in this order."""
        exposed = tuple(one for one in self.not_protected if one.kind != "row-order")
        exposed += (Exposure(kind="row-order"),) if row_order == "as in the original" else ()
        return self.model_copy(update={"row_order": row_order, "not_protected": exposed, **changes})

    __str__ = Shown.printed

    @computed_field(  # type: ignore[prop-decorator]
        description="the same facts in sentences, by section, made when the certificate is "
        "written; reading a certificate ignores them"
    )
    @property
    def reading(self) -> dict[str, list[str]]:
        """The same facts in sentences, by section."""
        return self.sentences()

    @model_validator(mode="before")
    @classmethod
    def _without_reading(cls, content: Any) -> Any:  # noqa: ANN401 - whatever is validated
        """Leave out the sentences: only facts count."""
        if isinstance(content, dict):
            return {name: value for name, value in content.items() if name != "reading"}
        return content

    def to_json(self) -> str:
        """Return the certificate as JSON text."""
        return self.model_dump_json(indent=2) + "\n"

    def file_beside(self, path: Path) -> Path | None:
        """Return the protected file beside the certificate at a path; None if it is not there."""
        if self.file is None:
            return None
        name = self.file.name
        if name in ("", ".", "..") or any(sign in name for sign in "/\\:\0"):
            raise FileError(
                f"{path}: expected the plain name of a file next to the certificate, found a "
                "path; ask the sender for another certificate"
            )
        beside = path.parent / name
        return beside if beside.exists() else None

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read a certificate from a JSON file."""
        path = Path(path)
        check_regular(path)
        try:
            size = path.stat().st_size
            if size > _LARGEST:
                raise FileError(
                    f"certificate {path}: expected at most {_LARGEST // 10**6:,} MB, found "
                    f"{size // 10**6:,} MB; ask the sender for another certificate"
                )
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"certificate {path}: cannot be read: {error.strerror}") from None
        except ValidationError:
            raise FileError(
                f"certificate {path}: not a certificate that {software()} can read; use the "
                "version that wrote it, or protect the table again"
            ) from None


def certify(
    resolved: ResolvedPlan, pooled: Sequence[Pooled], *, records: int, seeded: bool
) -> Certificate:
    """Write the certificate of a release that is not yet in a file."""
    plan = resolved.plan
    attributes = tuple(_entry(settings, plan) for settings in resolved.attributes)
    return Certificate(
        software=software(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        randomness="seeded" if seeded else "operating system",
        records=records,
        epsilon=plan.epsilon,
        guarantee=plan.guarantee,
        records_per_person=plan.records_per_person,
        unit=plan.unit,
        within=plan.within,
        missing=plan.missing,
        attributes=attributes,
        groups=tuple(_group(p, came, plan) for p, came in zip(resolved.pools, pooled, strict=True)),
        derived=tuple(
            DerivedAttribute(name=name, expression=d.expression) for name, d in plan.derived.items()
        ),
        kept=plan.kept,
        dropped=plan.names("identifier"),
        pseudonyms=plan.names("pseudonym"),
        shifted={name: attribute.days for name, attribute in plan.shifted.items()},
        rules=plan.rules,
        levels=three_levels(resolved),
        not_protected=_not_protected(resolved),
        notes=resolved.notes,
        row_order="random",
    )


def software() -> str:
    """Name this version of the software."""
    return f"microveil {version('microveil')}"


def _group(pool: Pool, pooled: Pooled, plan: Plan) -> PooledGroup:
    return PooledGroup(
        attributes=pool.names,
        anonymity=pool.anonymity,
        of_units=plan.unit is not None,
        pooling=pool.pooling,
        block=pool.block if pool.pooling == "exchange" else None,
        related=pooled.related,
        distances="masked values" if pool.follows_masked_values else "original values",
        parts=pooled.parts,
        smallest_class=pooled.smallest_class,
    )


def _entry(settings: AttributeSettings, plan: Plan) -> MaskedAttribute:
    method, declared = settings.method, plan.confidential[settings.name]
    common: dict[str, Any] = {
        "name": settings.name,
        "kind": settings.kind,
        "method": method.name,
        "k": settings.k if method.clustered else None,
        "k_from_data": settings.k_from_data,
        "partition": settings.partition if method.clustered else None,
        "post": settings.post,
        "per_unit": settings.per_unit,
        "epsilon": settings.epsilon,
        "lower": plain_end(declared.lower),
        "upper": plain_end(declared.upper),
        "top": plain_end(declared.top),
        "bottom": plain_end(declared.bottom),
        "round_to": declared.round_to,
        "level": declared.level,
        "domain": settings.domain_source,
        "exact_values": can_be_without_noise(settings),
        "exact_from": settings.exact_from if can_be_without_noise(settings) else None,
        "level_1_bound": level_1_bound(settings),
        "level_2_bound": level_2_bound(settings),
    }
    if isinstance(settings, CategorySettings):
        declared_ones = len(settings.categories) if settings.domain_source == "declared" else None
        return MaskedAttribute(
            **common, trim=None, categories=declared_ones, time_step=None, grid=None, grid_step=None
        )
    return MaskedAttribute(
        **common,
        trim=settings.trim if method.pulls_in else None,
        categories=None,
        time_step=settings.time_step,
        grid=settings.grid_source,
        grid_step=None if settings.grid_source == "data" else settings.grid.step,
    )


def plain_end(bound: Bound | None) -> float | str | None:
    """Return an end of a domain as JSON can hold it."""
    return bound.isoformat() if isinstance(bound, date | time) else bound


def _not_protected(resolved: ResolvedPlan) -> tuple[Exposure, ...]:
    """Return what the release shows besides what epsilon covers."""
    plan, numeric = resolved.plan, resolved.numeric
    pooled = [name for pool in resolved.pools for name in pool.names]
    alone = [m for m in resolved.attributes if m.name not in pooled]
    exact = [m for m in numeric if can_be_without_noise(m)]
    missing_kept = plan.missing == "keep"
    shown: dict[ExposureKind, Iterable[str]] = {
        "kept-values": plan.kept,
        "strata-of-clusters": [n for n in plan.within if n in plan.names("identifier")],
        "records-of-units": plan.per_unit,
        "records-of-persons": plan.names("pseudonym"),
        "intervals-of-dates": plan.shifted,
        "missing-values": [m.name for m in alone if missing_kept],
        "missing-per-joint-cluster": pooled if missing_kept else (),
        "records-left-out": plan.confidential if plan.missing == "drop" else (),
        "shared-values": [m.name for m in alone if m.method.clustered],
        "values-of-joint-clusters": pooled,
        "exact-values": [m.name for m in exact if not m.trim],
        "exact-values-but-trimmed": [m.name for m in exact if m.trim],
        "exact-categories": [m.name for m in resolved.categorical if can_be_without_noise(m)],
        "values-by-chance": [m.name for m in exact if m.exact_from > 1],
    }
    found = (Exposure(kind=kind, attributes=tuple(names)) for kind, names in shown.items())
    return (Exposure(kind="record-count"), *(one for one in found if one.attributes))


if __name__ == "__main__":
    schema = Certificate.model_json_schema(mode="serialization")
    sys.stdout.write(json.dumps(schema, indent=2, ensure_ascii=False) + "\n")
