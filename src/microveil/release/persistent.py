"""Joint clusters that last: a private file of who was in which joint cluster of which release.

A thread is a pseudonym that a person keeps from release to release. The file has a line for each
thread, with a keyed digest of its person, and a column for each release: 0 where the thread was
absent, else the joint cluster from 1 on. Whose thread goes on is decided by `core.threads`.
"""

import json
import math
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from microveil.core.random_words import WordSource
from microveil.core.threads import Cluster, LookingAlike, assign_threads, first_size
from microveil.engines.base import Lasting
from microveil.engines.layout import numbered
from microveil.engines.refusals import history_of_too_few
from microveil.errors import DataError, FileError, PlanError, Problems
from microveil.formats import check_regular
from microveil.formats.atomic import why
from microveil.plan.plan import Plan
from microveil.plan.synthetic_checks import require_masked
from microveil.release.key import Key
from microveil.release.private_files import locked, replace_private
from microveil.types import Integers, Reals

_WHAT = "joint clusters"
_MAGIC = b"microveil joint clusters "
_VERSION = b"1"
_BYTES = 16  # of a person's digest


class LastingRelease(BaseModel):
    """A release whose joint clusters last, and what became of threads in it.

    `kept` persons have the pseudonym they had, `new` ones never had any, and `cut` ones got
    another; `absent` are those of the last releases who are not in it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str
    made: str
    anonymity: int
    kept: int
    new: int
    cut: int
    absent: int

    @property
    def people(self) -> int:
        """How many persons it has."""
        return self.kept + self.new + self.cut


class _Header(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    salt: str
    key_check: str | None = None
    turnover: Annotated[float, Field(ge=0, lt=1)] = 0.0
    releases: Annotated[tuple[LastingRelease, ...], Field(strict=False)] = ()


@dataclass(frozen=True, eq=False)
class LastingClusters:
    """All threads of some people, and the joint clusters they were in, release by release.

    Guarantee
    ---------
    In every release made with it, a thread shares its whole history so far, what its rows show
    besides pooled values included, with as many others as the plan's anonymity says.
    """

    path: Path
    header: _Header
    threads: pl.DataFrame

    @property
    def releases(self) -> tuple[LastingRelease, ...]:
        """The releases made with it."""
        return self.header.releases

    @property
    def turnover(self) -> float:
        """Which share of all persons is expected to leave, or to look otherwise, each time."""
        return self.header.turnover

    @property
    def classes(self) -> Integers:
        """How many threads have each history."""
        return np.bincount(self._history) if len(self.threads) else np.empty(0, dtype=np.int64)

    @property
    def _history(self) -> Integers:
        columns = [self.threads[one.id] for one in self.releases]
        return numbered(columns) if len(self.threads) else np.empty(0, dtype=np.int64)

    @classmethod
    def read(cls, path: str | Path) -> "LastingClusters":
        """Read a file; one that is damaged is an error, and never an empty one."""
        path = Path(path)
        try:
            check_regular(path)
            first, seal, content = path.read_bytes().split(b"\n", 2)
            _check_version(path, first)
            if seal.decode() != sha256(content).hexdigest():
                raise ValueError
            header, threads = content.split(b"\n", 1)
            return cls(
                path.resolve(),
                _Header.model_validate(json.loads(header)),
                pl.read_parquet(BytesIO(threads)),
            )
        except FileNotFoundError:
            raise FileError(
                f"{_WHAT} {path}: no such file; create it once for these people with: microveil "
                f"joint {path} --turnover 0.05"
            ) from None
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"{_WHAT} {path}: cannot be read: {why(error)}") from None
        except (ValueError, ValidationError, pl.exceptions.PolarsError):
            raise FileError(
                f"{_WHAT} {path}: damaged, or not a file of joint clusters; restore it from a copy"
            ) from None

    def write(self) -> bytes:
        """Replace the file; return what it holds now."""
        threads = BytesIO()
        self.threads.write_parquet(threads, compression="zstd")
        content = self.header.model_dump_json().encode() + b"\n" + threads.getvalue()
        seal = sha256(content).hexdigest().encode()
        whole = _MAGIC + _VERSION + b"\n" + seal + b"\n" + content
        replace_private(self.path, whole, _WHAT)
        return whole

    def with_release(self, release: LastingRelease, threads: pl.DataFrame, key: Key) -> Any:  # noqa: ANN401
        """Return it with another release."""
        header = self.header.model_copy(
            update={"releases": (*self.releases, release), "key_check": self._check_of(key)}
        )
        return replace(self, header=header, threads=threads)

    def check(self, plan: Plan, key: Key, *, keep_order: bool) -> None:
        """Refuse a plan and a key that the file is not for, before anything is read."""
        problems = Problems()
        with problems:
            _check_plan(plan, keep_order=keep_order)
        with problems:
            self._check_anonymity(plan)
        with problems:
            if self.header.key_check not in (None, self._check_of(key)):
                raise PlanError(
                    f"the key is not the one that {self.path.name} was begun with, and nobody "
                    "would keep a pseudonym; give that key file, or begin another file of joint "
                    "clusters",
                    setting="key",
                )
        problems.raise_found()

    def _check_anonymity(self, plan: Plan) -> None:
        before = self.releases[-1].anonymity if self.releases else None
        now = max((group.anonymity or 0 for group in plan.pooled_groups), default=0)
        if before not in (None, now):
            raise PlanError(
                f"anonymity must be {before:,} as in the earlier releases of {self.path.name}, "
                f"got {now:,}; change it, or begin another file of joint clusters",
                setting="anonymity",
            )

    def _check_of(self, key: Key) -> str:
        return key.digest("joint clusters", self.header.salt).hex()


def _check_version(path: Path, first: bytes) -> None:
    version = first.removeprefix(_MAGIC)
    if version == first:
        raise ValueError
    if version != _VERSION:
        raise FileError(
            f"{_WHAT} {path}: written by another version of microveil; use that version"
        )


def _check_plan(plan: Plan, *, keep_order: bool) -> None:
    """Refuse plans whose releases show more of a person than joint clusters hide."""
    require_masked(plan, "--joint")
    problems, people = Problems(), plan.names("pseudonym")
    with problems:
        if len(people) != 1:
            raise PlanError(
                f'--joint needs one attribute with role = "pseudonym", which says who is who in '
                f"all releases, got {len(people)}",
                setting="joint",
            )
    with problems:
        if plan.unit not in (None, *people):
            raise PlanError(
                f"with --joint the unit must be the pseudonym, got {plan.unit!r}; give the unit "
                "the pseudonym instead of the person, or leave --joint out",
                setting="unit",
            )
    with problems:
        groups = plan.pooled_groups
        if len(groups) != 1 or set(groups[0].attributes) != set(plan.confidential):
            raise PlanError(
                "--joint needs all confidential attributes in one group with an anonymity of 2 or "
                "more, since what is pooled apart or not at all tells persons by their pseudonyms",
                setting="groups",
            )
    with problems:
        if plan.shifted:
            raise PlanError(
                "--joint cannot be used with shifted dates, whose intervals stay with a pseudonym; "
                "mask them, or drop them",
                attribute=next(iter(plan.shifted)),
                setting="role",
            )
    with problems:
        if keep_order:
            raise PlanError("--joint needs rows in random order; leave --keep-order out")
    problems.raise_found()


class Joining:
    """A release that is made with joint clusters that last."""

    def __init__(self, known: LastingClusters, key: Key, plan: Plan, seed: int | None) -> None:
        self._known, self._key, self._seed = known, key, seed
        self._anonymity = plan.pooled_groups[0].anonymity or 0
        self._pseudonyms: dict[str, int] = {}
        self._after: LastingClusters | None = None
        self._before, self._written = known.path.read_bytes(), b""
        self.lasting = Lasting(plan.names("pseudonym")[0], self._check, self._assign)

    @property
    def before(self) -> int:
        """How many releases were made before it."""
        return len(self._known.releases)

    @property
    def release(self) -> LastingRelease:
        """What became of threads, once they were assigned."""
        assert self._after is not None  # noqa: S101 - for the type checker
        return self._after.releases[-1]

    def pseudonym(self, person: str) -> str:
        """Return the pseudonym of a person in this release."""
        return self._key.pseudonym(person, f"{self._known.header.salt} {self._pseudonyms[person]}")

    def save(self) -> None:
        """Enter the release, unless it is seeded and so not for publication."""
        if self._seed is None and self._after is not None:
            self._written = self._after.write()

    def give_back(self) -> None:
        """Take out a release that failed before there was a file of it."""
        path = self._known.path
        with locked(path, _WHAT):
            if self._written and path.read_bytes() == self._written:
                replace_private(path, self._before, _WHAT)

    def _people(self, names: Sequence[str]) -> list[bytes]:
        use = f"joint {self._known.header.salt}"
        return [self._key.digest(use, name)[:_BYTES] for name in names]

    def _check(self, names: Sequence[str]) -> None:
        """Refuse persons of whom the file knows none."""
        known = self._known
        if known.releases and not {*known.threads["person"]} & {*self._people(names)}:
            raise DataError(
                f"none of its {len(names):,} persons is in the {len(known.releases):,} releases of "
                f"{known.path.name}, which is of other people, or names them otherwise; give the "
                "file of these people, or write their identifiers as before",
                attribute=self.lasting.person,
                setting="joint",
            )

    def _assign(
        self, names: Sequence[str], looks: Integers, places: Reals, cluster: Cluster,
        ties: WordSource,
    ) -> Integers:  # fmt: skip
        known = self._known
        people = self._people(names)
        last, thread = _latest(known.threads, people)
        size = first_size(self._anonymity, known.turnover)
        found = assign_threads(
            known._history,
            LookingAlike(looks, thread),
            self._anonymity,
            size,
            places,
            cluster,
            ties,
        )
        numbers = np.where(found.goes_on, last, last + 1)
        self._pseudonyms = dict(zip(names, numbers.tolist(), strict=True))
        release = LastingRelease(
            id=secrets.token_hex(4),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            anonymity=self._anonymity,
            kept=int(found.goes_on.sum()),
            new=int(np.sum(last < 0)),
            cut=int(np.sum((last >= 0) & ~found.goes_on)),
            absent=known.threads["person"].n_unique() - int(np.sum(last >= 0)),
        )
        begun = ~found.goes_on
        threads = _extended(
            known.threads, release.id, thread[found.goes_on], found.label,
            [p for p, new in zip(people, begun, strict=True) if new], numbers[begun], found.goes_on,
        )  # fmt: skip
        self._after = known.with_release(release, threads, self._key)
        if self._after.classes.min() < self._anonymity:
            raise history_of_too_few(self.lasting.person)
        return found.label


def _latest(threads: pl.DataFrame, people: Sequence[bytes]) -> tuple[Integers, Integers]:
    """Return the number of the latest thread of each person, −1 if none, and its line."""
    lines = threads.select("person", "thread").with_row_index("line")
    latest = lines.sort("thread").group_by("person").last()
    asked = pl.DataFrame({"person": pl.Series(people, dtype=pl.Binary)})
    found = asked.join(latest, on="person", how="left", maintain_order="left")
    columns = (found[name].cast(pl.Int64).fill_null(-1).to_numpy() for name in ("thread", "line"))
    number, line = columns
    return number, line


def _extended(
    threads: pl.DataFrame, release: str, shown: Integers, label: Integers,
    people: Sequence[bytes], numbers: Integers, goes_on: np.ndarray[Any, Any],
) -> pl.DataFrame:  # fmt: skip
    """Add a release: threads that are shown, and those that begin."""
    where = np.zeros(len(threads), dtype=np.int32)
    where[shown] = label[goes_on] + 1
    begun = pl.DataFrame(
        {
            "person": pl.Series(people, dtype=pl.Binary),
            "thread": pl.Series(numbers, dtype=pl.Int32),
            release: pl.Series(label[~goes_on] + 1, dtype=pl.Int32),
        }
    )
    before = threads.with_columns(pl.Series(release, where))
    return pl.concat([before, begun], how="diagonal").fill_null(0)


@contextmanager
def joining(
    plan: Plan, path: str | Path | None, key: Key, seed: int | None, *, keep_order: bool
) -> Iterator[Joining | None]:
    """Make a release with joint clusters that last, if a file of them is given; then extend it.

    Nobody else uses the file meanwhile. Seeded releases leave it as it is.
    """
    if path is None:
        yield None
        return
    LastingClusters.read(path)  # before a lock is made beside what is none
    real = Path(path).resolve()
    with locked(real, _WHAT):
        known = LastingClusters.read(real)
        known.check(plan, key, keep_order=keep_order)
        found = Joining(known, key, plan, seed)
        yield found
        found.save()


def declare_turnover(path: str | Path, turnover: float) -> LastingClusters:
    """Begin a file of joint clusters, or declare another turnover for one that there is."""
    path = Path(path).resolve()
    if not (math.isfinite(turnover) and 0 <= turnover < 1):
        raise PlanError(f"turnover must be from 0 to below 1, got {turnover:g}", setting="turnover")
    with locked(path, _WHAT):
        if path.exists():
            known = LastingClusters.read(path)
        else:
            empty = {"person": pl.Binary, "thread": pl.Int32}
            salt = secrets.token_hex(16)
            known = LastingClusters(path, _Header(salt=salt), pl.DataFrame(schema=empty))
        header = known.header.model_copy(update={"turnover": float(turnover)})
        known = replace(known, header=header)
        known.write()
    return known


def forget(path: str | Path, release: str) -> LastingClusters:
    """Take out a release that was never shared, and the threads that were in no other."""
    path = Path(path).resolve()
    LastingClusters.read(path)
    with locked(path, _WHAT):
        known = LastingClusters.read(path)
        if release not in {one.id for one in known.releases}:
            raise PlanError(
                f"{path.name} has no release {release!r}; it has "
                f"{', '.join(one.id for one in known.releases) or 'none'}",
                setting="withdraw",
            )
        left = tuple(one for one in known.releases if one.id != release)
        ever = pl.any_horizontal(pl.lit(value=False), *(pl.col(one.id) > 0 for one in left))
        check = known.header.key_check if left else None
        header = known.header.model_copy(update={"releases": left, "key_check": check})
        known = replace(known, header=header, threads=known.threads.drop(release).filter(ever))
        known.write()
    return known
