"""The plan: what is done to each attribute, for which ε. Frozen, validated, TOML in and out."""

import secrets
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict

import tomlkit
from pydantic import model_validator

from microveil.core.choices import DateOrder
from microveil.errors import DataError, FileError, PlanError, Problems
from microveil.plan.differences import difference
from microveil.plan.fields import AttributeRole, Attributes, AttributesGiven, PlanFields
from microveil.plan.groups import Group
from microveil.plan.problems import located, plan_from
from microveil.plan.rules import check_rules, parse
from microveil.plan.scenarios import check_scenarios
from microveil.plan.settings import EMPTY, PUBLISHED, Given, takes
from microveil.plan.synthetic_checks import check_synthetic
from microveil.plan.toml import as_toml, inline, texts
from microveil.plan.units import check_units_and_strata
from microveil.plan.uses import check_uses
from microveil.plan.validate import check_settings
from microveil.shown import Shown
from microveil.types import UserTable

if TYPE_CHECKING:

    class PlanChanges(PlanFields):
        """What `Plan.replace` takes: every setting, and none is required."""

        epsilon: float = 1.0
        attributes: Given[Attributes, AttributesGiven] = EMPTY

else:
    PlanChanges = PlanFields


class ReadingOptions(TypedDict):
    """What a plan says of how a file is read."""

    verbatim: tuple[str, ...]
    na: tuple[str, ...]
    dates: DateOrder | None


class Plan(Shown, PlanFields):
    """What is done to each attribute of a table, for which ε.

    What is not said has little error, and a release that is safe to link. Noise-optimal clusters
    and penalised isotonic values have the least error at level 1. Clusters of ten records or more
    are trimmed by a tenth at each end, so that a few extreme values do not move a mean far, even if
    no domain is declared. Masked values are exchanged within joint clusters of ten records. Where a
    method or a guarantee cannot have noise-optimal clusters, they are of ten records each.

    Guarantee
    ---------
    ε holds at level 1. Clusters follow the data, so level 2 has no bound, unless method or
    guarantee say otherwise. An attacker cannot pick a person's row by the confidential attributes
    with probability above 1/10 (level 3).

    Examples
    --------
    >>> from microveil import Confidential, Derived, Plan
    >>> plan = Plan(epsilon=1.0, attributes={
    ...     "name": "identifier",
    ...     "region": "kept",
    ...     "wages": Confidential(lower=0, upper=500_000),
    ...     "other": "confidential",
    ...     "total": Derived(expression="wages + other"),
    ... })
    >>> plan.method, plan.partition_of("wages"), plan.k_of("wages"), plan.anonymity
    ('iDP-CBLS', 'noise-optimal', 3, 25)
    >>> Plan.from_toml(plan.to_toml()) == plan
    True
    """

    @model_validator(mode="after")
    def _check(self) -> Self:
        roles = {name: attribute.role for name, attribute in self.attributes.items()}
        problems = Problems()
        for check in (check_settings, check_synthetic, check_units_and_strata, check_rules):
            with problems:
                check(self)
        with problems:
            check_scenarios(self.scenarios, roles)
        with problems:
            check_uses(self.uses, self.attributes)
        problems.raise_found()
        return self

    __str__ = Shown.__repr__

    @property
    def verbatim(self) -> tuple[str, ...]:
        """Names of the attributes whose values are text, whatever they look like."""
        if self.release == "synthetic":  # so that no record decides on the type of a column
            return tuple(self.confidential)
        text = [n for n, a in self.confidential.items() if a.has_text_categories]
        compared = {name for rule in self.rules for name in parse(rule).names}
        kept = [name for name in self.names("kept") if name not in compared]
        return (*kept, *self.names("pseudonym"), *text)

    @property
    def reading(self) -> ReadingOptions:
        """How the file is read that the plan is for."""
        return {"verbatim": self.verbatim, "na": self.na, "dates": self.dates}

    @takes(PlanChanges)
    def replace(self, **changes: Any) -> "Plan":  # noqa: ANN401 - any setting
        """Return a copy of the plan with some settings changed, checked again."""
        current = {name: getattr(self, name) for name in type(self).model_fields}
        return Plan(**{**current, **changes})

    @classmethod
    @takes(PlanFields)
    def published(cls, **settings: Any) -> "Plan":  # noqa: ANN401 - any setting
        """Make a plan that does what the paper does: clusters of k, and nothing after masking.

        Its releases are not pooled, and so can be linked at any ε. What all records of a cluster
        agree on goes out without noise, however few they are.
        """
        return cls(**{**PUBLISHED, **settings})

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
        (25, 'identifier')
        """
        from microveil.plan.propose.proposal import propose_plan
        from microveil.plan.user_table import opened

        try:
            frame = opened(table)
        except TypeError:
            raise DataError(
                "expected a Polars or pandas DataFrame or a PyArrow Table, found "
                f"{type(table).__name__}; for a file, read it first, or run microveil plan FILE"
            ) from None
        return cls.from_toml(propose_plan(frame.to_native(), "a table"))

    def diff(self, other: "Plan") -> str:
        """Say what is different in another plan, a line for each setting.

        Examples
        --------
        >>> from microveil import Confidential
        >>> plan = Plan(epsilon=1.0, attributes={"age": "confidential", "name": "kept"})
        >>> attributes = {"age": Confidential(lower=0), "name": "identifier"}
        >>> print(plan.diff(plan.replace(epsilon=0.5, attributes=attributes)))
        epsilon: 1 → 0.5
        age.lower: not set → 0
        name: kept → identifier
        """
        return difference(self, other)

    @classmethod
    def from_toml(cls, text: str, *, folder: str | Path = ".") -> Self:
        """Read a plan from TOML text; taxonomies given as paths are looked for from `folder`.

        Raises
        ------
        PlanError
            With everything that is wrong, and on which lines: `PlanError.problems`.
        """
        with located(text):
            return plan_from(cls, parse_settings(text, Path(folder)))

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
        if self.uses:
            settings["uses"] = [use.to_settings() for use in self.uses]
        attributes = {name: _to_toml(attribute) for name, attribute in self.attributes.items()}
        return tomlkit.dumps({**settings, "attributes": attributes})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan from a TOML file; errors are those of `from_toml`."""
        return cls.from_toml(read_plan_text(path), folder=Path(path).parent)

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


def read_plan_text(path: str | Path) -> str:
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
            f"plan: not valid TOML: {error}; put text in double quotes, and give every setting once"
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
    if "merge" in settings:
        settings["merge"] = inline({name: list(group) for name, group in settings["merge"].items()})
    for coded, end in (("top", "upper"), ("bottom", "lower")):
        if coded in settings:
            del settings[end]
    for name in {"top", "bottom", "upper", "lower"} & settings.keys():
        settings[name] = as_toml(settings[name])
    return settings
