"""The settings of a plan, each declared once: its type, its default, and what people read of it.

Flags of the command line, controls of the page, comments in proposed plans, the JSON schema,
docstrings and the reference are made from these declarations. Nothing heavy is imported here,
because the command line reads them each time it starts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from inspect import get_annotations
from operator import or_
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    dataclass_transform,
    get_args,
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
    ReleaseKind,
)

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

K = int | Literal["auto"]
Names = list[str] | tuple[str, ...]

Class = TypeVar("Class")
Result = TypeVar("Result")
Own = TypeVar("Own")
Held = TypeVar("Held", covariant=True)
Taken = TypeVar("Taken", contravariant=True)
Parameters = ParamSpec("Parameters")

UNITS = "Households or patients, and strata"
MORE = "Rules, ledger, and key file of pseudonyms"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What people read of a setting.

    Parameters
    ----------
    help
        What it sets, in one sentence without a full stop: help of the flag, comment in a proposed
        plan, description in the JSON schema, and first sentence of the documentation.
    more
        What else the documentation says, in whole sentences.
    flag
        Whether ``microveil protect`` has a flag for it.
    label
        Label of its control on the page; without one it has none.
    choices
        Labels of its values on the page. A word that stands for a number, such as "auto", has a
        checkbox with this label.
    steps
        Numbers on its slider.
    percent
        Whether the page writes these as percentages.
    columns
        Whether its values are names of columns.
    section
        Title of the page's section for settings that few plans need; without one it is always seen.
    needs
        Setting without which it has no effect.
    """

    help: str
    more: str = ""
    flag: bool = False
    label: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    steps: Sequence[float] = ()
    percent: bool = False
    columns: bool = False
    section: str = ""
    needs: str = ""

    def __get_pydantic_json_schema__(
        self, schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> "JsonSchemaValue":
        """Describe the setting in a JSON schema."""
        return {**handler(schema), "description": self.text.replace("``", "")}

    @property
    def text(self) -> str:
        """The whole documentation, as a paragraph."""
        return f"{self.help}. {self.more}".strip()


class Declared(NamedTuple):
    """A setting with its name, and the type of its values: None is left out."""

    name: str
    type: Any
    setting: Setting

    @property
    def comment(self) -> str:
        """What a plan in TOML says of it."""
        words = [word for word in get_args(self.type) if isinstance(word, str)]
        return f"{self.setting.help} ({', '.join(words)})" if words else self.setting.help


def declared_in(owner: type) -> list[Declared]:
    """Find the settings of a class, its parents' first.

    Examples
    --------
    >>> [declared.name for declared in declared_in(PlanSettings)][:3]
    ['epsilon', 'release', 'delta']
    """
    return [
        Declared(name, _without_none(get_args(annotation)[0]), found)
        for part in reversed(owner.__mro__)
        for name, annotation in get_annotations(part).items()
        for found in getattr(annotation, "__metadata__", ())
        if isinstance(found, Setting)
    ]


def _without_none(type_: Any) -> Any:  # noqa: ANN401 - types have no common one
    own = [part for part in get_args(type_) if part is not type(None)]
    return reduce(or_, own) if type(None) in get_args(type_) else type_


if TYPE_CHECKING:

    class Given(Generic[Held, Taken]):
        """A setting that takes values of more types than it holds, as type checkers see it."""

        def __get__(self, part: object, owner: object) -> Held: ...
        def __set__(self, part: object, value: Taken) -> None: ...

else:

    class Given:
        """A setting that takes values of more types than it holds."""

        def __class_getitem__(cls, types: tuple[type, type]) -> type:
            return types[0]


def takes(
    settings: Callable[Parameters, object],  # noqa: ARG001 - for type checkers
) -> Callable[
    [Callable[Concatenate[Own, ...], Result]], Callable[Concatenate[Own, Parameters], Result]
]:
    """Tell type checkers that a method takes the same keywords as a class of settings."""
    return lambda method: method


@dataclass_transform(kw_only_default=True)
def only_settings(cls: type[Class]) -> type[Class]:
    """Tell type checkers that a class only declares settings."""
    return cls


EMPTY: Any = ()
UNSET: Any = None
"""Defaults of settings that take values of more types than they hold."""

List = Given[tuple[str, ...], Names]


@only_settings
class PlanSettings:
    """Settings of a plan that are numbers, words or lists of words."""

    epsilon: Annotated[float, Setting(
        help="Privacy budget of a person, shared by the confidential attributes; smaller protects "
        "more",
        flag=True,
        label="ε, the privacy budget of a person: smaller protects more",
        steps=(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0),
    )]  # fmt: skip
    release: Annotated[ReleaseKind, Setting(
        help="What is released: the table with its values masked, or synthetic rows",
        more="With ``\"synthetic\"``, rows are drawn from a model of noisy counts and belong to "
        "nobody. The whole file is then differentially private, with ``epsilon`` and ``delta``; "
        "settings of clusters, noise and pooling have no effect. Kinds, domains and categories "
        "must be declared, and nothing may be kept.",
        flag=True,
    )] = "masked"  # fmt: skip
    delta: Annotated[float, Setting(
        help="Probability with which a synthetic release may tell more than epsilon says, 0 for "
        "never",
        more="It must be far below 1 divided by the number of records. With 0, which is pure "
        "differential privacy, tables of some thousand records become much less useful.",
        flag=True,
    )] = 1e-5  # fmt: skip
    predicts: Annotated[str | None, Setting(
        help="Attribute of categories that a synthetic release is to predict",
        more="Where records are few for ``epsilon``, each of its categories then has a model of "
        "its own, which costs no budget.",
        flag=True,
    )] = None  # fmt: skip
    expected_records: Annotated[int | None, Setting(
        help="Approximate number of records of a synthetic release, known without the data",
        more="If it is too small for ``epsilon``, or too large for ``delta``, the plan is refused "
        "or warned of before any budget is spent.",
        flag=True,
    )] = None  # fmt: skip
    method: Annotated[MethodName, Setting(
        help="Method that masks values; DP and DP-UM need declared domains",
        flag=True,
        label="Method",
        choices={
            "iDP-CBLS": "iDP-CBLS: least noise, needs no domain",
            "iDP-LS": "iDP-LS: noise follows this table's domain",
            "DP-UM": "DP-UM: differential privacy, on clusters",
            "DP": "DP: differential privacy, on every value",
        },
    )] = DEFAULT_METHOD  # fmt: skip
    guarantee: Annotated[GuaranteeName, Setting(
        help="What epsilon covers",
        more="With ``\"fixed-clusters\"``, as in the paper, ε holds while clusters stay as they "
        "are. With ``\"re-clustered\"`` it holds when one record changes and clusters are formed "
        "again; iDP methods then keep their noise scales fixed, DP methods need no such condition.",
        flag=True,
        label="Guarantee",
        choices={
            "fixed-clusters": "fixed clusters: ε holds while clusters stay as they are",
            "re-clustered": "re-clustered: ε holds when clusters are formed again (iDP: noise "
            "scales fixed)",
        },
    )] = "fixed-clusters"  # fmt: skip
    partition: Annotated[Partition | None, Setting(
        help="How values are divided into clusters, by default noise-optimal where method and "
        "guarantee allow it",
        more="``\"fixed\"``: clusters of k records. ``\"noise-optimal\"``: clusters of k to `cap` "
        "records with the least expected error at this ε; for iDP methods only. "
        "``\"least-squares\"``: clusters of k to 2k − 1 records with the least squares within "
        "clusters. Categories are always in clusters of k.",
        flag=True,
        label="Clusters",
        choices={
            "fixed": "fixed: k records each",
            "noise-optimal": "noise-optimal: k or more, least expected error",
            "least-squares": "least-squares: k to 2k − 1, most alike",
        },
    )] = None  # fmt: skip
    missing: Annotated[Missing, Setting(
        help="What happens to missing values",
        more="``\"error\"`` refuses them. With ``\"keep\"`` they stay missing, and the other "
        "values are clustered without them. ``\"drop\"`` removes records with a missing value in "
        "a confidential attribute.",
        flag=True,
        label="Missing values",
        choices={
            "error": "error: refuse them",
            "keep": "keep: they stay missing",
            "drop": "drop: remove their records",
        },
    )] = "error"  # fmt: skip
    k: Annotated[K | None, Setting(
        help="Minimum number of records in a cluster of one attribute, or \"auto\"; by default 3 "
        "with noise-optimal clusters, otherwise 10",
        more="``\"auto\"`` chooses the k with the least expected error for each attribute. It "
        "looks at the data, so only iDP methods can use it.",
        flag=True,
        label="k, records in a cluster: larger protects more",
        choices={"auto": "Let the data choose k, for the least expected error"},
        steps=(1, 2, 3, 4, 5, 7, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000),
    )] = None  # fmt: skip
    cap: Annotated[int, Setting(
        help="Maximum number of records in a cluster of a noise-optimal partition",
    )] = 400  # fmt: skip
    trim: Annotated[float, Setting(
        help="Share of a cluster's records left out at each end before its mean is taken, 0 to "
        "0.25",
        more="Extreme values then do not set the noise. 0 is the paper's pre-processing, which "
        "clusters too small to leave out a record always have. Only iDP-CBLS trims, and only "
        "numbers, dates and times: other attributes do not use the plan's trim.",
        flag=True,
        label="Share of a cluster left out at each end, against extreme values (iDP-CBLS only)",
        steps=(0.0, 0.1, 0.15, 0.2, 0.25),
        percent=True,
    )] = 0.1  # fmt: skip
    post: Annotated[Post, Setting(
        help="How masked values are post-processed, which costs no budget",
        more="``\"isotonic\"`` puts masked centroids back in rising order. "
        "``\"penalised-isotonic\"`` also draws in the outermost ones. ``\"none\"`` does neither.",
        flag=True,
    )] = "penalised-isotonic"  # fmt: skip
    anonymity: Annotated[int, Setting(
        help="Minimum number of records in a joint cluster, where masked values are pooled; 0 "
        "turns pooling off",
        more="An attacker cannot pick a person's row by the pooled attributes with probability "
        "above 1/anonymity, at any ε and whatever the attacker knows.",
        flag=True,
        label="Anonymity, records in a joint cluster: larger hides a person's row among more",
        choices={"0": "off"},
        steps=(0, 2, 3, 5, 10, 15, 20, 25, 50, 100),
    )] = 25  # fmt: skip
    exact_from: Annotated[int, Setting(
        help="Minimum number of persons, or units, who have a value that goes out without noise",
        more="iDP publishes the mean of records that agree as it is. If fewer persons have it, it "
        "gets noise that reaches the nearest other value, and a category is drawn. Of attributes "
        "that are pooled it is never more than the anonymity of their group. 0 turns it off, as in "
        "the paper.",
        flag=True,
    )] = 10  # fmt: skip
    pooling: Annotated[Pooling, Setting(
        help="How masked values are pooled in joint clusters",
        more="With ``\"exchange\"`` the values of each attribute change places within a joint "
        "cluster, and relations between attributes are kept. With ``\"average\"`` they become "
        "their mean, or for categories their median or mode.",
        flag=True,
        label="Pooling of masked values in joint clusters",
        choices={
            "exchange": "exchange: change places, relations kept",
            "average": "average: all alike",
        },
        needs="anonymity",
    )] = "exchange"  # fmt: skip
    records_per_person: Annotated[int, Setting(
        help="Maximum number of records of one person, or of one unit, known without the data",
        more="The budget of each record is epsilon divided by it.",
        flag=True,
        label="Most records one person, or one unit, has",
    )] = 1  # fmt: skip
    unit: Annotated[str | None, Setting(
        help="Column that says which records belong to one unit, such as a household or a patient",
        more="It must be an identifier or a pseudonym, and all records of a person must be in one "
        "unit. Epsilon is then the budget of a unit, and so covers its persons. An attribute with "
        "``per_unit = true`` is masked once for each unit and is equal in all its records. With "
        "iDP-CBLS any other attribute has clusters of k different units, and noise covers all "
        "records of one; with other methods its budget is divided by `records_per_person`. Values "
        "are pooled by unit.",
        flag=True,
        label="Unit, the column that says which records belong together: ε is then that of a unit",
        columns=True,
        section=UNITS,
    )] = None  # fmt: skip
    within: Annotated[List, Setting(
        help="Columns of strata, kept or dropped, that clusters do not cross",
        more="Clusters and joint clusters never have records of two strata. The guarantee is about "
        "tables that agree on the strata.",
        flag=True,
        label="Strata: clusters never cross these columns, which are published as they are",
        columns=True,
        section=UNITS,
    )] = EMPTY  # fmt: skip
    domain_from_data: Annotated[bool, Setting(
        help="Read undeclared domains from the data, which voids the claim of DP and DP-UM",
        more="It warns, and the certificate says so.",
        flag=True,
        label="Read domains that are not declared from the data (voids a claim of differential "
        "privacy)",
    )] = False  # fmt: skip
    from_data: Annotated[List, Setting(
        help="Settings that were taken from the data when the plan was made",
        more="For example ``\"k\"``, or ``\"age: decimals\"``. The certificate lists them, and "
        "claims no more than if `protect` had read them from the data. Remove those that you have "
        "declared from what is known without the data.",
    )] = EMPTY  # fmt: skip
    ledger: Annotated[Given[str | None, str | Path | None], Setting(
        help="Path of the ledger of these people, into which every release by this plan is entered",
        more="In a TOML file it is relative to the file's folder.",
        label="Ledger of these people, a file on this machine: every press of Protect is entered",
        section=MORE,
    )] = UNSET  # fmt: skip
    rules: Annotated[List, Setting(
        help="Rules that every released record keeps, such as \"birth <= visit\" or \"a + b == "
        "total\"",
        more="A rule compares sums of multiples of columns, numbers and dates by <=, <, ==, >= or "
        ">. Names with spaces stand in double quotes, and numbers beside dates count days. Masked "
        "values that break a rule are changed as little as possible, which costs no budget. A "
        "record with a missing value in a rule's columns does not break it.",
        label="Rules that every released record keeps, one per line, e.g. birth <= visit",
        section=MORE,
    )] = EMPTY  # fmt: skip
    na: Annotated[List, Setting(
        help="Values of the file that stand for missing ones, in every column",
        more="For example ``[\"-99\", \"refused\"]``.",
    )] = EMPTY  # fmt: skip
    dates: Annotated[DateOrder | None, Setting(
        help="How dates such as 03/02/2011 in a CSV file are read",
    )] = None  # fmt: skip


FOLLOWING: Any = {"partition": "noise-optimal", "k": 3}
"""Partition and k by default, where clusters may follow the data."""

FIXED: Any = {"partition": "fixed", "k": 10}
"""Partition and k by default, where they may not."""

RECOMMENDED: Any = FOLLOWING | {
    name: getattr(PlanSettings, name) for name in ("trim", "post", "anonymity", "pooling")
}
"""What a plan does by default for iDP methods with fixed clusters."""

PUBLISHED: Any = FIXED | {"trim": 0.0, "post": "none", "anonymity": 0, "exact_from": 0}
"""What the paper does."""
