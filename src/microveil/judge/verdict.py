"""The verdict: what to know before a release is handed over, measured in seconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from microveil.attacks import linkage
from microveil.attacks.known import EVERYTHING, Known, proved, scenarios_of, what_is_known
from microveil.attacks.linkage import Linked
from microveil.attacks.risk_figures import kept_figure, kept_linkage_figure, linkage_figure
from microveil.attacks.whole_units import unit_linkage_figures
from microveil.compare.figures import Figure, percent
from microveil.compare.pairing import Pair
from microveil.core.methods import METHODS
from microveil.errors import DataError
from microveil.judge.change import Change
from microveil.judge.glance import Glance, glance
from microveil.judge.grades import (
    MEDIUM_LINKAGE,
    Card,
    grade_of,
    how_risky,
    how_useful,
    passes,
    worst_linkage,
)
from microveil.judge.next_step import losses_of, next_step
from microveil.measures import disclosure_risk as risk
from microveil.measures.unit_figures import stratum_figures, unit_figures
from microveil.plan.scenarios import Scenario
from microveil.release.certificate import Certificate
from microveil.release.release import Release
from microveil.release.rule_outcomes import RuleOutcome
from microveil.shown import Shown
from microveil.types import UserTable

if TYPE_CHECKING:
    pass

STRUCTURE = 1_200
"""Records up to which the attack by shared values is made on the release itself."""

_TRIAL, _TRIALS = 1_000, 5
_OF_UNITS = 200_000


@dataclass(frozen=True, repr=False)
class Verdict(Shown):
    """What to know before a release is handed over. It depends on the data: keep it private.

    Attributes
    ----------
    records, looked_at
        Released records, and how many of them were looked at one by one.
    figures
        What was measured, as `evaluate` would.
    change
        The one change that would help most; None if nothing needs one.
    linked_by
        Pseudonyms, which link the records of a person.
    shifted
        Dates that moved with their people, whom no attack looked for by them.
    rules
        What became of each rule of the plan.
    """

    records: int
    looked_at: int
    figures: tuple[Figure, ...]
    change: Change | None
    linked_by: tuple[str, ...] = ()
    shifted: tuple[str, ...] = ()
    rules: tuple[RuleOutcome, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the release passes: risk is low, by `rule`."""
        return self.risk.grade == "good"

    def may_publish(self, certificate: Certificate) -> bool:
        """Whether nothing speaks against it: it passes, without a seed, in random order."""
        random = certificate.randomness != "seeded" and certificate.row_order == "random"
        return self.passed and random

    @property
    def risk(self) -> Card:
        """How risky the release is."""
        return how_risky(self.figures)

    @property
    def usefulness(self) -> Card:
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
        An intruder to try besides one who knows all masked attributes of everybody: someone who
        knows these columns only, or only this share of the people. The plan's scenarios are tried
        too.
    seed
        Of what is drawn at random; by default another one each time.

    Examples
    --------
    >>> import polars as pl
    >>> from microveil import Plan, protect
    >>> people = pl.DataFrame({"age": range(20, 80), "wages": [x * x for x in range(60)]})
    >>> plan = Plan(epsilon=1.0, k=3, attributes=dict.fromkeys(people.columns, "confidential"))
    >>> found = verdict(people, protect(people, plan), seed=1)
    >>> found.passed, found.change.what
    (False, 'add anonymity = 10')
    """
    random = np.random.default_rng(seed)
    look = glance(original, release, random)
    if not look.pair.attributes:
        raise DataError("no masked attribute varies, so nobody can be looked for")
    scenarios = scenarios_of(look.pair, known, people)
    figures = [*losses_of(look.pair), *_kept_together(look, random), *_exposed(look)]
    for scenario in (EVERYTHING, *scenarios):
        figures += _attacks(look, scenario, random)
    figures += _attack_with_kept(look) if passes(figures) else ()
    figures += _attack_on_units(look, random) if passes(figures) else ()
    change = next_step(look, figures, scenarios, seed=int(random.integers(2**32)))
    names = look.plan.names("pseudonym"), look.plan.names("shifted")
    return Verdict(look.records, look.looked_at, tuple(figures), change, *names, release.rules)


def _kept_together(look: Glance, random: np.random.Generator) -> Iterator[Figure]:
    """Measure whether units still agree, and totals by stratum."""
    pair = look.pair if look.plan.unit is None else look.of_units(_OF_UNITS, random)
    for item in (*unit_figures(pair), *stratum_figures(pair)):
        if isinstance(item, Figure):
            yield item


def _exposed(look: Glance) -> Iterator[Figure]:
    """Count what is published as it is: kept columns, and values without noise."""
    kept = look.plan.kept
    if kept:
        yield kept_figure(look.unique(kept), kept)
    clusters = look.pair.clusters
    shares = {} if clusters is None else risk.without_noise(clusters, look.pair.attributes)
    for name, share in shares.items():
        reading = f"{percent(share)} of masked values are published without noise"
        yield Figure("risk.clusters_without_noise", name, share, reading)


def _attack_with_kept(look: Glance) -> Iterator[Figure]:
    """Look for people by kept columns too, which may tell apart records that are pooled."""
    kept = look.plan.kept
    if kept:
        both = Scenario(known=(*look.pair.attributes, *kept))
        yield kept_linkage_figure(look.nearest(both), kept)


def _attack_on_units(look: Glance, random: np.random.Generator) -> Iterator[Figure]:
    """Look for units by all of their records at once."""
    if look.plan.unit is not None:
        for item in unit_linkage_figures(look.of_units(_OF_UNITS, random)):
            if isinstance(item, Figure):
                yield item


def _attacks(look: Glance, scenario: Scenario, random: np.random.Generator) -> Iterator[Figure]:
    """Look for people in one scenario, until too many were found."""
    bound = proved(look.plan, scenario)
    for attack in _possible(look, scenario, random):
        figure = linkage_figure(attack, scenario, bound)
        yield figure
        if grade_of(figure) != "good":
            return


def _possible(look: Glance, scenario: Scenario, random: np.random.Generator) -> Iterator[Linked]:
    """Make the attacks that there is time for, the quickest first."""
    if not look.is_whole:
        yield look.nearest(scenario)
    else:
        known = what_is_known(look.pair, scenario)
        given = _given(known, scenario, random)
        yield linkage.nearest(known.original, known.masked, **given)
        yield linkage.one_to_one(known.original, known.masked, **given)
    by_structure = _by_structure(look, scenario, random)
    if by_structure is not None:
        yield by_structure


def _given(known: Known, scenario: Scenario, random: np.random.Generator) -> dict[str, Any]:
    return {
        "nominal": known.columns("nominal"),
        "exact": known.columns("exact"),
        "people": scenario.people,
        "seed": int(random.integers(2**32)),
    }


def _by_structure(look: Glance, scenario: Scenario, random: np.random.Generator) -> Linked | None:
    """Link by who shares values with whom, unless pooling proves that it finds nobody."""
    plan = look.plan
    clustered = any(METHODS[plan.method_of(name)].clustered for name in plan.confidential)
    names = [name for name in scenario.known or plan.confidential if name in plan.confidential]
    if not clustered or not names or proved(plan, Scenario(known=tuple(names))):
        return None
    return by_structure(look, scenario, random)


def by_structure(look: Glance, scenario: Scenario, random: np.random.Generator) -> Linked | None:
    """Link by who shares values with whom: in the release, or in some records protected anew.

    Whether the attack gets anywhere hangs on where it starts, so that it is tried more than once
    where records are drawn, until it does, and the most successful counts; once where pooling
    proves what it finds at most.
    """
    if look.records <= STRUCTURE:
        return _structure(look.pair, scenario, random)
    worst: Linked | None = None
    for _ in range(1 if proved(look.plan, scenario) else _TRIALS):
        anew = look.trial_for_structure(_TRIAL, random)
        if anew is None or (worst is not None and worst.share > MEDIUM_LINKAGE):
            break
        found = _structure(anew.pair, scenario, random)
        found = linkage.tried_anew(found, look.records, anew.times)
        worst = found if worst is None or found.share > worst.share else worst
    return worst


def _structure(pair: Pair, scenario: Scenario, random: np.random.Generator) -> Linked:
    known = what_is_known(pair, scenario)
    return linkage.structure(known.original, known.masked, **_given(known, scenario, random))
