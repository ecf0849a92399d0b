"""The verdict: what to know before a release is handed over, measured in seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp
from typing import NamedTuple

import numpy as np

from microveil.attacks.attack_rows import ATTACKS, GAINS
from microveil.attacks.known import EVERYTHING, scenarios_of
from microveil.attacks.questions import question_items
from microveil.compare.asked import Asked
from microveil.compare.examined import Examined, examine
from microveil.compare.figures import Figure, NotComputed, figures_in
from microveil.errors import DataError, RiskError
from microveil.judge.change import Change
from microveil.judge.grades import (
    Grade,
    Graded,
    grade_of,
    how_risky,
    how_useful,
    passes,
    worst_linkage,
)
from microveil.judge.next_step import loss_items, next_step
from microveil.measures.cluster_widths import crowd_figures, without_noise_figures
from microveil.measures.consistency import stratum_figures, unit_figures
from microveil.measures.uniqueness import kept_figures
from microveil.measures.use_figures import USES
from microveil.plan.scenarios import Scenario
from microveil.release.certificate import Certificate
from microveil.release.release import Release
from microveil.release.rule_outcomes import RuleOutcome
from microveil.shown import Shown
from microveil.types import UserTable

LOOKED_AT = 10_000
"""Records that are looked at one by one; of a larger table so many are drawn at random."""

_BY_STRUCTURE = 1_200
_GUESSED = (0.75, 0.96)  # ε of about 1.1 and 3.2


class ReleaseBound(NamedTuple):
    """What ε and δ bound of a whole release, whatever an attacker knows."""

    epsilon: float
    delta: float

    @property
    def guessed(self) -> float:
        """How often an attacker guesses at most, of even odds, whether a person is in the table."""
        factor = exp(-self.epsilon)
        return (1 + self.delta * factor) / (1 + factor)

    @property
    def grade(self) -> Grade:
        """How good the bound is."""
        low, fair = _GUESSED
        return "good" if self.guessed <= low else "fair" if self.guessed <= fair else "poor"


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """What to know before a release is handed over. Private: it depends on the data.

    Attributes
    ----------
    records, looked_at
        Released records, and how many of them were looked at one by one.
    figures
        What was measured, as `evaluate` would.
    change
        The one change that would help most; None if nothing needs one.
    not_computed
        Which of the three questions have no answer, which uses no figure, and why.
    linked_by
        Pseudonyms, which link the records of a person.
    shifted
        Dates that moved with their people, whom no attack looked for by them.
    rules
        What became of each rule of the plan.
    bound
        Of synthetic rows, which are those of no record, so that there is nobody to look for.
    """

    records: int
    looked_at: int
    figures: tuple[Figure, ...]
    change: Change | None
    linked_by: tuple[str, ...] = ()
    shifted: tuple[str, ...] = ()
    rules: tuple[RuleOutcome, ...] = ()
    not_computed: tuple[NotComputed, ...] = ()
    bound: ReleaseBound | None = None

    @property
    def passed(self) -> bool:
        """Whether the release passes: nobody's row is found, and no attribute given away.

        Synthetic rows pass if nobody guesses right more than 96% of the time, up to ε of 3.17.
        """
        if self.bound is not None:
            return self.bound.grade != "poor"
        return passes(self.figures)

    def raise_unless_passed(self) -> None:
        """Stop a program that would hand over a release that does not pass.

        Raises
        ------
        RiskError
            With what was found, and the one change of the plan that would help most.
        """
        if not self.passed:
            said = [line for lines in self.sentences().values() for line in lines]
            raise RiskError(" ".join(["the release does not pass its verdict:", *said]))

    def may_publish(self, certificate: Certificate) -> bool:
        """Whether nothing speaks against it: it passes, without a seed, in random order."""
        random = certificate.randomness != "seeded" and certificate.row_order == "random"
        return self.passed and random

    @property
    def risk(self) -> Graded:
        """How risky the release is."""
        if self.bound is not None:
            return Graded(self.bound.grade, ())
        return how_risky(self.figures)

    @property
    def usefulness(self) -> Graded:
        """How useful the release is."""
        return how_useful(self.figures)

    @property
    def linkage(self) -> Figure:
        """The most successful attack of all scenarios."""
        found = worst_linkage(self.figures)
        assert found is not None  # noqa: S101 - which every verdict has
        return found


def verdict(
    original: UserTable,
    release: Release,
    *,
    known: Sequence[str] = (),
    people: float = 1.0,
    seed: int | None = None,
) -> Verdict:
    """Look at a release before it is handed over: who can be found, what is lost, what to change.

    It takes seconds: of a large table some records are looked at one by one, and the people they
    belong to are looked for among all released records. What depends on everybody's values, the
    attack by who shares values with whom, is tried on some records that are protected anew with
    about the noise of the release, unless pooling proves that it finds nobody. Once an attack has
    linked too many, no further one is made.

    Parameters
    ----------
    original
        What was protected: a table, a path, a `Source`, or a lazy table of Polars.
    release
        What `protect` made of it in memory.
    known, people
        An attacker to try besides one who knows all masked attributes of everybody: one who knows
        these columns only, or only this share of the people. The plan's scenarios are tried too.
    seed
        Of what is drawn at random; by default another one each time.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": range(20, 80), "wages": [x * x for x in range(60)]})
    >>> masked = dict.fromkeys(people.columns, "confidential")
    >>> plan = Plan.published(epsilon=1.0, k=3, attributes=masked)
    >>> found = verdict(people, protect(people, plan), seed=1)
    >>> found.passed, found.change.plan.anonymity
    (False, 25)
    """
    random = np.random.default_rng(seed)
    asked = Asked(
        most_assigned=0, most_by_structure=_BY_STRUCTURE, seed=int(random.integers(2**32))
    )
    with examine(original, release, random=random, most=LOOKED_AT) as seen:
        return _judged(seen, release, asked, scenarios_of(seen.given, known, people))


def _judged(
    seen: Examined, release: Release, asked: Asked, scenarios: tuple[Scenario, ...]
) -> Verdict:
    if release.certificate.synthetic is not None:
        return _of_synthetic(seen, release, asked)
    if not seen.paired:
        raise DataError(
            "it is not known which record is whose, so nobody can be looked for; give the release "
            "that protect returned"
        )
    if not seen.pair.attributes:
        raise DataError("no masked attribute varies, so nobody can be looked for")
    found: list[Figure] = []
    for scenario in (EVERYTHING, *scenarios):
        found += _attacks(seen, scenario, asked)
    for attack in ATTACKS.values():
        if attack.on_release and not attack.in_scenarios and passes(found):
            item = attack.on_release(seen, EVERYTHING, asked)
            found += [] if item is None else figures_in([item])
    answers = list(question_items(seen, asked.seed))
    lost = list(loss_items(seen, asked))
    figures = [*figures_in(lost), *_measured(seen, asked), *found, *figures_in(answers)]
    missing = tuple(
        item
        for item in (*lost, *answers)
        if isinstance(item, NotComputed) and not {*item.measures}.isdisjoint({*USES, *GAINS})
    )
    change = next_step(seen, figures, scenarios, seed=asked.seed)
    linked = seen.planned.names("pseudonym") if release.joined is None else ()
    names = linked, seen.planned.names("shifted")
    return Verdict(seen.records, seen.drawn, tuple(figures), change, *names, release.rules, missing)


def _of_synthetic(seen: Examined, release: Release, asked: Asked) -> Verdict:
    """Measure what is left of the table; there is nobody to look for."""
    level = release.certificate.levels[2]
    bound = ReleaseBound(release.plan.epsilon, level.delta)
    lost = list(loss_items(seen, asked))
    missing = tuple(
        item for item in lost if isinstance(item, NotComputed) and {*item.measures} & {*USES}
    )
    figures = tuple(figures_in(lost))
    return Verdict(
        seen.records, seen.drawn, figures, change=None, not_computed=missing, bound=bound
    )


def _measured(seen: Examined, asked: Asked) -> Iterator[Figure]:
    """Measure what belongs together, what is kept, and what carries no noise."""
    families = [unit_figures, stratum_figures, kept_figures]
    if seen.pair.clusters is not None:
        families += [without_noise_figures, crowd_figures]
    for compute in families:
        yield from figures_in(compute(seen, asked))


def _attacks(seen: Examined, scenario: Scenario, asked: Asked) -> Iterator[Figure]:
    """Look for people in one scenario, the quickest attack first, until too many were found."""
    for attack in ATTACKS.values():
        item = attack.on_release(seen, scenario, asked) if attack.in_scenarios else None  # type: ignore[misc]
        for figure in [] if item is None else figures_in([item]):
            yield figure
            if grade_of(figure) != "good":
                return
