"""The registry of measures: a row says what is computed, what it needs, and its limits.

`evaluate`, the verdict, the report, the page and the documentation read it. A new measure is one
function in the module of its family, one row here and one test.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from microveil.compare.asked import Asked
from microveil.compare.examined import Examined
from microveil.compare.figures import Items, Measure, Need, low_is_bad
from microveil.measures.category_shares import share_figures, unchanged_figures
from microveil.measures.closeness import closeness_figures
from microveil.measures.cluster_widths import cluster_figures, crowd_figures
from microveil.measures.consistency import stratum_figures, unit_figures
from microveil.measures.joint_classes import pooling_figures
from microveil.measures.learning import learning_figures
from microveil.measures.propensity import propensity_figures
from microveil.measures.record_moves import move_figures
from microveil.measures.relations import association_figures, correlation_figures
from microveil.measures.rules_kept import rule_figures
from microveil.measures.uniqueness import class_figures, combination_figures, kept_figures
from microveil.measures.univariate import estimate_figures
from microveil.measures.use_figures import use_figures


@dataclass(frozen=True)
class Family:
    """Measures that are computed together.

    Attributes
    ----------
    compute
        Computes their figures.
    measures
        Their rows.
    of_records
        Whether they are computed from the records that are looked at, one by one or as a whole; if
        not, from all released records or from whole units.
    """

    compute: Callable[[Examined, Asked], Items]
    measures: tuple[Measure, ...]
    of_records: bool = True

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its measures."""
        return tuple(row.id for row in self.measures)

    @property
    def needs(self) -> tuple[Need, ...]:
        """What must be known to compute it."""
        return self.measures[0].needs


def _family(
    compute: Callable[[Examined, Asked], Items],
    *measures: Measure,
    needs: tuple[Need, ...] = (),
    of_records: bool = True,
) -> Family:
    return Family(compute, tuple(replace(row, needs=needs) for row in measures), of_records)


_RELATION = (0.1, 0.3)
_SHARE = (0.05, 0.2)

FAMILIES = (
    _family(
        use_figures,
        Measure(
            "use.estimate", "estimates",
            "Change of what is estimated, counted or regressed, as a share of it; of twenty times "
            "the reach of its 95% confidence interval where that is more.",
            "uses", "use", limits=(0.05, 0.2),
        ),
        Measure(
            "use.model", "models",
            "What a model loses in AUC or R² on original records, if it is trained on the release.",
            "uses", "use", limits=(0.02, 0.1),
        ),
        of_records=False,
    ),
    _family(
        move_figures,
        Measure(
            "utility.mean_sse", "mean SSE",
            "Mean squared distance between a record and its masked version.", "utility", "table",
        ),
        Measure(
            "utility.sse_sst", "SSE/SST",
            "Squared error as a share of the squared spread.", "utility", "attribute",
        ),
        Measure(
            "utility.il1s", "IL1s per cell",
            "Mean distance of a number from its masked value, by its standard deviation times √2.",
            "utility", "table", limits=(0.1 / math.sqrt(2), 0.5 / math.sqrt(2)),
        ),
        needs=("paired",),
    ),
    _family(
        estimate_figures,
        Measure(
            "utility.means", "difference in means",
            "Change of the mean, in standard deviations.", "utility", "attribute", abs,
        ),
        Measure(
            "utility.totals", "difference in totals",
            "Change of the total, as a share of it.", "utility", "attribute", abs,
        ),
        Measure(
            "utility.variances", "difference in variances",
            "Change of the variance, as a share of it.", "utility", "attribute", abs,
        ),
        Measure(
            "utility.quantiles", "difference in quantiles",
            "The largest change of nine quantiles, in standard deviations.",
            "utility", "attribute", abs, limits=(0.25, 1.0),
        ),
        Measure(
            "utility.interval_overlap", "overlap of confidence intervals",
            "Overlap of the 95% confidence intervals of the mean, or of a category's share.",
            "utility", "attribute", low_is_bad, of_sample=False,
        ),
    ),
    _family(
        correlation_figures,
        Measure(
            "utility.pearson", "difference in Pearson correlations",
            "Change of a correlation.", "utility", "pair", abs, limits=_RELATION,
        ),
        Measure(
            "utility.spearman", "difference in Spearman correlations",
            "Change of a rank correlation.", "utility", "pair", abs,
        ),
    ),
    _family(
        unchanged_figures,
        Measure(
            "utility.unchanged", "share unchanged",
            "Share of records that keep their category.", "utility", "attribute", low_is_bad,
            two_sided=True,
        ),
        needs=("paired",),
    ),
    _family(
        share_figures,
        Measure(
            "utility.total_variation", "total variation distance",
            "Share of records that would have to change category to restore the distribution.",
            "utility", "attribute", limits=_SHARE,
        ),
    ),
    _family(
        association_figures,
        Measure(
            "utility.cramers_v", "difference in Cramér's V",
            "Change of the association of two categorical attributes.", "utility", "pair", abs,
            limits=_RELATION,
        ),
    ),
    _family(
        unit_figures,
        Measure(
            "utility.unit_consistency", "units with equal values in all records",
            "Share of units whose records agree where the plan says that they do.",
            "utility", "table", low_is_bad,
        ),
        needs=("plan",),
        of_records=False,
    ),
    _family(
        stratum_figures,
        Measure(
            "utility.stratum_totals", "error of totals by stratum",
            "Error of the totals in every stratum, as a share of their sum.",
            "utility", "attribute",
        ),
        needs=("plan",),
    ),
    _family(
        propensity_figures,
        Measure(
            "utility.pmse", "pMSE",
            "How well a logistic regression tells masked from original records.",
            "utility", "table",
            paper='Snoke, Raab, Nowok, Dibben and Slavković (2018), "General and specific utility '
            'measures for synthetic data", JRSS A 181(3)',
        ),
        Measure(
            "utility.pmse_ratio", "pMSE ratio",
            "The pMSE as a multiple of that of records drawn anew from the original.",
            "utility", "table", of_sample=False,
        ),
    ),
    _family(
        rule_figures,
        Measure(
            "utility.rule_broken", "records that break a rule",
            "Share of released records that break a rule of the plan.", "utility", "rule",
        ),
        Measure(
            "utility.rule_changed", "records changed to keep a rule",
            "Share of masked records that were changed to keep a rule.", "utility", "rule",
        ),
        needs=("plan",),
    ),
    _family(
        combination_figures,
        Measure(
            "risk.unique_combinations", "unique combinations",
            "Share of released records whose masked values no other record shares as a whole.",
            "risk", "table",
        ),
        of_records=False,
    ),
    _family(
        closeness_figures,
        Measure(
            "risk.rank_disclosure", "rank interval disclosure",
            "Share of values whose rank is close to that of their masked value.",
            "risk", "attribute",
        ),
        Measure(
            "risk.value_disclosure", "value interval disclosure",
            "Share of values that lie close to their masked value.", "risk", "attribute",
        ),
        needs=("paired",),
    ),
    _family(
        class_figures,
        Measure(
            "risk.unique_records", "unique records",
            "Share of released records that share their quasi-identifiers with no other.",
            "risk", "columns", limits=(0.0, 0.05),
        ),
        Measure(
            "risk.smallest_class", "smallest class",
            "The fewest released records that share their quasi-identifiers.",
            "risk", "columns", low_is_bad,
        ),
        needs=("quasi-identifiers",),
        of_records=False,
    ),
    _family(
        kept_figures,
        Measure(
            "risk.unique_kept", "unique combinations of kept columns",
            "Share of released records that share their kept columns with no other.",
            "risk", "columns",
        ),
        needs=("plan",),
        of_records=False,
    ),
    _family(
        pooling_figures,
        Measure(
            "risk.smallest_joint_class", "smallest joint class",
            "The fewest released records that share all averaged values.",
            "risk", "columns", low_is_bad,
        ),
        Measure(
            "risk.joint_distinct_least", "fewest values in a joint cluster",
            "Different original values in the joint cluster that has fewest (l-diversity).",
            "risk", "attribute", low_is_bad,
        ),
        Measure(
            "risk.joint_distinct_median", "values in the median joint cluster",
            "Different original values in the median joint cluster.",
            "risk", "attribute", low_is_bad,
        ),
        Measure(
            "risk.joint_distance_largest", "largest distance of a joint cluster",
            "Distance of a joint cluster's distribution from the table's (t-closeness).",
            "risk", "attribute",
        ),
        Measure(
            "risk.joint_distance_median", "median distance of joint clusters",
            "The same of the median joint cluster.", "risk", "attribute",
        ),
        needs=("plan",),
        of_records=False,
    ),
    _family(
        cluster_figures,
        Measure(
            "risk.width_median", "median cluster width",
            "Width of the cluster of the median record, in standard deviations.",
            "risk", "attribute", low_is_bad,
        ),
        Measure(
            "risk.width_90", "ninth decile of cluster widths",
            "Width up to which nine in ten records' clusters are.", "risk", "attribute", low_is_bad,
        ),
        Measure(
            "risk.width_largest", "largest cluster width",
            "Width of the widest cluster.", "risk", "attribute", low_is_bad,
        ),
        Measure(
            "risk.narrow_clusters", "records in narrow clusters",
            "Share of records in clusters so narrow that they tell the value.", "risk", "attribute",
        ),
        Measure(
            "risk.clusters_without_noise", "records in clusters without noise",
            "Share of masked values that carry no noise at any ε.", "risk", "attribute",
        ),
        needs=("detail",),
    ),
    _family(
        crowd_figures,
        Measure(
            "risk.exact_values", "values without noise that few have",
            "Masked values that carry no noise, and that fewer than `exact_from` persons have.",
            "risk", "attribute", limits=(0.0, 0.5),
        ),
        Measure(
            "risk.values_unmoved", "values that noise seldom moves",
            "Share of values that few persons have, and that noise leaves as they were in more "
            "than half of all releases.", "risk", "attribute",
        ),
        Measure(
            "risk.rare_categories", "records of rare categories",
            "Share of records whose category fewer than `exact_from` persons have: merge them.",
            "risk", "attribute",
        ),
        needs=("plan", "detail"),
    ),
    _family(
        learning_figures,
        Measure(
            "learning.f_measure", "F-measure, trained on the release",
            "How well a model trained on the release recognises a class.", "learning", "class",
            low_is_bad,
        ),
        Measure(
            "learning.f_measure_original", "F-measure, trained on the original",
            "How well a model trained on the original recognises a class.", "learning", "class",
            low_is_bad,
        ),
        needs=("paired", "target"),
        of_records=False,
    ),
)  # fmt: skip
"""Families of measures, in the order in which they are shown."""
