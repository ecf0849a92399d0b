"""What is printed of a verdict never contradicts its grade."""

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from microveil import Verdict
from microveil.attacks.attack_rows import LINKAGE, LINKAGE_LIMITS
from microveil.compare.figures import Figure, Sample
from microveil.judge.grades import how_risky
from microveil.show.verdicts import verdict_lines
from microveil.show.words.grading import passes_or_not, risk_card
from microveil.show.words.numbers import percent

COUNTS = re.compile(
    r"What counts is a gain of (?:more than )?([\d.e+-]+)% over chance; the limit is ([\d.]+)%[.]"
)
shares = st.one_of(
    st.floats(0, 1),
    st.sampled_from(LINKAGE_LIMITS).flatmap(
        lambda limit: st.floats(-1e-3, 1e-3).map(lambda by: limit + by)
    ),
    st.sampled_from(
        [0.1, 0.05, 0.05 + 1e-12, 0.05 - 1e-12, 0.05 + 2e-10, 0.050049, 0.04999, 0.0501]
    ),
)


@st.composite
def figures(draw: st.DrawFn) -> Figure:
    value, facts = draw(shares), {"chance": 0.01, "known": None, "people": None}
    bound = draw(st.none() | st.sampled_from([0.05, 1 / 3, 0.02, 1 / 20.04]))
    sample = None
    if draw(st.booleans()):
        wide = draw(st.floats(0, 0.2))
        sample = Sample(100, 1_000, max(0.0, value - wide), min(1.0, value + wide))
    measure = draw(st.sampled_from(LINKAGE))
    return Figure(measure, None, value, facts, sample, bound)


def said_of(found: list[Figure]) -> list[str]:
    """Collect what verdict, page and report say of some figures."""
    shown: Any = {"records": 1_000, "looked_at": 100, "figures": (*found, LOST), "change": None}
    risk = next(line for about, line in verdict_lines(Verdict(**shown)) if about == "Risk")
    return [risk, " ".join([passes_or_not(found), *risk_card(found).sentences])]


LOST = Figure("utility.il1s", "x", 0.1)


@given(st.lists(figures(), min_size=1, max_size=4))
@example([Figure("linkage.nearest", None, 0.05 + 1e-12, {"chance": 0.01})])
@example([Figure("linkage.nearest", None, 0.050049, {"chance": 0.01})])
@example([Figure("linkage.nearest", None, 0.051, {"chance": 0.01}, bound=0.05)])
def test_what_counts_is_on_the_side_of_the_limit_that_the_grade_says(found: list[Figure]) -> None:
    graded = how_risky(found)
    for text in said_of(found):
        ((number, limit),) = COUNTS.findall(text)
        assert (float(number) <= float(limit)) == (graded.grade == "good")
        assert ("does not pass" in text) == (graded.grade != "good")


@given(shares, st.sampled_from(LINKAGE_LIMITS))
def test_a_share_is_printed_on_its_side_of_a_limit(share: float, limit: float) -> None:
    figure = Figure("linkage.nearest", None, share)
    written = percent(figure.counted).removeprefix("more than ").removeprefix("less than ")
    shown = float(written[:-1])
    assert (shown > 100 * limit) == (figure.counted > limit)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (Figure("linkage.nearest", None, 0.0505, bound=0.05), "Low: passes. An attacker who knows"),
        (Figure("linkage.nearest", None, 0.0512), "Medium: does not pass."),
    ],
)
def test_luck_and_rounding(figure: Figure, expected: str) -> None:
    facts = {"chance": 0.001}
    figure = Figure(figure.measure, None, figure.value, facts, bound=figure.bound)
    risk, _ = said_of([figure])
    assert risk.startswith(expected)
    if figure.bound:
        assert "5.05%" not in risk
        assert "finds at most 5% on average, though by luck more this time" in risk
        assert risk.endswith("What counts is a gain of 4.9% over chance; the limit is 5%.")
    else:
        assert "finds 5.12% of the rows" in risk
        assert risk.endswith("What counts is a gain of 5.03% over chance; the limit is 5%.")
