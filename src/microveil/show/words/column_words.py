"""What a column holds, in a word."""

import polars as pl


def contents_of(dtype: pl.DataType) -> str:
    """Say what a column of this type holds.

    Examples
    --------
    >>> contents_of(pl.Int64()), contents_of(pl.Date())
    ('integers', 'dates')
    """
    if dtype.is_integer():
        return "integers"
    if dtype.is_numeric():
        return "numbers"
    words: dict[type, str] = {
        pl.Date: "dates", pl.Datetime: "times", pl.Time: "times of day", pl.Duration: "durations",
        pl.Boolean: "yes/no",
    }  # fmt: skip
    return words.get(type(dtype), "text")


ROLE_WORDS = {
    "confidential": "masked",
    "identifier": "dropped",
    "kept": "kept",
    "derived": "derived",
    "sampling_weight": "sampling weight",
    "pseudonym": "pseudonym",
    "shifted": "shifted",
}
"""What a role does to a column."""

KIND_WORDS = {
    "integer": "whole numbers",
    "real": "numbers",
    "nominal": "categories",
    "ordinal": "ordered categories",
}
"""What the values of a masked column are taken for."""
