"""What an evaluation found."""

from dataclasses import asdict, dataclass, field
from typing import Any

import polars as pl

from microveil.compare.figures import ABOUT, LINKAGE, MEASURES, Figure, NotComputed, check_measure
from microveil.compare.pairing import Pair
from microveil.errors import DataError
from microveil.judge.change import Change
from microveil.plan.scenarios import Scenario
from microveil.shown import Shown


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """Measures of a release against its original. They are functions of the data: keep them.

    Attributes
    ----------
    records, released
        Records in the original and in the release.
    attributes
        The attributes that were compared.
    figures
        What was computed.
    not_computed
        What was not, and why.
    notes
        What to know when reading the figures.
    pair
        The two tables as they were compared, from which a report draws without reading them again.
    scenarios
        Intruders that were tried besides one who knows all masked attributes of everybody.
    drawn
        How many records were drawn from tables too large to be looked at as a whole; else None.
    change
        Where records were drawn, the one change that would help most.
    """

    records: int
    released: int
    attributes: tuple[str, ...]
    figures: tuple[Figure, ...]
    not_computed: tuple[NotComputed, ...]
    notes: tuple[str, ...]
    pair: Pair = field(repr=False, compare=False)
    scenarios: tuple[Scenario, ...] = ()
    drawn: int | None = None
    change: Change | None = field(default=None, repr=False, compare=False)

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
        reasons = (x.reason for x in self.not_computed if x.explains(measure, attribute))
        reason = next(reasons, f"its figures are about {ABOUT[MEASURES[measure].about]}")
        raise DataError(f"no figure of {measure!r} was computed for {given}: {reason}")

    @property
    def unscored(self) -> str | None:
        """Why attacks could not be scored, if so."""
        return next((x.reason for x in self.not_computed if x.measures == LINKAGE), None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values that JSON can hold; measures by their ids."""
        return {
            "records": self.records,
            "released": self.released,
            "drawn": self.drawn,
            "attributes": list(self.attributes),
            "figures": [asdict(figure) for figure in self.figures],
            "not_computed": [asdict(missing) for missing in self.not_computed],
            "notes": list(self.notes),
        }

    def to_frame(self) -> pl.DataFrame:
        """Return the figures as a table: measure (its id), attribute, value, reading, and so on."""
        schema = {
            "measure": pl.String, "attribute": pl.String, "value": pl.Float64,
            "reading": pl.String, "high": pl.Float64, "weighted": pl.Boolean,
        }  # fmt: skip
        return pl.DataFrame([asdict(figure) for figure in self.figures], schema=schema)
