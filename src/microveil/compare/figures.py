"""Figures: what was measured of a release, as data. `microveil.show.words` puts them into words."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Topic = Literal["uses", "utility", "risk", "learning"]
About = Literal["table", "attribute", "pair", "columns", "class", "scenario", "rule", "use"]
Need = Literal["paired", "plan", "detail", "target", "quasi-identifiers", "control"]
Fact = str | float | bool | tuple[str, ...] | None

GradeLimits = tuple[float, float]
"""Up to the first a figure is good, up to the second it is fair."""


def high_is_bad(value: float) -> float:
    """Rank figures of which the highest is the worst."""
    return value


def low_is_bad(value: float) -> float:
    """Rank figures of which the lowest is the worst."""
    return -value


@dataclass(frozen=True)
class Measure:
    """A row of the registries: one thing that is measured of a release.

    Attributes
    ----------
    id
        Its name in code, JSON and tables; it does not change.
    label
        Its name for people.
    computes
        What it computes, in a line.
    topic
        Where it is shown.
    about
        What each of its figures is about: the `attribute` to give to `Evaluation.value`.
    badness
        Ranks its figures: the highest is the one a steward should see first.
    two_sided
        Whether the other end is worth seeing too: what is good for use is a risk.
    needs
        What must be known to compute it: which record is whose (``"paired"``), the plan, the
        private detail, a target, quasi-identifiers, or people outside the release (a control).
    limits
        Up to which values it is good and fair; None if it is not graded.
    of_sample
        Whether the figure of a sample estimates that of all records.
    paper
        Where it comes from.
    """

    id: str
    label: str
    computes: str
    topic: Topic
    about: About
    badness: Callable[[float], float] = high_is_bad
    two_sided: bool = False
    needs: tuple[Need, ...] = ()
    limits: GradeLimits | None = None
    of_sample: bool = True
    paper: str = ""


@dataclass(frozen=True)
class Sample:
    """What a figure was estimated from, and how sure it is.

    Attributes
    ----------
    drawn, of
        Records or people that were drawn at random, and out of how many.
    low, high
        Hold the figure of all with 95% confidence; None if that is not known.
    anew
        With how many times the ε the drawn records were protected anew, to attack them; None
        where the release itself was measured.
    """

    drawn: int
    of: int
    low: float | None = None
    high: float | None = None
    anew: float | None = None


@dataclass(frozen=True)
class Figure:
    """One figure.

    Attributes
    ----------
    measure
        The id of its measure.
    attribute
        What it is about: an attribute, a pair of them, columns, a class, a rule, a scenario or a
        use; None where it is about the whole table.
    value
        A finite number.
    facts
        Further numbers and names that its reading needs.
    sample
        What it was estimated from; None where all records were measured.
    bound
        What is proved: the value cannot be higher but by chance.
    weighted
        Whether it compares estimates by the plan's sampling weight.
    """

    measure: str
    attribute: str | None
    value: float
    facts: Mapping[str, Fact] = field(default_factory=dict, hash=False)
    sample: Sample | None = None
    bound: float | None = None
    weighted: bool = False

    @property
    def at_most(self) -> float:
        """How high to take the value: the upper 95% limit of a sample, but no more than proved."""
        high = self.value if self.sample is None or self.sample.high is None else self.sample.high
        return high if self.bound is None else min(high, self.bound)

    @property
    def counted(self) -> float:
        """What grades go by, to three digits, as it is written: of attacks the gain over chance.

        Of people found that is (rate − chance)/(1 − chance), and 0 where guessing finds as many in
        one of a hundred releases. A gain over a control is 0 where its interval has 0.
        """
        if "control" in self.facts and self.sample is not None:
            return rounded(self.value if self.sample.low else 0.0)
        chance, luck = self.facts.get("chance"), self.facts.get("luck")
        if not isinstance(chance, float):
            return rounded(abs(self.at_most))
        if isinstance(luck, float) and self.value <= luck:
            return 0.0
        return rounded(max(0.0, (self.at_most - chance) / (1 - chance))) if chance < 1 else 0.0


@dataclass(frozen=True)
class NotComputed:
    """Measures without a figure, and why.

    Attributes
    ----------
    measures
        Their ids; empty where no measure could be computed.
    reason
        The id of a reason: `microveil.show.words.reasons` has the sentence.
    attribute
        What there is no figure of, as in `Figure`; None where there is none at all.
    facts
        Numbers that the sentence needs.
    """

    measures: tuple[str, ...]
    reason: str
    attribute: str | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict, hash=False)

    def explains(self, measure: str, attribute: str | None) -> bool:
        """Whether it says why there is no such figure."""
        return (not self.measures or measure in self.measures) and (
            self.attribute in (None, attribute)
        )


def rounded(value: float) -> float:
    """Round to the digits that people read, so that what they read and the rule agree."""
    return float(f"{value:.3g}")


Items = Iterator[Figure | NotComputed]


def figures_in(items: Iterable[Figure | NotComputed]) -> list[Figure]:
    """Leave out what was not computed."""
    return [item for item in items if isinstance(item, Figure)]
