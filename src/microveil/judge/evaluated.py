"""What an evaluation found."""

from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, NotComputed
from microveil.compare.pairing import Pair
from microveil.compare.reasons import why_not
from microveil.errors import DataError
from microveil.judge.change import Change
from microveil.judge.registry import ABOUT, MEASURES, check_measure
from microveil.plan.scenarios import Scenario
from microveil.shown import Shown


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """Measures of a release against its original: private, since they depend on the data.

    Attributes
    ----------
    records, released
        Records in the original and in the release.
    incomplete
        How many records with missing values were looked at, of the original and of the release.
    attributes
        The attributes that were compared.
    figures
        What was computed.
    not_computed
        What was not, and why.
    seen
        The two tables as they were compared, from which a report draws without reading them again.
    scenarios
        Attackers that were tried besides one who knows all masked attributes of everybody.
    drawn
        How many records were drawn from tables too large to be looked at as a whole; else None.
    change
        Where records were drawn, the one change that would help most.
    """

    records: int
    released: int
    incomplete: tuple[int, int]
    attributes: tuple[str, ...]
    figures: tuple[Figure, ...]
    not_computed: tuple[NotComputed, ...]
    seen: Examined = field(repr=False, compare=False)
    scenarios: tuple[Scenario, ...] = ()
    drawn: int | None = None
    change: Change | None = field(default=None, repr=False, compare=False)

    @property
    def pair(self) -> Pair:
        """The two tables, attribute by attribute."""
        return self.seen.given

    @property
    def scored(self) -> bool:
        """Whether attacks could be made: it is known which record is whose."""
        return self.seen.paired

    def value(self, measure: str, attribute: str | None = None) -> float:
        """Return one figure's value.

        Parameters
        ----------
        measure
            The id of a measure, such as ``"utility.mean_sse"``.
        attribute
            What the figure is about, where that is not the whole table: an attribute, two as
            ``"a × b"``, columns as ``"a, b"``, a class as ``"target = class"``.
        """
        check_measure(measure)
        for figure in self.figures:
            if (figure.measure, figure.attribute) == (measure, attribute):
                return figure.value
        given = "the whole table" if attribute is None else repr(attribute)
        reasons = (why_not(x) for x in self.not_computed if x.explains(measure, attribute))
        why = next(reasons, f"its figures are about {ABOUT[MEASURES[measure].about]}")
        raise DataError(f"no figure of {measure!r} was computed for {given}: {why}")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; measures by their ids."""
        return {
            "records": self.records,
            "released": self.released,
            "drawn": self.drawn,
            "incomplete": list(self.incomplete),
            "attributes": list(self.attributes),
            "figures": [asdict(figure) for figure in self.figures],
            "not_computed": [asdict(missing) for missing in self.not_computed],
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the figures as a table: measure (its id), attribute, value, and its interval."""
        schema = {
            "measure": pl.String, "attribute": pl.String, "value": pl.Float64,
            "low": pl.Float64, "high": pl.Float64, "at_most": pl.Float64, "weighted": pl.Boolean,
        }  # fmt: skip
        rows = [
            (
                f.measure, f.attribute, f.value, f.sample and f.sample.low,
                f.sample and f.sample.high, f.at_most, f.weighted,
            )
            for f in self.figures
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=schema, orient="row")
