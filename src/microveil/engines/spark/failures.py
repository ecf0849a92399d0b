"""Errors on their way from a worker to the driver, as text in a row."""

import json

from microveil.errors import DataError


def packed(error: DataError) -> str:
    """Write an error down.

    Examples
    --------
    >>> str(unpacked(packed(DataError("too large", attribute="age", setting="lower"))))
    "attribute 'age': too large"
    """
    return json.dumps([error.message, error.attribute, error.setting])


def unpacked(problem: str) -> DataError:
    """Return the error that was written down."""
    message, attribute, setting = json.loads(problem)
    return DataError(message, attribute=attribute, setting=setting)
