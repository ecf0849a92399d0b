"""The ledger: what all releases of the same people have spent of their budget."""

import json
import math
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from microveil.core.accounting import budget_shares
from microveil.errors import FileError, PlanError
from microveil.formats import check_regular
from microveil.formats.atomic import why
from microveil.plan.plan import Plan
from microveil.release.certificate import Certificate, LedgerState, ProtectedFile
from microveil.release.guarantees import exactly
from microveil.release.histories import (
    Crowd,
    ShownClasses,
    all_together,
    can_be_counted,
    histories_file,
)
from microveil.release.private_files import locked, replace_private

_ROUNDING = 1e-12


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Budget(_Entry):
    """What all releases together may spend of a person, and since when."""

    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    declared: str


class Limit(_Entry):
    """The highest chance by which a person may be picked by all releases, and since when."""

    chance: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
    declared: str


class Spent(_Entry):
    """What one release spends of every person.

    It is entered when its run begins, so that no two runs spend the same rest. `unit` is whose
    epsilon it is: a person's, or that of a unit by its column, who has all records of its persons.

    `chance` is the highest, and `mean_chance` the mean chance by which the informed attacker picks
    a person by this release, and if pseudonyms link it by all that were linked then; None where
    that is not known. `histories` is the SHA-256 of the private file of who was in which class.
    """

    id: str
    began: str
    state: Literal["running", "released", "withdrawn"]
    process: int
    unit: str = "person"
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.0
    attributes: dict[str, float]
    levels: Annotated[tuple[float | None, ...], Field(strict=False)] = ()
    files: Annotated[tuple[ProtectedFile, ...], Field(strict=False)] = ()
    linked: bool = False
    chance: float | None = None
    mean_chance: float | None = None
    histories: str | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether it was released, and it is not known who shares what in it."""
        return self.state == "released" and self.chance is None


class Ledger(_Entry):
    """All releases of the same people, and the budget they keep to; the last one declared counts.

    Guarantee
    ---------
    Sequential composition: what the bounds of all releases add up to at a level bounds, at that
    level, what all of them together tell of a person. Releases made without it are not counted.
    """

    ledger_version: Literal[1] = 1
    budgets: Annotated[tuple[Budget, ...], Field(strict=False, min_length=1)]
    limits: Annotated[tuple[Limit, ...], Field(strict=False)] = ()
    releases: Annotated[tuple[Spent, ...], Field(strict=False)] = ()

    @property
    def limit(self) -> float | None:
        """The highest chance that is allowed; None if none was declared."""
        return self.limits[-1].chance if self.limits else None

    @property
    def chance(self) -> float | None:
        """By what chance a person is picked at most by all releases; None if it is not known."""
        known = [one.chance for one in self.counted if one.chance is not None]
        return max(known) if known and not any(one.is_unknown for one in self.counted) else None

    @property
    def budget(self) -> float:
        """What all releases together may spend."""
        return self.budgets[-1].epsilon

    @property
    def counted(self) -> tuple[Spent, ...]:
        """All releases but those that were withdrawn."""
        return tuple(one for one in self.releases if one.state != "withdrawn")

    @property
    def spent(self) -> float:
        """What the releases spent, those that still run included."""
        return total(one.epsilon for one in self.counted)

    @property
    def left(self) -> float:
        """What another release may spend."""
        return max(0.0, total([self.budget, -self.spent]))

    @property
    def delta(self) -> float:
        """Probability with which the releases together may tell more than their ε: δ add up."""
        return total(one.delta for one in self.counted)

    def spent_on(self, attribute: str) -> float:
        """Return what the releases spent on an attribute of this name."""
        return total(one.attributes.get(attribute, 0.0) for one in self.counted)

    def level(self, number: int) -> float | None:
        """Bound what all releases together lose at a level; None if one has no bound there."""
        bounds = [one.levels[number - 1] if one.levels else None for one in self.counted]
        known = [bound for bound in bounds if bound is not None]
        return total(known) if len(known) == len(bounds) else None

    @classmethod
    def read(cls, path: str | Path) -> "Ledger":
        """Read a ledger; one that is damaged is an error, and never an empty one."""
        path = Path(path)
        damaged = f"ledger {path}: damaged or edited by hand; restore it from a copy"
        try:
            check_regular(path)
            content = json.loads(path.read_bytes())
            seal = content.pop("sha256")
            ledger = cls.model_validate(content)
        except FileNotFoundError:
            raise FileError(
                f"ledger {path}: no such file; create it with the budget for all releases of these "
                f"people: microveil ledger {path} --budget 5"
            ) from None
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"ledger {path}: cannot be read: {why(error)}") from None
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError, ValidationError):
            raise FileError(damaged) from None
        if seal != _seal(ledger):
            raise FileError(damaged)
        return ledger


def total(epsilons: "Iterator[float] | Sequence[float]") -> float:
    """Add up in decimals, as people do: three times 0.1 is 0.3.

    Examples
    --------
    >>> total([0.1, 0.1, 0.1])
    0.3
    """
    return float(sum((Decimal(str(epsilon)) for epsilon in epsilons), Decimal()))


def declare(path: str | Path, budget: float) -> Ledger:
    """Make a ledger with a budget, or declare another budget for one that there is."""
    if not math.isfinite(budget) or budget <= 0:
        raise PlanError(f"budget must be a finite number above 0, got {budget:g}", setting="budget")
    declared = Budget(epsilon=budget, declared=_now())
    empty = Ledger(budgets=(declared,))

    def with_budget(ledger: Ledger) -> Ledger:
        return ledger if ledger is empty else _updated(ledger, budgets=(*ledger.budgets, declared))

    return _change(path, with_budget, otherwise=empty)


def declare_limit(path: str | Path, chance: float) -> Ledger:
    """Declare by what chance a person may be picked by all releases together, at most."""
    if not (math.isfinite(chance) and 0 < chance <= 1):
        raise PlanError(f"limit must be above 0 and at most 1, got {chance:g}", setting="limit")
    limit = Limit(chance=chance, declared=_now())
    return _change(path, lambda ledger: _updated(ledger, limits=(*ledger.limits, limit)))


def withdraw(path: str | Path, release: str) -> Ledger:
    """Stop counting a release that was never shared; it stays in the ledger as withdrawn."""
    return _change(path, lambda ledger: _replaced(ledger, release, state="withdrawn"))


def check_left(plan: Plan, ledger: str | Path | None, seed: int | None) -> None:
    """Refuse a plan that spends more than is left, before anything is read."""
    path = _ledger_of(plan, ledger, seed)
    if path is not None:
        _check_left(Ledger.read(path), path, plan)
        _check_countable(Ledger.read(path), plan, here=True)


@dataclass(frozen=True)
class Spending:
    """A release in a ledger: `before` is what the ledger said when it was entered."""

    path: Path
    id: str
    before: Ledger

    def settle(self, certificate: Certificate, classes: ShownClasses | None) -> Certificate:
        """Note what a release that was made promises; return its certificate with what was spent.

        One that passes the declared limit is refused. From here on it is spent, whether or not it
        is written to a file.
        """
        levels = tuple(level.epsilon for level in certificate.levels)

        def settled(ledger: Ledger) -> Ledger:
            found = self._crowd(ledger, classes)
            _check_limit(ledger, found)
            told: dict[str, Any] = (
                {} if found is None else {"chance": found.chance, "mean_chance": found.mean}
            )
            if found is not None and classes is not None and classes.thread is not None:
                told["histories"] = classes.write(self.path, self.id)
            return _replaced(ledger, self.id, state="released", levels=levels, **told)

        _change(self.path, settled)
        return certificate.model_copy(update={"ledger": self._state(certificate)})

    def record(self, file: ProtectedFile) -> None:
        """Note a file just before it is moved into place."""

        def with_file(ledger: Ledger) -> Ledger:
            before = next((one.files for one in ledger.releases if one.id == self.id), ())
            return _replaced(ledger, self.id, files=(*before, file))

        _change(self.path, with_file)

    def give_back(self) -> None:
        """Take out a release that failed before there was a file of it."""

        def without(ledger: Ledger) -> Ledger:
            others = tuple(one for one in ledger.releases if one.id != self.id or one.files)
            if self.id not in {one.id for one in others}:
                histories_file(self.path, self.id).unlink(missing_ok=True)
            return _updated(ledger, releases=others)

        _change(self.path, without)

    def _crowd(self, ledger: Ledger, classes: ShownClasses | None) -> Crowd | None:
        """Count by what chance people are picked by this release and those it is linked to."""
        if classes is None or classes.thread is None:
            return None if classes is None else classes.crowd
        linked = [one for one in ledger.counted if one.linked and one.id != self.id]
        if any(one.is_unknown for one in linked):
            return None
        before = [ShownClasses.read(self.path, o.id, o.histories) for o in linked if o.histories]
        return all_together([*before, classes])

    def _state(self, certificate: Certificate) -> LedgerState:
        before, budget = self.before, self.before.budget
        after = total([before.spent, certificate.epsilon])
        return LedgerState(
            budget=budget,
            releases_before=len(before.counted),
            epsilon_before=before.spent,
            epsilon_after=after,
            delta_after=total([before.delta, certificate.levels[2].delta]),
            attributes_before={a.name: before.spent_on(a.name) for a in certificate.attributes},
        )


class GivenBack(Protocol):
    """What a release was entered into."""

    def give_back(self) -> None:
        """Take out a release that failed before there was a file of it."""


def _releases(count: int) -> str:
    return f"{count:,} release{'' if count == 1 else 's'}"


@contextmanager
def reserved(
    plan: Plan, ledger: str | Path | None, seed: int | None, *, here: bool = True
) -> Iterator[Spending | None]:
    """Reserve in a ledger, if there is one, what a plan spends; give it back if the work fails.

    Seeded releases are not for publication and spend nothing. Those of tables that are not `here`,
    but on Spark, are refused where a limit was declared.
    """
    path = _ledger_of(plan, ledger, seed)
    if path is None:
        yield None
        return
    spending = _reserve(path, plan, here=here)
    with given_back_on_failure(spending):
        yield spending


@contextmanager
def given_back_on_failure(*entered: GivenBack | None) -> Iterator[None]:
    """Take out what a release was entered into if it fails before there is a file of it."""
    try:
        yield
    except BaseException:
        for one in entered:
            if one is not None:
                one.give_back()
        raise


def _ledger_of(plan: Plan, ledger: str | Path | None, seed: int | None) -> Path | None:
    """Return the ledger that a release is entered into; seeded ones are entered into none."""
    path = plan.ledger if ledger is None else ledger
    return None if path is None or seed is not None else Path(path)


def _reserve(path: Path, plan: Plan, *, here: bool) -> Spending:
    shares = budget_shares(plan.epsilon, [a.budget_share for a in plan.confidential.values()])
    if plan.release == "synthetic":  # which any of them may have spent
        shares = [plan.epsilon] * len(plan.confidential)
    entry = Spent(
        id=secrets.token_hex(4),
        began=_now(),
        state="running",
        process=os.getpid(),
        unit=plan.unit or "person",
        epsilon=plan.epsilon,
        delta=plan.delta if plan.release == "synthetic" else 0.0,
        attributes=dict(zip(plan.confidential, shares, strict=True)),
        linked=bool(plan.names("pseudonym")),
    )
    before: list[Ledger] = []

    def entered(ledger: Ledger) -> Ledger:
        _check_left(ledger, path, plan)
        _check_countable(ledger, plan, here=here)
        before.append(ledger)
        return _updated(ledger, releases=(*ledger.releases, entry))

    _change(path, entered)
    return Spending(path.resolve(), entry.id, before[0])


def _check_left(ledger: Ledger, path: Path, plan: Plan) -> None:
    if total([ledger.spent, plan.epsilon]) <= ledger.budget:
        return
    running = sum(one.state == "running" for one in ledger.counted)
    unended = f" ({running:,} of them still running, or killed)" if running else ""
    raise PlanError(
        f"epsilon must be at most what is left of the ledger's budget of "
        f"{exactly(ledger.budget)}: {exactly(ledger.left)} after "
        f"{_releases(len(ledger.counted))}{unended}, got {exactly(plan.epsilon)}; choose a "
        f"smaller epsilon, or see what was spent: microveil ledger {path}",
        setting="epsilon",
    )


def _check_countable(ledger: Ledger, plan: Plan, *, here: bool) -> None:
    """Refuse a release of which it would not be known who shares what, if there is a limit."""
    if ledger.limit is None:
        return
    if not (here and can_be_counted(plan)):
        raise PlanError(
            "the ledger has a limit, and the chance of picking a person by this release could not "
            "be counted: all confidential attributes must be pooled, with one pseudonym at most, "
            "which is the unit if there is one, without shifted dates, and not on Spark; change "
            "the plan, or use a ledger without a limit",
            setting="limit",
        )
    unknown = [one.id for one in ledger.counted if one.linked and one.is_unknown]
    if unknown and plan.names("pseudonym"):
        raise PlanError(
            f"the ledger has a limit, and of its release {unknown[0]}, which has pseudonyms, it is "
            "not known who shares what; withdraw it if it was never shared, or use another ledger "
            "and another key file",
            setting="limit",
        )


def _check_limit(ledger: Ledger, found: Crowd | None) -> None:
    """Refuse a release that passes the declared limit."""
    known = [one.chance for one in ledger.counted if one.chance is not None]
    highest = max([*known, 1.0 if found is None else found.chance])
    if ledger.limit is not None and highest > ledger.limit + _ROUNDING:
        raise PlanError(
            "with this release an attacker who knows everything but the random draws could pick a "
            f"person with a chance of {highest:.1%} by all releases of the ledger, whose limit is "
            f"{ledger.limit:.1%}; nothing was released: use --joint from the first release on, "
            "other pseudonyms (another key file), or a larger anonymity",
            setting="limit",
        )


def _change(
    path: str | Path, change: Callable[[Ledger], Ledger], *, otherwise: Ledger | None = None
) -> Ledger:
    """Read, change and write a ledger while no other process does; if there is none, make it."""
    path = Path(path).resolve()  # so that a link stays one
    if otherwise is None or path.exists():
        Ledger.read(path)  # before a lock is made beside what is none
    with locked(path, "ledger"):
        begun = otherwise if otherwise is not None and not path.exists() else None
        changed = change(begun or Ledger.read(path))
        _write(path, changed)
    return changed


def _write(path: Path, ledger: Ledger) -> None:
    content = {**ledger.model_dump(mode="json"), "sha256": _seal(ledger)}
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    replace_private(path, text.encode(), "ledger")


def _seal(ledger: Ledger) -> str:
    without = {n: {"delta"} for n, one in enumerate(ledger.releases) if not one.delta}
    content = ledger.model_dump_json(exclude={"releases": without})
    return sha256(content.encode()).hexdigest()


def _replaced(ledger: Ledger, release: str, **changes: object) -> Ledger:
    """Change one release of a ledger."""
    if release not in {one.id for one in ledger.releases}:
        raise PlanError(
            f"the ledger has no release {release!r}; it has "
            f"{', '.join(one.id for one in ledger.releases) or 'none'}",
            setting="withdraw",
        )
    releases = tuple(
        one.model_copy(update=changes) if one.id == release else one for one in ledger.releases
    )
    return _updated(ledger, releases=releases)


def _updated(ledger: Ledger, **changes: object) -> Ledger:
    return ledger.model_copy(update=changes)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
