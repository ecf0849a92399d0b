"""What a figure says, in one line: a reading for every measure and attack of the registries."""

import math
from collections.abc import Callable

from microveil.attacks.attack_rows import ATTACKS, GRADED
from microveil.compare.asked import NARROW
from microveil.compare.figures import Figure, NotComputed, Sample
from microveil.judge.registry import MEASURES
from microveil.show.words.numbers import deviations, listed, percent, rises_or_falls, sentence
from microveil.show.words.use_words import estimate_in_words, model_in_words


def reading(figure: Figure) -> str:
    """Say in one line what a figure means.

    Examples
    --------
    >>> reading(Figure("utility.means", "age", 0.25))
    'the mean rises by 0.25 standard deviations'
    """
    said = _READINGS[figure.measure](figure)
    return f"{said}{_of_sample(figure)}{_bound(figure)}{_counts(figure)}{_of_nobody(figure)}"


def read_aloud(figure: Figure) -> str:
    """Make a sentence of a figure's reading."""
    return sentence(reading(figure))


def label_of(figure: Figure) -> str:
    """Return the name of a figure's measure."""
    return f"{MEASURES[figure.measure].label}{', weighted' if figure.weighted else ''}"


def label_of_missing(item: NotComputed) -> str:
    """Name what was not computed."""
    names = listed([MEASURES[measure].label for measure in item.measures] or ["every measure"])
    return names if item.attribute is None else f"{names} of {item.attribute!r}"


def how_far(figure: Figure) -> str:
    """Say how far numbers move, in one plain sentence."""
    return f"A number moves by {deviations(math.sqrt(2) * figure.value)} on average."


def _of_nobody(figure: Figure) -> str:
    """Say why the distance of a row from a record means little."""
    if "exchanged" not in figure.facts:
        return ""
    return "; this means little: values were exchanged, so rows belong to nobody"


def _of_sample(figure: Figure) -> str:
    sample = figure.sample
    if sample is None:
        return ""
    of_people = figure.measure in GRADED and sample.anew is None
    what = "people" if of_people else "records"
    if sample.drawn == sample.of and sample.low is not None and sample.high is not None:
        return f" (95% interval {percent(sample.low)} to {percent(sample.high)})"
    drawn = f"from a sample of {sample.drawn:,} of {sample.of:,} {what}{_anew(sample)}"
    if sample.low is None or sample.high is None:
        return f" ({drawn})"
    write = percent if figure.measure in ATTACKS else "{:.3g}".format
    return f" ({drawn}; 95% interval {write(sample.low)} to {write(sample.high)})"


def _anew(sample: Sample) -> str:
    if sample.anew is None:
        return ""
    if sample.anew == 1:
        return ", protected again by the same plan"
    times = f"{sample.anew:,.0f}" if sample.anew >= 10 else f"{sample.anew:.3g}"
    return (
        f", protected again by the same plan with {times} times the ε: about the noise of the "
        "release in wider clusters, which tends to find too many; the worst of up to five trials"
    )


def _bound(figure: Figure) -> str:
    if figure.bound is None:
        return ""
    return f"; pooling proves a chance of at most 1 in {round(1 / figure.bound):,}"


def _counts(figure: Figure) -> str:
    """Say of people found that they do not count, where luck finds as many."""
    lucky = figure.measure in GRADED and "chance" in figure.facts and not figure.counted
    return "; no more than luck finds" if lucky and figure.value else ""


def _weighted(figure: Figure) -> str:
    return "weighted " if figure.weighted else ""


def _number(figure: Figure, fact: str) -> float:
    value = figure.facts[fact]
    assert isinstance(value, int | float)  # noqa: S101 - what a measure puts there
    return float(value)


def _names(figure: Figure, fact: str) -> str:
    value = figure.facts[fact]
    assert isinstance(value, tuple)  # noqa: S101 - what a measure puts there
    return ", ".join(value)


def _chance(figure: Figure) -> str:
    return f"by chance {percent(_number(figure, 'chance'))}"


def _mean_sse(figure: Figure) -> str:
    if figure.facts["scale"] == "variance":
        return "as the paper prints it, which depends on the data's units (scale: variance)"
    distance = math.sqrt(figure.value * _number(figure, "attributes"))
    return (
        f"a masked value lies {deviations(distance)} from its original, in the root mean square "
        "(scale: standard deviation)"
    )


def _overlap(figure: Figure) -> str:
    of = "share of its worst category" if figure.facts.get("of") == "category" else "mean"
    return (
        f"the 95% confidence intervals of the {_weighted(figure)}{of} overlap by "
        f"{percent(figure.value)}"
    )


def _quantiles(figure: Figure) -> str:
    moved = deviations(abs(figure.value), figure.facts["microseconds"])
    which = percent(_number(figure, "quantile"))
    return f"of nine {_weighted(figure)}quantiles the {which} one moves most, by {moved}"


def _mean(figure: Figure) -> str:
    moved = deviations(abs(figure.value), figure.facts.get("microseconds"))
    return f"the {_weighted(figure)}mean {rises_or_falls(figure.value, moved)}"


def _share_of(what: str) -> Callable[[Figure], str]:
    def say(figure: Figure) -> str:
        change = rises_or_falls(figure.value, percent(abs(figure.value)))
        return f"the {_weighted(figure)}{what} {change}"

    return say


def _relation(what: str, scale: str = "") -> Callable[[Figure], str]:
    def say(figure: Figure) -> str:
        change = rises_or_falls(figure.value, f"{abs(figure.value):.3g}")
        return f"the {_weighted(figure)}{what} {change}{scale}"

    return say


def _linkage(does: str) -> Callable[[Figure], str]:
    def say(figure: Figure) -> str:
        return (
            f"an attacker who knows {_knows(figure)} and {does} finds {_share_found(figure)} of "
            f"{_whose(figure)}; {_chance(figure)}"
        )

    return say


def _share_found(figure: Figure) -> str:
    """Write how many were found: no more than is proved."""
    if figure.bound is not None and figure.value > figure.bound:
        return f"at most {percent(figure.bound)} on average, though by luck more this time,"
    return percent(figure.value)


def _knows(figure: Figure) -> str:
    known, people = figure.facts.get("known"), figure.facts.get("people")
    what = "everyone's original values"
    if isinstance(known, tuple):
        what = f"everyone's {listed(known)}"
    if isinstance(people, float) and people < 1:
        what = what.replace("everyone's", f"{percent(people)} of the people by their")
    return what


def _whose(figure: Figure) -> str:
    people = figure.facts.get("people")
    return "the rows" if people in (None, 1.0) else "their rows"


def _kept_linkage(figure: Figure) -> str:
    return (
        f"an attacker who also knows the kept columns ({figure.attribute}) and takes the nearest "
        f"row finds {_share_found(figure)} of the rows: kept columns tell pooled rows apart; "
        f"{_chance(figure)}"
    )


def _units(figure: Figure) -> str:
    return (
        f"an attacker who knows all records of a unit, and tells rows of one unit by "
        f"{_names(figure, 'by')}, finds {_share_found(figure)} of "
        f"{_number(figure, 'units'):,.0f} units; {_chance(figure)}"
    )


def _gain(what: str) -> Callable[[Figure], str]:
    def say(figure: Figure) -> str:
        return (
            f"{what} gains {percent(figure.value)} over its control: it succeeds for "
            f"{percent(_number(figure, 'rate'))} of people in the release, for "
            f"{percent(_number(figure, 'control'))} outside it"
        )

    return say


def _changed(figure: Figure) -> str:
    days = " days" if figure.facts["in_days"] else ""
    return (
        f"{percent(figure.value)} of masked records broke it and were changed to keep it, by "
        f"{_number(figure, 'moved'):.3g}{days} on average; "
        f"{_number(figure, 'original'):,.0f} records of the original break it"
    )


def _without_noise(figure: Figure) -> str:
    what = "masked categories" if figure.facts.get("of") == "category" else "masked values"
    return f"{percent(figure.value)} of {what} carry no noise at any ε"


_READINGS: dict[str, Callable[[Figure], str]] = {
    "use.estimate": estimate_in_words,
    "use.model": model_in_words,
    "utility.mean_sse": _mean_sse,
    "utility.sse_sst": lambda f: (
        f"the squared error is {percent(f.value)} of the attribute's squared spread"
    ),
    "utility.il1s": lambda f: f"a value moves by {deviations(math.sqrt(2) * f.value)} on average",
    "utility.means": _mean,
    "utility.totals": _share_of("total"),
    "utility.variances": _share_of("variance"),
    "utility.quantiles": _quantiles,
    "utility.interval_overlap": _overlap,
    "utility.pearson": _relation("correlation"),
    "utility.spearman": _relation("rank correlation"),
    "utility.cramers_v": _relation(
        "association", " on a scale from 0 to 1 (Cramér's V, not corrected for bias)"
    ),
    "utility.unchanged": lambda f: (
        f"{percent(f.value)} of records keep their category, so an attacker who takes a released "
        "category for the true one is right as often; always guessing the most frequent one is "
        f"right for {percent(_number(f, 'most_frequent'))}"
    ),
    "utility.total_variation": lambda f: (
        f"{percent(f.value)} of {'the weight' if f.weighted else 'records'} would have to change "
        "category to restore the original distribution"
    ),
    "utility.unit_consistency": lambda f: (
        f"{percent(f.value)} of {_number(f, 'units'):,.0f} units have the same released values of "
        f"{_names(f, 'names')} in all their records"
    ),
    "utility.stratum_totals": lambda f: (
        f"{_weighted(f)}totals of {_number(f, 'strata'):,.0f} strata move by {percent(f.value)} of "
        f"their sum, the one that moves most by {percent(_number(f, 'worst'))} of itself"
    ),
    "utility.pmse": lambda f: (
        f"{f.value:.3g} on a scale from 0, where a logistic regression cannot tell masked from "
        f"original records, to {_number(f, 'largest'):.3g}, where it always can"
    ),
    "utility.pmse_ratio": lambda f: (
        f"masked records can be told apart {f.value:.3g} times as well as records drawn again from "
        "the original could be"
    ),
    "utility.rule_broken": lambda f: (
        f"{percent(f.value)} of released records break it" if f.value else "no record breaks it"
    ),
    "utility.rule_changed": _changed,
    "linkage.nearest": _linkage("takes the nearest released row"),
    "linkage.one_to_one": _linkage("gives everyone a row of their own"),
    "linkage.structure": _linkage("matches who shares masked values with whom"),
    "linkage.informed": lambda f: (
        "an attacker who knows everything but the random draws picks the right row for "
        f"{_share_found(f)} of {_number(f, 'units'):,.0f} {f.facts['of']} on average; "
        f"{_chance(f)}; the smallest group that cannot be told apart has "
        f"{_number(f, 'smallest'):,.0f}"
    ),
    "linkage.own_values": lambda f: (
        f"two or more masked values that are one person's alone meet in one row for "
        f"{percent(_number(f, 'rate'))} of the {_number(f, 'eligible'):,.0f} people who have "
        f"several; a model of other people reunites {percent(_number(f, 'control'))}; any two of "
        f"them meet with a probability of at most 1/{_number(f, 'block'):.0f}"
    ),
    "risk.linkage_with_kept": _kept_linkage,
    "risk.linkage_of_units": _units,
    "risk.interval_disclosure": _gain("reading numbers off between neighbouring masked values"),
    "risk.inference": _gain("guessing it from all other attributes, by the nearest row,"),
    "risk.joint_inference": _gain("guessing it from all other attributes, by the joint cluster,"),
    "risk.singling_out": _gain("singling a person out"),
    "risk.linkability": _gain("linking what two sources know"),
    "risk.membership": _gain("telling members from others"),
    "risk.neighbour": _gain("telling two values of a person apart"),
    "risk.unique_combinations": lambda f: (
        f"{percent(f.value)} of released rows have a combination of masked values that no other "
        "row has, although each value by itself may be shared"
    ),
    "risk.rank_disclosure": lambda f: (
        f"{percent(f.value)} of values lie within {_number(f, 'percent'):g}% of the rank of their "
        f"masked value; {_chance(f)}"
    ),
    "risk.value_disclosure": lambda f: (
        f"{percent(f.value)} of values lie within "
        f"{deviations(_number(f, 'deviations'), f.facts['microseconds'])} of their masked value; "
        f"{_chance(f)}"
    ),
    "risk.unique_records": lambda f: (
        f"{percent(f.value)} of released rows share {f.attribute} with no other row"
    ),
    "risk.smallest_class": lambda f: (
        f"the smallest group that shares {f.attribute} has {f.value:,.0f} of "
        f"{_number(f, 'records'):,.0f} released rows"
    ),
    "risk.unique_kept": lambda f: (
        f"{percent(f.value)} of released rows have a combination of kept columns ({f.attribute}) "
        "that no other row has: an attacker who knows it finds the row"
    ),
    "risk.smallest_joint_class": lambda f: (
        f"every combination of averaged {f.attribute} is shared by at least {f.value:,.0f} of "
        f"{_number(f, 'records'):,.0f} released rows, at any ε; the plan asks for "
        f"{_number(f, 'anonymity'):,.0f}"
    ),
    "risk.joint_distinct_least": lambda f: (
        f"the records of every joint cluster have at least {f.value:,.0f} different original "
        f"values; in {percent(_number(f, 'agreeing'))} of joint clusters all agree, which gives "
        "everyone's value away"
    ),
    "risk.joint_distinct_median": lambda f: (
        f"half of the joint clusters have at least {f.value:g} different original values"
    ),
    "risk.joint_distance_largest": lambda f: (
        f"the distribution in the most unusual joint cluster is {f.value:.2g} away from that of "
        "the table (0: the same, 1: as far as can be; t-closeness)"
    ),
    "risk.joint_distance_median": lambda f: (
        f"in half of the joint clusters the distribution is at least {f.value:.2g} away from that "
        "of the table"
    ),
    "risk.width_median": lambda f: (
        "half of the records are in clusters at most "
        f"{deviations(f.value, f.facts['microseconds'])} wide: so closely does an attacker who "
        "knows all other records learn their values"
    ),
    "risk.width_90": lambda f: (
        "nine in ten records are in clusters at most "
        f"{deviations(f.value, f.facts['microseconds'])} wide"
    ),
    "risk.width_largest": lambda f: (
        f"no cluster is wider than {deviations(f.value, f.facts['microseconds'])}"
    ),
    "risk.narrow_clusters": lambda f: (
        f"{percent(f.value)} of records are in clusters narrower than {NARROW} standard "
        "deviations, which tell the value closely"
    ),
    "risk.clusters_without_noise": _without_noise,
    "risk.exact_values": lambda f: (
        f"{f.value:,.0f} masked values carry no noise although fewer than "
        f"{_number(f, 'enough'):.0f} people have them"
        if f.value
        else f"no value goes out without noise that fewer than {_number(f, 'enough'):.0f} people "
        "have"
    ),
    "risk.values_unmoved": lambda f: (
        f"{percent(f.value)} of values are shared by fewer than {_number(f, 'enough'):.0f} people "
        "and left as they are by noise in more than half of all releases"
    ),
    "risk.rare_categories": lambda f: (
        f"{percent(f.value)} of records have a category that fewer than "
        f"{_number(f, 'enough'):.0f} people have; drawn at random, it mostly comes back: merge "
        "such categories before masking"
    ),
    "learning.f_measure": lambda f: (
        f"trained on the release, a model recognizes this class with {f.value:.3g} (1 is "
        f"perfect), trained on the original with {_number(f, 'original'):.3g}"
    ),
    "learning.f_measure_original": lambda f: (
        f"trained on the original, a model recognizes this class with {f.value:.3g} (1 is "
        "perfect): what a release can be expected to reach"
    ),
}
