"""What is written for plans and the command line, in the words of the page's controls."""

import re
from collections.abc import Mapping

from microveil.plan.plan import Plan
from microveil.plan.settings import declared_in
from microveil.show.words.column_words import ROLE_WORDS

_LABELS = {each.name: re.split("[,:(]", each.setting.label)[0].strip()
           for each in declared_in(Plan) if each.setting.label} | {"role": "role"}  # fmt: skip
_CHOICES: dict[str, Mapping[str, str]] = {
    each.name: each.setting.choices for each in declared_in(Plan)
} | {"role": ROLE_WORDS}
_SETTING = re.compile(rf'\b({"|".join(_LABELS)}) = (?:"([\w-]+)"|([\w.]+))')
_COMMANDS = {"compare other plans with microveil explore": 'press "Compare other plans"'}


def in_page_words(text: str) -> str:
    """Name settings by their labels, and their values by those of their choices.

    Examples
    --------
    >>> in_page_words('set missing = "keep" (nulls stay null), or anonymity = 10')
    'set "Missing values" to "keep: they stay missing" (nulls stay null), or "Anonymity" to 10'
    """
    for said, instead in _COMMANDS.items():
        text = text.replace(said, instead)
    return _SETTING.sub(_as_control, text)


def _as_control(found: re.Match[str]) -> str:
    name, word, number = found.groups()
    value = number if word is None else f'"{_CHOICES[name].get(word, word)}"'
    return f'"{_LABELS[name]}" to {value}'
