"""Why something was not computed: one message for each reason, as errors have them."""

from microveil.compare.figures import NotComputed

_REASONS = {
    "not_paired": "it is not known which record is whose; give the private detail of the release "
    "(--detail FILE, detail=), or say that its rows are in the order of the original (--aligned, "
    "aligned=True)",
    "no_plan": "the plan of the release is not known; give its private detail (--detail FILE, "
    "detail=)",
    "no_plan_of_large": "in tables of this size people can be looked for only with the plan of the "
    "release; give its private detail (--detail FILE, detail=)",
    "no_detail": "clusters are described in the private detail only (--detail FILE, detail=)",
    "no_target": "no target was named (--target COLUMN, target=)",
    "no_quasi-identifiers": "no quasi-identifiers were named",
    "all_missing_in_original": "every value is missing in the original",
    "all_missing_in_release": "every value is missing in the release",
    "constant_unchanged": "it is constant in the original, so it has no scale; the release has the "
    "same value",
    "constant_changed": "it is constant in the original, so it has no scale; the release has other "
    "values",
    "neither_numbers_nor_categories": "it holds neither numbers nor categories",
    "too_many_values": "it has {found:,} different values, more than {most:,}; if they are "
    "categories, name it in attributes",
    "all_different": "every value in the original is different; if they are categories, name it in "
    "attributes",
    "total_is_zero": "its total in the original is 0",
    "one_value": "the release has only one value of it",
    "constant_where_complete": "it is constant among the complete records of a table",
    "one_category_where_complete": "it has fewer than two categories among the complete records of "
    "a table",
    "needs_two_numbers": "correlations need at least two numeric attributes that vary",
    "needs_two_categories": "associations need at least two attributes with at least two "
    "categories each",
    "in_no_record_of_both": "no record has it in both tables",
    "no_numbers": "no attribute holds numbers",
    "constant_where_both": "it does not vary in the records that have it in both tables",
    "too_few_complete_in_both": "too few records are complete in both tables",
    "too_few_complete_in_one": "too few records are complete in one of the tables",
    "no_clusters": "it was masked without clusters",
    "units_not_known": "it is not known which records belong to one unit",
    "nothing_per_unit": "no attribute has one value per unit",
    "strata_not_known": "it is not known which records belong to one stratum",
    "not_counted_on_spark": "it is not counted on Spark",
    "not_all_released": "not all of its columns are in the release",
    "drawn_from_joint_clusters": "records drawn from a large table are not whole joint clusters",
    "class_not_tested": "no test record is of this class",
    "too_few_to_protect_anew": "the plan does not fit the few records it would be tried on",
    "too_few_people": "halves of so few people say nothing",
    "half_cannot_be_protected": "the plan cannot be run on half of the people",
    "known_anyway": "it is guessed without the release for more than 90% of people, so that hardly "
    "anything is left to gain",
    "not_in_both_tables": "not all of its columns are in both tables",
    "too_many_groups": "it has more than 200 groups; group by fewer attributes, or by wider bands",
    "groups_too_small": "no group has 30 records or more in the original",
    "regressed_on_two": "a regression is of numbers, or of two categories",
    "regression_undetermined": "the original does not determine its coefficients; leave out terms "
    "that follow from others",
    "too_many_terms": "it has more than 60 terms; leave out categories of many values",
    "no_predictors": "there is nothing to predict it from",
    "not_classes_to_learn": "it needs from 2 to 50 classes",
    "needs_scikit_learn": "models need scikit-learn; install it with: pip install "
    "'microveil[learning]'",
    "depends_on_number_of_records": "it depends on the number of records, so that of drawn ones "
    "would differ",
}


def why_not(item: NotComputed) -> str:
    """Say why something was not computed.

    Examples
    --------
    >>> why_not(NotComputed((), "too_many_values", "town", {"found": 2_000, "most": 100}))[:42]
    'it has 2,000 different values, more than 1'
    """
    return _REASONS[item.reason].format(**item.facts)
