"""Numbers in words."""

from collections.abc import Sequence

ROUNDED_AWAY = 1e-12
"""What is nearer to 0 is what adding up has left of it."""


def percent(share: float) -> str:
    """Write a share for people; what is not all is not called 100%.

    Examples
    --------
    >>> percent(0.0812), percent(0.9999), percent(0), percent(12.5)
    ('8.12%', 'more than 99.9%', '0%', '1,250%')
    >>> percent(2e-7), percent(2.22e-16)
    ('less than 0.0001%', '0%')
    """
    if abs(share) < ROUNDED_AWAY:
        return "0%"
    if 0 < share < 1e-6:
        return "less than 0.0001%"
    if 0.9995 <= share < 1:
        return "more than 99.9%"
    if share >= 10:
        return f"{100 * share:,.0f}%"
    return f"{100 * share:.3g}%"


def plain(value: float) -> str:
    """Write a figure with three digits, and what rounding has left of 0 as 0.

    Examples
    --------
    >>> plain(0.12345), plain(-2.22e-16), plain(123456.0)
    ('0.123', '0', '1.23e+05')
    """
    return "0" if abs(value) < ROUNDED_AWAY else f"{value:.3g}"


def rises_or_falls(change: float, by: str) -> str:
    """Say in which direction something changes."""
    if not change:
        return "does not change"
    return f"{'rises' if change > 0 else 'falls'} by {by}"


def length_of_time(microseconds: float) -> str:
    """Write a length of time in the largest unit of which it has one or more; else in seconds.

    Examples
    --------
    >>> length_of_time(5_400e6), length_of_time(20 * 86_400e6), length_of_time(0)
    ('1.5 hours', '20 days', '0 seconds')
    """
    steps = {"years": 365.25 * 86_400e6, "days": 86_400e6, "hours": 3_600e6, "minutes": 60e6}
    for step, length in steps.items():
        if abs(microseconds) >= length:
            return _counted(microseconds / length, step)
    return _counted(microseconds / 1e6, "seconds")


def deviations(number: float, microseconds: object = None) -> str:
    """Write so many standard deviations; of times also how long that is.

    Examples
    --------
    >>> deviations(1), deviations(0.25, 86_400e6)
    ('1 standard deviation', '0.25 standard deviations (1 day)')
    """
    words = _counted(number, "standard deviations")
    if not isinstance(microseconds, float):
        return words
    return f"{words} ({length_of_time(microseconds)})"


def _counted(number: float, things: str) -> str:
    """Write a number of things, of which one is written without the s."""
    said = f"{number:.3g}"
    return f"{said} {things.removesuffix('s') if said == '1' else things}"


def listed(names: Sequence[str]) -> str:
    """Join names as in a sentence.

    Examples
    --------
    >>> listed(["age", "sex", "region"])
    'age, sex and region'
    """
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def sentence(text: str) -> str:
    """Make a sentence of a phrase.

    Examples
    --------
    >>> sentence("the mean rises by 2%")
    'The mean rises by 2%.'
    """
    return f"{text[:1].upper()}{text[1:]}."
