"""Dates and times as numbers: days or microseconds, and the time steps they are published in."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from microveil.core.attribute import TimeStep
from microveil.engines.base import Column
from microveil.errors import DataError, PlanError
from microveil.plan.roles import Bound

_MICROSECONDS: dict[TimeStep, float] = {
    "day": 86_400e6, "hour": 3_600e6, "minute": 60e6, "second": 1e6, "microsecond": 1.0,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXPECTED = {
    "date": "dates", "datetime": "dates or times", "time": "times of day", None: "numbers",
    "duration": "numbers of seconds",
}  # fmt: skip


def time_step_of(name: str, step: TimeStep | None, column: Column) -> TimeStep | None:
    """Return what an attribute's masked values are rounded to; None for numbers."""
    if column.clock is None:
        if step is not None:
            raise DataError(
                f"time_step is for dates and times, found {column.type_name}; remove it",
                attribute=name,
                setting="time_step",
            )
        return None
    if column.clock == "date" and step not in (None, "day"):
        raise DataError(
            f'time_step must be "day" for dates, got {step!r}; remove it',
            attribute=name,
            setting="time_step",
        )
    return step or ("day" if column.clock == "date" else "second")


def quantum(step: TimeStep | None, column: Column) -> float:
    """Return a time step in what the column counts: days for dates, microseconds for times."""
    if step is None or column.clock == "date":
        return 1.0
    return _MICROSECONDS[step]


def number_of(name: str, bound: Bound, column: Column) -> float:
    """Turn an end of the domain into what the column counts: of dates and times a whole number."""
    if column.clock == "date" and isinstance(bound, datetime) and _is_midnight(bound):
        bound = bound.date()
    clock = _clock_of(bound)
    if column.clock == "duration" and isinstance(bound, int | float):
        return round(bound * _MICROSECONDS["second"])
    if clock != column.clock and (clock, column.clock) != ("date", "datetime"):
        raise PlanError(
            f"lower and upper must be {_EXPECTED[column.clock]}, because the column holds "
            f"{column.type_name}; got {_EXPECTED[clock]}",
            attribute=name,
            setting="lower",
        )
    if isinstance(bound, time):
        since_midnight = timedelta(
            hours=bound.hour, minutes=bound.minute, seconds=bound.second,
            microseconds=bound.microsecond,
        )  # fmt: skip
        return since_midnight // timedelta(microseconds=1)
    if isinstance(bound, date) and column.clock == "date":
        return (bound - _EPOCH.date()).days
    if isinstance(bound, date):
        return _microseconds(name, bound, column)
    return bound


def _is_midnight(moment: datetime) -> bool:
    """Whether a time stands for its day, as files have it that know no dates without times."""
    return moment.tzinfo is None and moment.time() == time()


def _clock_of(bound: Bound) -> str | None:
    if isinstance(bound, datetime):
        return "datetime"
    if isinstance(bound, date):
        return "date"
    return "time" if isinstance(bound, time) else None


def _microseconds(name: str, bound: date, column: Column) -> int:
    moment = bound if isinstance(bound, datetime) else datetime.combine(bound, time())
    if moment.tzinfo is not None and column.zone is None:
        raise PlanError(
            "lower and upper have a time zone and the column has none; leave it out",
            attribute=name,
            setting="lower",
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(column.zone) if column.zone else UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
