"""The plan: what is done to each attribute, for which ε. Frozen, validated, TOML in and out."""

import graphlib
import secrets
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypedDict, TypeVar, Unpack

import tomlkit
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    model_validator,
)

from microveil.core.choices import (
    DEFAULT_METHOD,
    DateOrder,
    GuaranteeName,
    MethodName,
    Missing,
    Partition,
    Pooling,
    Post,
)
from microveil.core.methods import METHODS
from microveil.errors import DataError, FileError, PlanError, Problems
from microveil.plan.groups import Group, GroupSettings, from_names
from microveil.plan.roles import (
    Confidential,
    Derived,
    Identifier,
    K,
    Kept,
    Part,
    Pseudonym,
    SamplingWeight,
    Shifted,
    Trim,
)
from microveil.plan.rules import check_rules, parse
from microveil.plan.scenarios import Scenario, ScenarioSettings, check_scenarios
from microveil.plan.toml import inline, texts
from microveil.plan.units import check_units
from microveil.plan.validate import check_plan, refuse_former_settings
from microveil.shown import Shown
from microveil.types import UserTable

if TYPE_CHECKING:
    import polars as pl

AttributeRole = Confidential | Identifier | Kept | Derived | SamplingWeight | Pseudonym | Shifted
AttributesGiven = Mapping[str, object]
"""Attributes as they may be given: roles, their names, or mappings.

No narrower, because mypy takes a dict of roles and names for one of objects.
"""


Value = TypeVar("Value")


class _Frozen(Mapping[str, Value]):
    """A mapping that cannot be changed, but can be copied and pickled."""

    def __init__(self, items: Mapping[str, Value]) -> None:
        self._items = dict(items)

    def __getitem__(self, name: str) -> Value:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


def _from_role(value: object) -> object:
    return {"role": value} if isinstance(value, str) else value


def _path_as_text(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


Attribute = Annotated[
    Annotated[AttributeRole, Discriminator("role")],
    BeforeValidator(_from_role),
]
Groups = Annotated[tuple[Annotated[Group, BeforeValidator(from_names)], ...], Field(strict=False)]
Together = Annotated[
    tuple[Annotated[tuple[str, ...], Field(strict=False)], ...], Field(strict=False)
]
Attributes = Annotated[
    Mapping[str, Attribute],
    AfterValidator(_Frozen),
    PlainSerializer(lambda attributes: dict(attributes)),
]


class PlanOptions(TypedDict, total=False):
    """Settings of a plan that have a default, as they may be given."""

    method: MethodName
    k: K
    partition: Partition
    cap: int
    trim: float
    anonymity: int
    pooling: Pooling
    groups: Sequence[Group | GroupSettings | list[str] | tuple[str, ...]]
    together: Sequence[list[str] | tuple[str, ...]]
    guarantee: GuaranteeName
    post: Post
    missing: Missing
    records_per_person: int
    unit: str | None
    within: Sequence[str]
    domain_from_data: bool
    from_data: Sequence[str]
    ledger: str | Path | None
    rules: Sequence[str]
    scenarios: Sequence[Scenario | ScenarioSettings]
    na: Sequence[str]
    dates: DateOrder | None


class Reading(TypedDict):
    """What a plan says of how a file is read."""

    verbatim: tuple[str, ...]
    na: tuple[str, ...]
    dates: DateOrder | None


class PlanSettings(PlanOptions):
    """What `Plan` takes."""

    epsilon: float
    attributes: AttributesGiven


class PlanChanges(PlanOptions, total=False):
    """What `Plan.replace` takes."""

    epsilon: float
    attributes: AttributesGiven


RECOMMENDED: PlanOptions = {
    "partition": "noise-optimal", "k": 3, "trim": 0.1, "post": "penalised-isotonic",
    "anonymity": 10, "pooling": "exchange",
}  # fmt: skip
"""The settings of `Plan.recommended`, for iDP methods with fixed clusters."""


class Plan(Shown, Part):
    """What is done to each attribute of a table, for which ε.

    Parameters
    ----------
    epsilon
        The privacy budget of a person, shared between the confidential attributes.
    method
        ``"DP"``, ``"DP-UM"``, ``"iDP-LS"`` or ``"iDP-CBLS"``.
    k
        Records in a cluster; the last cluster takes the remainder. ``"auto"`` takes for each
        attribute the k of least expected error; only for iDP methods, since it looks at the data.
    partition
        ``"fixed"``: clusters of k. ``"noise-optimal"``: clusters of k to `cap` records whose
        boundaries give the least expected error at this ε; only for iDP methods.
        ``"least-squares"``: clusters of k to 2k − 1 records with the least squares within.
        Categories are always in clusters of k.
    cap
        The largest cluster of a noise-optimal partition.
    trim
        The share of a cluster's records to leave out at each end before the mean is taken, so that
        extreme values do not set its noise: 0.1 to 0.25, or 0, the paper's pre-processing. A
        cluster too small to leave out a record has that too. Only iDP-CBLS trims, and only numbers,
        dates and times: attributes of other methods, and categories, do not use the plan's trim.
    anonymity
        Pool masked values in joint clusters of as many records or more, so that nobody picks a
        person's row by the pooled attributes with a better chance than 1 in as many, whatever they
        know and whatever ε is. 0 does not pool.
    pooling
        ``"exchange"``: masked values change places at random within a joint cluster, each attribute
        by itself; ``"average"``: they are replaced by their mean, or the median or mode of
        categories.
    groups
        Lists of attributes that have joint clusters of their own. A `Group` can have an anonymity
        and a kind of pooling of its own. Attributes that are in none form one group.
    together
        Lists of attributes that are exchanged together, so that their combinations survive: birth
        and death, say. They must be in the same group.
    guarantee
        ``"fixed-clusters"``, the paper's: ε holds while clusters stay as they are; or
        ``"re-clustered"``: ε holds when one record changes and clusters are formed again, for iDP
        methods with noise scales fixed, for DP methods without that condition.
    post
        ``"isotonic"``: put masked centroids back in rising order, which costs no budget;
        ``"penalised-isotonic"``: and draw in the outermost ones; ``"none"``: do neither;
        ``"auto"``: both with iDP-CBLS where k or partition follow the data, otherwise neither.
    missing
        ``"error"``; ``"keep"``: nulls stay null and the others are clustered without them;
        ``"drop"``: records with a null in a confidential attribute are left out.
    records_per_person
        The most records one person, or with `unit` one unit, has, known without the data. Each
        record's budget is epsilon divided by it.
    unit
        The column that says which records are of one unit: a household of several persons, or a
        patient of several visits. All records of a person must be in one. It is an identifier, or a
        pseudonym. Epsilon is then that of a unit, and so covers its persons: an attribute that has
        ``per_unit = true`` is masked once for each, and equal in all its records; the budget of any
        other is divided by `records_per_person`. Values are pooled by unit.
    within
        Columns, kept or dropped, whose values are strata. Clusters and joint clusters never have
        records of two of them, and the guarantee is about tables that agree on the strata.
    domain_from_data
        Read undeclared domains from the data. For DP and DP-UM this voids the claim, so it must be
        said here; it warns and is written on the certificate.
    from_data
        What was taken from the data when the plan was made: ``"k"``, say, or ``"age: decimals"``.
        The certificate says so, and claims no more than if it had been read from the data by
        `protect`. Take out what you have declared from what is known without the data.
    ledger
        The path of the ledger of these people, into which every release by this plan is entered; in
        a TOML file it is looked for from the file's folder.
    rules
        What every released record must keep: ``["birth <= visit", "a + b == total"]``. Sums of
        multiples of columns, numbers and dates are compared by <=, <, ==, >= or >; names with
        spaces stand in double quotes, and numbers beside dates count days. Masked values that
        break one are changed as little as possible, which costs no budget. A record with a missing
        value in a rule's columns does not break it.
    scenarios
        Intruders on whom `evaluate` and `verdict` try a release, each a `Scenario`. They change
        nothing in it, and the certificate does not mention them.
    na
        Values of a file that stand for missing ones, in every column: ``["-99", "refused"]``, say.
    dates
        ``"day-first"`` or ``"month-first"``: how dates such as 03/02/2011 in a CSV file are read.
    attributes
        For every column its role: `Confidential`, `Identifier`, `Kept`, `Derived`,
        `SamplingWeight`, `Pseudonym` or `Shifted`, or the role's name alone.

    Examples
    --------
    >>> plan = Plan(epsilon=1.0, attributes={
    ...     "name": "identifier",
    ...     "region": "kept",
    ...     "wages": Confidential(lower=0, upper=500_000),
    ...     "other": "confidential",
    ...     "total": Derived(expression="wages + other"),
    ... })
    >>> plan.method, plan.k
    ('iDP-CBLS', 10)
    >>> Plan.from_toml(plan.to_toml()) == plan
    True
    """

    prefix: ClassVar[str] = "plan: "

    epsilon: float
    method: MethodName = DEFAULT_METHOD
    k: K = 10
    partition: Partition = "fixed"
    cap: int = 400
    trim: Trim = 0.0
    anonymity: int = 0
    pooling: Pooling = "exchange"
    groups: Groups = ()
    together: Together = ()
    guarantee: GuaranteeName = "fixed-clusters"
    post: Post = "auto"
    missing: Missing = "error"
    records_per_person: int = 1
    unit: str | None = None
    within: Annotated[tuple[str, ...], Field(strict=False)] = ()
    domain_from_data: bool = False
    from_data: Annotated[tuple[str, ...], Field(strict=False)] = ()
    ledger: Annotated[str | None, BeforeValidator(_path_as_text)] = None
    rules: Annotated[tuple[str, ...], Field(strict=False)] = ()
    scenarios: Annotated[tuple[Scenario, ...], Field(strict=False)] = ()
    na: Annotated[tuple[str, ...], Field(strict=False)] = ()
    dates: DateOrder | None = None
    attributes: Attributes

    def __init__(self, **settings: Unpack[PlanSettings]) -> None:
        super().__init__(**settings)

    @model_validator(mode="before")
    @classmethod
    def _refuse_former(cls, settings: dict[str, Any]) -> dict[str, Any]:
        refuse_former_settings(settings)
        return settings

    @model_validator(mode="after")
    def _check(self) -> Self:
        problems = Problems()
        for check in (check_plan, check_units, check_scenarios, check_rules):
            with problems:
                check(self)
        problems.raise_found()
        return self

    __str__ = Shown.__repr__

    @cached_property
    def confidential(self) -> Mapping[str, Confidential]:
        """The attributes that are masked."""
        return _Frozen({n: a for n, a in self.attributes.items() if isinstance(a, Confidential)})

    @cached_property
    def derived(self) -> Mapping[str, Derived]:
        """The attributes that are recomputed."""
        return _Frozen({n: a for n, a in self.attributes.items() if isinstance(a, Derived)})

    @cached_property
    def shifted(self) -> Mapping[str, Shifted]:
        """The dates and times that move by a number of days per person."""
        return _Frozen({n: a for n, a in self.attributes.items() if isinstance(a, Shifted)})

    @property
    def per_unit(self) -> tuple[str, ...]:
        """Names of the attributes that have one value for each unit."""
        return tuple(name for name, a in self.confidential.items() if a.per_unit)

    def persons_of(self, attribute: str) -> int:
        """Return the most values of an attribute that one person, or one unit, has."""
        return 1 if self.confidential[attribute].per_unit else self.records_per_person

    def names(self, role: str) -> tuple[str, ...]:
        """Names of the attributes of one role, in plan order."""
        return tuple(name for name, a in self.attributes.items() if a.role == role)

    @property
    def kept(self) -> tuple[str, ...]:
        """Names of the attributes that are published as they are, sampling weights included."""
        return tuple(n for n, a in self.attributes.items() if a.role in ("kept", "sampling_weight"))

    @property
    def sampling_weights(self) -> tuple[str, ...]:
        """Names of sampling weights, of which there is one at most in a plan that was checked."""
        masked = [name for name, a in self.confidential.items() if a.sampling_weight]
        return (*self.names("sampling_weight"), *masked)

    def read_from_data(self, attribute: str) -> frozenset[str]:
        """Return the settings of an attribute, its own or the plan's, that `from_data` marks."""
        general = self._marks.get("", frozenset()) & type(self).model_fields.keys()
        if self.confidential[attribute].k is not None:
            general -= {"k"}
        own = self._marks.get(attribute, frozenset())
        coded = {end for to, end in (("top", "upper"), ("bottom", "lower")) if to in own}
        return general | own | coded

    @cached_property
    def _marks(self) -> Mapping[str, frozenset[str]]:
        """What `from_data` marks of each attribute, and of the plan itself by no name."""
        marks: dict[str, set[str]] = {}
        for mark in self.from_data:
            attribute, _, setting = mark.rpartition(": ")
            marks.setdefault(attribute, set()).add(setting)
        return {attribute: frozenset(settings) for attribute, settings in marks.items()}

    @property
    def verbatim(self) -> tuple[str, ...]:
        """Names of the attributes whose values are text, whatever they look like."""
        text = [n for n, a in self.confidential.items() if a.has_text_categories]
        compared = {name for rule in self.rules for name in parse(rule).names}
        kept = [name for name in self.names("kept") if name not in compared]
        return (*kept, *self.names("pseudonym"), *text)

    @property
    def reading(self) -> Reading:
        """How the file is read that the plan is for."""
        return {"verbatim": self.verbatim, "na": self.na, "dates": self.dates}

    @property
    def derivation_order(self) -> tuple[str, ...]:
        """Derived attributes, each after those it is computed from."""
        graph = {name: derived.inputs for name, derived in self.derived.items()}
        return tuple(n for n in graphlib.TopologicalSorter(graph).static_order() if n in graph)

    def method_of(self, attribute: str) -> MethodName:
        """Return the attribute's own method, or the plan's."""
        return self.confidential[attribute].method or self.method

    def k_of(self, attribute: str) -> K:
        """Return the attribute's own k, or the plan's; 1 without clusters."""
        if not METHODS[self.method_of(attribute)].clustered:
            return 1
        own = self.confidential[attribute].k
        return self.k if own is None else own

    def trim_of(self, attribute: str) -> float:
        """Return the attribute's own trim, or the plan's; 0 where its ends are not pulled in."""
        if not METHODS[self.method_of(attribute)].pulls_in:
            return 0.0
        own = self.confidential[attribute].trim
        return self.trim if own is None else own

    @property
    def pooled_groups(self) -> tuple[Group, ...]:
        """The groups of attributes that are pooled, with anonymity and pooling of each."""
        named = {name for group in self.groups for name in group.attributes}
        others = tuple(name for name in self.confidential if name not in named)
        groups = (*self.groups, Group(attributes=others)) if others else self.groups
        whole = [
            Group(
                attributes=group.attributes,
                anonymity=self.anonymity if group.anonymity is None else group.anonymity,
                pooling=group.pooling or self.pooling,
            )
            for group in groups
        ]
        return tuple(group for group in whole if group.anonymity)

    def partition_of(self, attribute: str) -> Partition:
        """Return how an attribute is clustered; categories always in clusters of k."""
        return "fixed" if self.confidential[attribute].is_category else self.partition

    def replace(self, **changes: Unpack[PlanChanges]) -> "Plan":
        """Return a copy of the plan with some settings changed, checked again."""
        current: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        return Plan(**{**current, **changes})

    @classmethod
    def published(cls, **settings: Unpack[PlanSettings]) -> "Plan":
        """Make a plan that does what the paper does: clusters of k, and no post-processing."""
        plan: PlanSettings = {"partition": "fixed", "trim": 0.0, "post": "none", **settings}
        return cls(**plan)

    @classmethod
    def recommended(cls, **settings: Unpack[PlanSettings]) -> "Plan":
        """Make a plan of little error whose release is safe to link: what microveil proposes.

        Noise-optimal clusters and penalised isotonic values have the least error at level 1.
        Clusters of ten records or more are trimmed by a tenth at each end, so that a few extreme
        values move no mean far, also where no domain is declared. Masked values are exchanged
        within joint clusters of ten records.

        Guarantee
        ---------
        ε is that of level 1. Clusters follow the data, so level 2 has no bound. Nobody picks a
        person's row by the confidential attributes with a better chance than 1 in 10 (level 3).
        """
        plan: PlanSettings = {**RECOMMENDED, **settings}
        return cls(**plan)

    @classmethod
    def propose(cls, table: UserTable) -> "Plan":
        """Look at a table and propose a plan for it, as `microveil plan` does; read it and edit it.

        What was decided by the data is listed in `from_data`. Domains are left to you.

        Parameters
        ----------
        table
            A Polars or pandas DataFrame or a PyArrow Table.

        Examples
        --------
        >>> from microveil.plan.sample import people
        >>> plan = Plan.propose(people())
        >>> plan.anonymity, plan.attributes["person"].role
        (10, 'identifier')
        """
        from microveil.plan.propose.proposal import propose_plan

        return cls.from_toml(propose_plan(_polars(table), "a table"))

    def diff(self, other: "Plan") -> str:
        """Say what is different in another plan, a line for each setting.

        Examples
        --------
        >>> plan = Plan(epsilon=1.0, attributes={"age": "confidential", "name": "kept"})
        >>> attributes = {"age": Confidential(lower=0), "name": "identifier"}
        >>> print(plan.diff(plan.replace(epsilon=0.5, attributes=attributes)))
        epsilon: 1 → 0.5
        age.lower: not set → 0
        name: kept → identifier
        """
        from microveil.plan.differences import difference

        return difference(self, other)

    @classmethod
    def from_toml(cls, text: str, *, folder: str | Path = ".") -> "Plan":
        """Read a plan from TOML text; taxonomies given as paths are looked for from `folder`.

        Raises
        ------
        PlanError
            With everything that is wrong, and on which lines: `PlanError.problems`.
        """
        from microveil.plan.problems import located, plan_of

        with located(text):
            return plan_of(parse_settings(text, Path(folder)))

    def to_toml(self) -> str:
        """Write the plan as TOML text; settings left at their defaults are left out."""
        settings = self.given()
        del settings["attributes"]
        if self.from_data:
            settings["from_data"] = texts(self.from_data)
        if self.groups:
            settings["groups"] = [_group_to_toml(group) for group in self.groups]
        if self.rules:
            settings["rules"] = texts(self.rules)
        if self.scenarios:  # tables, so they come last
            settings["scenarios"] = [
                scenario.model_dump(exclude_defaults=True) for scenario in self.scenarios
            ]
        attributes = {name: _to_toml(attribute) for name, attribute in self.attributes.items()}
        return tomlkit.dumps({**settings, "attributes": attributes})

    def given(self) -> dict[str, Any]:
        """Return ε, method and k, and what else is not left at its default."""
        return {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if name in ("epsilon", "method", "k")
            or field.is_required()
            or getattr(self, name) != field.default
        }

    @classmethod
    def read(cls, path: str | Path) -> "Plan":
        """Read a plan from a TOML file; errors are those of `from_toml`."""
        return cls.from_toml(read_text(path), folder=Path(path).parent)

    def write(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the plan to a TOML file, which appears once it is complete.

        Only its owner can read it: categories, and what was proposed, may come from the data.
        The path of a ledger is written in full, since it is looked for from the file's folder.
        """
        path = Path(path)
        if path.exists() and not overwrite:
            raise FileError(
                f"plan {path}: the file exists; choose another path, or give overwrite=True "
                "(--overwrite)"
            )
        anywhere = self.replace(ledger=Path(self.ledger).absolute()) if self.ledger else self
        temporary = path.with_name(f".microveil-{secrets.token_hex(8)}-{path.name}")
        try:
            temporary.touch(mode=0o600)
            temporary.write_text(anywhere.to_toml(), encoding="utf-8", newline="\n")
            temporary.replace(path)
        except OSError as error:
            raise FileError(f"plan {path}: cannot be written: {error.strerror}") from None
        finally:
            temporary.unlink(missing_ok=True)


def _polars(table: UserTable) -> "pl.DataFrame":
    import narwhals as nw

    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise DataError(
            "expected a Polars or pandas DataFrame or a PyArrow Table, found "
            f"{type(table).__name__}; for a file, read it first, or run microveil plan FILE"
        )
    return frame.to_polars()


def read_text(path: str | Path) -> str:
    """Read the text of a plan, not checked yet."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"plan {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FileError(f"plan {path}: expected UTF-8 text; save it as UTF-8") from None


def parse_settings(text: str, folder: Path) -> dict[str, Any]:
    """Read the settings of a plan from TOML text, not checked yet."""
    try:
        settings = tomllib.loads(text)
    except ValueError as error:
        raise PlanError(
            f"plan: not valid TOML: {error}; text stands in double quotes, and every setting only "
            "once"
        ) from None
    except RecursionError:
        raise PlanError("plan: not valid TOML: tables or lists are nested too deeply") from None
    if isinstance(settings.get("ledger"), str):
        settings["ledger"] = str(folder / settings["ledger"])
    attributes = settings.get("attributes")
    for attribute in attributes.values() if isinstance(attributes, dict) else ():
        if isinstance(attribute, dict) and isinstance(attribute.get("taxonomy"), str):
            attribute["taxonomy"] = str(folder / attribute["taxonomy"])
    return settings


def _group_to_toml(group: Group) -> object:
    own = group.model_dump(exclude_defaults=True, exclude={"attributes"})
    settings = {"attributes": texts(group.attributes), **own}
    return settings["attributes"] if len(settings) == 1 else settings


def _to_toml(attribute: AttributeRole) -> dict[str, object]:
    settings = {"role": attribute.role, **attribute.model_dump(exclude_defaults=True)}
    if "taxonomy" in settings:
        settings["taxonomy"] = inline(settings["taxonomy"])
    for coded, end in (("top", "upper"), ("bottom", "lower")):
        if coded in settings:
            del settings[end]
    return settings
