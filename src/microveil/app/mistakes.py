"""Where a mistake is to be mended: among the attributes, or among the settings of the plan."""

import re

from microveil.errors import MicroveilError

_ATTRIBUTE = re.compile(r"\battribute ['\"]")
_SETTING = re.compile(
    r"\b(missing|partition|guarantee|records_per_person) = |: k must be |k = \"auto\""
)


def is_about_settings(error: MicroveilError) -> bool:
    """Whether the settings must be changed, rather than a row of the attributes.

    Examples
    --------
    >>> is_about_settings(MicroveilError("attribute 'age': lower must be a number"))
    False
    >>> is_about_settings(MicroveilError("attribute 'age': set missing = keep"))
    True
    """
    text = str(error)
    return not _ATTRIBUTE.search(text) or bool(_SETTING.search(text))
