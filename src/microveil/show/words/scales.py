"""What every figure is to be measured by: its limits, its control, or the ends of its scale."""

from microveil.compare.figures import Figure
from microveil.judge.registry import MEASURES
from microveil.show.words.numbers import percent

_NONE_OF_ALL = "0% none, 100% all"
_UNCHANGED = "0: as in the original"
_STANDARD = "1: a standard deviation of the original"
_DIFFERENT = "1: all records have the same value"
_MODEL = "1: every record of the class is recognised"

_ENDS = {
    "utility.mean_sse": "0: as in the original; the number of attributes: as far as their means",
    "utility.sse_sst": "0: as in the original; 1: as far as the mean is",
    "utility.means": f"{_UNCHANGED}; {_STANDARD}",
    "utility.totals": _UNCHANGED,
    "utility.variances": _UNCHANGED,
    "utility.interval_overlap": "1: the same interval; 0 or less: apart",
    "utility.spearman": f"{_UNCHANGED}; 2: reversed",
    "utility.unchanged": _NONE_OF_ALL,
    "utility.unit_consistency": _NONE_OF_ALL,
    "utility.stratum_totals": _UNCHANGED,
    "utility.pmse": "0: cannot be told from the original; 0.25: always, in tables of one size",
    "utility.pmse_ratio": "1: as records drawn anew from the original",
    "utility.rule_broken": _NONE_OF_ALL,
    "utility.rule_changed": _NONE_OF_ALL,
    "risk.unique_combinations": _NONE_OF_ALL,
    "risk.rank_disclosure": _NONE_OF_ALL,
    "risk.value_disclosure": _NONE_OF_ALL,
    "risk.smallest_class": "1: a row that is alone",
    "risk.unique_kept": _NONE_OF_ALL,
    "risk.smallest_joint_class": "1: a row that is alone",
    "risk.joint_distinct_least": _DIFFERENT,
    "risk.joint_distinct_median": _DIFFERENT,
    "risk.joint_distance_largest": "0: as the table; 1: as far as can be",
    "risk.joint_distance_median": "0: as the table; 1: as far as can be",
    "risk.width_median": _STANDARD,
    "risk.width_90": _STANDARD,
    "risk.width_largest": _STANDARD,
    "risk.narrow_clusters": _NONE_OF_ALL,
    "risk.clusters_without_noise": _NONE_OF_ALL,
    "risk.values_unmoved": _NONE_OF_ALL,
    "risk.rare_categories": _NONE_OF_ALL,
    "risk.interval_disclosure": "0: as for people outside the release; 1: all that was left",
    "risk.membership": "0: as for people outside the release; 1: all that was left",
    "risk.neighbour": "0: as by guessing; 1: always",
    "learning.f_measure": _MODEL,
    "learning.f_measure_original": _MODEL,
}
_MEASURED_BY = {"control": "control", "chance": "by chance"}
_IN_PERCENT = ("linkage.", "risk.")


def scale_of(figure: Figure) -> str:
    """Say what a figure is to be measured by.

    Examples
    --------
    >>> scale_of(Figure("linkage.nearest", None, 0.03, {"chance": 0.01}))
    'by chance 1%; good to 5%, fair to 10%'
    >>> scale_of(Figure("utility.means", "age", 0.03, {}))
    '0: as in the original; 1: a standard deviation of the original'
    """
    said = [
        f"{words} {percent(value)}"
        for fact, words in _MEASURED_BY.items()
        if isinstance(value := figure.facts.get(fact), float)
    ]
    return "; ".join([*said, ends_of(figure.measure)])


def ends_of(measure: str) -> str:
    """Name the limits of a measure, or the ends of its scale."""
    limits = MEASURES[measure].limits
    if limits is None:
        return _ENDS[measure]
    good, fair = (_limit(measure, limit) for limit in limits)
    return f"good to {good}, fair to {fair}"


def _limit(measure: str, limit: float) -> str:
    shares = measure.startswith(_IN_PERCENT) and measure != "risk.exact_values"
    return percent(limit) if shares else f"{limit:.2g}"
