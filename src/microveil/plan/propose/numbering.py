"""Whether whole numbers number things, as keys do, or say how much there is of something.

Keys are handed out: one after the other, or drawn evenly from a range, and each for one thing. So
they have no ties, or more of them than chance has; amounts pile up in the middle, and at round
numbers. Where neither is clear, numbers are taken for keys.
"""

import numpy as np

from microveil.types import Integers, Reals

LARGE = 1_000
"""Whole numbers from here on may be keys that were drawn, or amounts of money."""

_MOST_PEOPLE_OF_A_UNIT = 20
_RECORDS_TO_TELL_A_KEY = 20
_MOST_CATEGORIES = 50
_YEARS = (1_500, 2_300)
_LONG = 10**8  # number that hardly counts anything
_HUGE = 10**12  # number that counts nothing that people have
_NEARLY_ALL, _MANY = 0.9, 200
_FEWEST_EXPECTED_TIES = 10
_OFTEN = 0.2  # share of one value that no key has
_SPREAD_OF_THE_MIDDLE = 1.349  # quartiles of the normal distribution are so far apart
_RELATED = 0.6


def is_numbered(whole: Integers) -> bool:
    """Whether whole numbers are numbered like keys, whatever they are called.

    Examples
    --------
    >>> is_numbered(np.arange(100, 200)), is_numbered(np.array([11, 25, 3, 47]))
    (True, False)
    """
    values, counts = np.unique(whole, return_counts=True)
    spread = int(values[-1]) - int(values[0]) + 1
    if len(values) == len(whole):
        return spread == len(whole) or (len(whole) >= _RECORDS_TO_TELL_A_KEY and (
            spread < 2 * len(whole) or _goes_on(whole) or _is_drawn(whole) or _is_composed(whole)
        ))  # fmt: skip
    if _is_gapless(len(values), spread, len(whole)):
        return True
    dense = spread < 2 * len(values)
    if not dense or len(values) < max(_RECORDS_TO_TELL_A_KEY, len(whole) // 10):
        return False
    in_rows = bool(np.all(np.diff(whole) >= 0))
    return in_rows or (counts.min() == counts.max() and len(values) >= _MOST_CATEGORIES)


def is_surely_numbered(whole: Integers) -> bool:
    """Whether whole numbers number records even where their name says that they are amounts.

    Examples
    --------
    >>> is_surely_numbered(np.arange(30, 0, -1)), is_surely_numbered(np.arange(5))
    (True, False)
    """
    if len(whole) < _RECORDS_TO_TELL_A_KEY or len(np.unique(whole)) < len(whole):
        return False
    one_by_one = int(whole.max()) - int(whole.min()) + 1 == len(whole)
    return one_by_one or (are_long(whole) and _is_drawn(whole))


def may_be_numbered(whole: Integers) -> bool:
    """Whether whole numbers may as well be keys as amounts.

    Examples
    --------
    >>> random = np.random.default_rng(1)
    >>> may_be_numbered(random.choice(20_000, 259, replace=False))
    True
    >>> may_be_numbered(random.lognormal(10, 0.7, 259).astype(int))
    False
    """
    values, counts = np.unique(whole, return_counts=True)
    if values[0] < 0 or counts.max() > max(_OFTEN * len(whole), 1):
        return False
    ties, by_chance = len(whole) - len(values), _expected_ties(len(whole), values)
    if np.median(values) < LARGE and (ties or by_chance < _FEWEST_EXPECTED_TIES):
        return False
    if len(whole) < _RECORDS_TO_TELL_A_KEY:
        return not ties
    if len(values) < _NEARLY_ALL * len(whole) and ties < 4 * by_chance:
        return False
    return bool(np.median(values) >= _HUGE) or not is_spread_like_amounts(values)


def is_spread_like_amounts(values: Integers) -> bool:
    """Whether different values pile up as amounts do: in the middle, or at round numbers."""
    strides = values // max(int(np.gcd.reduce(values)), 1)
    round_ones = float(np.mean(strides % 10 == 0))
    if round_ones > 0.1 + 5 * np.sqrt(0.09 / len(values)):
        return True
    bell = min(_from_bell(values), _from_bell(np.log(values)) if values[0] > 0 else 1.0)
    if bell > max(0.06, 1.2 / np.sqrt(len(values))):
        return False
    ends = np.quantile(values, (0.15, 0.85))
    low, high = values[values <= ends[1]], values[values >= ends[0]]
    doubt = 2.0 if len(values) < _MANY else 1.36  # of Kolmogorov and Smirnov's limit, 0.05%, 5%
    return bool(min(_from_even(low), _from_even(high)) > doubt / np.sqrt(len(low)))


def go_together(one: Reals, other: Reals) -> bool:
    """Whether two columns without missing values rise and fall together.

    Examples
    --------
    >>> income = np.random.default_rng(1).lognormal(10, 1, 50)
    >>> go_together(income, income**2), go_together(income, income[::-1])
    (True, False)
    """
    if (one == one[0]).all() or (other == other[0]).all():
        return False
    related = np.corrcoef(_ranks(one), _ranks(other))[0, 1]
    return bool(abs(related) > max(_RELATED, 5 / np.sqrt(len(one))))


def are_long(whole: Integers) -> bool:
    """Whether numbers have so many digits, and so alike, that they hardly count anything."""
    return bool(np.median(whole) >= _LONG and are_of_one_length(whole))


def are_years(whole: Integers) -> bool:
    """Whether all numbers could be years."""
    return bool(whole.min() >= _YEARS[0] and whole.max() <= _YEARS[1])


def are_of_one_length(whole: Integers) -> bool:
    """Whether numbers have the same number of digits, two or more."""
    low, high = int(whole.min()), int(whole.max())
    return low > 9 and len(str(low)) == len(str(high))


def _ranks(values: Reals) -> Integers:
    return np.unique(values, return_inverse=True)[1]


def _expected_ties(records: int, values: Integers) -> float:
    """Return how many values would coincide if they were drawn evenly from their range."""
    return records * (records - 1) / (2.0 * (int(values[-1]) - int(values[0]) + 1))


def _is_gapless(distinct: int, spread: int, records: int) -> bool:
    """Whether far fewer numbers between the ends are left out than chance would leave out."""
    by_chance = spread * np.exp(-records / spread)
    return bool(by_chance > 8 and spread - distinct < by_chance / 4)


def _is_composed(whole: Integers) -> bool:
    """Whether the last two digits number the members of a unit, as in 101, 102, 201."""
    members = whole % 100
    return bool(members.max() <= _MOST_PEOPLE_OF_A_UNIT and members.min() < members.max())


def _goes_on(whole: Integers) -> bool:
    """Whether numbers rise, or fall, from record to record."""
    steps = np.diff(whole)
    return bool(np.all(steps > 0) or np.all(steps < 0))


def _is_drawn(whole: Integers) -> bool:
    """Whether numbers of five digits or more seem drawn at random, as masked keys are."""
    if not are_of_one_length(whole) or whole.min() < 10_000:
        return False
    return bool(_from_even(np.sort(whole)) < 2 / np.sqrt(len(whole)))


def _from_even(values: Integers) -> float:
    """Return how far sorted values are from an even spread over their range."""
    width = float(values[-1] - values[0])
    even = np.linspace(float(values[0]), float(values[-1]), len(values))
    return float(np.abs(values - even).max() / width) if width else 1.0


def _from_bell(values: Integers | Reals) -> float:
    """Return how far sorted values are from a normal distribution with their quartiles."""
    first, middle, third = np.quantile(values, (0.25, 0.5, 0.75))
    if first == third:
        return 1.0
    z = (values - middle) / (third - first) * _SPREAD_OF_THE_MIDDLE
    ranks = (np.arange(len(z)) + 0.5) / len(z)
    return float(np.abs(_normal(z) - ranks).max() + 0.5 / len(z))


def _normal(z: Reals) -> Reals:
    """Return the normal distribution, within 0.0005 (the logistic curve of Page, 1977)."""
    return 1 / (1 + np.exp(-np.clip(1.5976 * z + 0.070565992 * z**3, -700, 700)))
