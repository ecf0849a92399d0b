"""What a plan consists of, not checked yet: its settings, its attributes, and what follows."""

import graphlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, PlainSerializer

from microveil.core.choices import MethodName, Partition
from microveil.core.methods import GUARANTEES, METHODS
from microveil.plan.groups import Group, from_names
from microveil.plan.parts import PlanPart
from microveil.plan.roles import (
    Confidential,
    Derived,
    Identifier,
    Kept,
    Pseudonym,
    SamplingWeight,
    Shifted,
)
from microveil.plan.scenarios import Scenario
from microveil.plan.settings import EMPTY, FIXED, FOLLOWING, Given, K, Names, PlanSettings, Setting
from microveil.plan.uses import Use, use_from

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


Attribute = Annotated[
    Annotated[AttributeRole, Discriminator("role")],
    BeforeValidator(_from_role),
]
Groups = tuple[Annotated[Group, BeforeValidator(from_names)], ...]
Uses = tuple[Annotated[Use, BeforeValidator(use_from)], ...]
Attributes = Annotated[
    Mapping[str, Attribute],
    AfterValidator(_Frozen),
    PlainSerializer(lambda attributes: dict(attributes)),
]


class PlanFields(PlanPart, PlanSettings):
    """All that a plan says, and what follows from it."""

    prefix: ClassVar[str] = "plan: "
    gone: ClassVar[Mapping[str, str]] = {
        "together": "together is not a setting any more: values that moved together gave people "
        "away, and exchange now keeps relations between all attributes of a group; remove it. For "
        'an attribute that is computed from others write role = "derived" and an expression, for '
        'values that must be in order a rule, such as rules = ["birth <= death"]',
    }

    groups: Annotated[Given[Groups, Sequence[Group | Names]], Setting(
        help="Lists of attributes that have joint clusters of their own",
        more="A `Group` can have its own anonymity and pooling. Attributes that are in no group "
        "form one together.",
    )] = EMPTY  # fmt: skip
    scenarios: Annotated[Given[tuple[Scenario, ...], Sequence[Scenario]], Setting(
        help="Attackers against whom `evaluate` and `verdict` test a release, each a `Scenario`",
        more="They change nothing in the release, and the certificate does not mention them.",
    )] = EMPTY  # fmt: skip
    uses: Annotated[Given[Uses, Sequence[Use | str]], Setting(
        help="What a release will be used for, each a `Use` or its text, such as \"mean income by "
        "region\"",
        more="Usefulness is graded by them. They change nothing in the release, and the "
        "certificate does not mention them.",
    )] = EMPTY  # fmt: skip
    attributes: Annotated[Given[Attributes, AttributesGiven], Setting(
        help="Role of every column: `Confidential`, `Identifier`, `Kept`, `Derived`, "
        "`SamplingWeight`, `Pseudonym` or `Shifted`, or the name of the role alone",
    )]  # fmt: skip

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

    def is_by_unit(self, attribute: str) -> bool:
        """Whether an attribute has a value in every record, and its clusters are of units."""
        if self.unit is None or self.confidential[attribute].per_unit:
            return False
        return METHODS[self.method_of(attribute)].clusters_units

    def persons_of(self, attribute: str) -> int:
        """Return the most values of one person, or one unit, that ε is divided by."""
        if self.confidential[attribute].per_unit or self.is_by_unit(attribute):
            return 1
        return self.records_per_person

    def exact_from_of(self, attribute: str) -> int:
        """Return how many persons must have a value of an attribute that goes out without noise.

        Never more than those among whom its values change places.
        """
        pools = [group for group in self.pooled_groups if attribute in group.attributes]
        return min([self.exact_from, *(group.anonymity or 0 for group in pools)])

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
        k = self.k if own is None else own
        return self._by_default(attribute)["k"] if k is None else k

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

    @property
    def exchanged(self) -> frozenset[str]:
        """The attributes whose values change places, so that a row of them belongs to nobody."""
        groups = [group for group in self.pooled_groups if group.pooling == "exchange"]
        return frozenset(name for group in groups for name in group.attributes)

    def partition_of(self, attribute: str) -> Partition:
        """Return how an attribute is clustered; categories always in clusters of k."""
        if self.confidential[attribute].is_category:
            return "fixed"
        return self.partition or self._by_default(attribute)["partition"]

    def _by_default(self, attribute: str) -> Any:  # noqa: ANN401 - settings of a plan
        """Return partition and k of an attribute for which the plan does not give them."""
        follow = (
            METHODS[self.method_of(attribute)].promise.survives_data
            and GUARANTEES[self.guarantee].allows_chosen_clusters
            and self.partition in (None, "noise-optimal")
        )
        k = self.confidential[attribute].k or self.k or FOLLOWING["k"]
        fits = k != "auto" and self.cap >= 2 * k - 1
        return FOLLOWING if follow and fits else FIXED

    def given(self) -> dict[str, Any]:
        """Return ε and method, and what else is not left at its default."""
        return {
            name: getattr(self, name)
            for name, field in type(self).model_fields.items()
            if name in ("epsilon", "method")
            or field.is_required()
            or getattr(self, name) != field.default
        }
