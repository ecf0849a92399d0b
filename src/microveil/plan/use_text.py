"""The text form of a use, such as ``mean income by region``, read word by word."""

import re
from dataclasses import dataclass
from typing import Any, NoReturn

from microveil.errors import PlanError

_TOKEN = re.compile(
    r"""(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<word>[^\W\d]\w*)|"(?P<name>(?:[^"]|"")+)"|'(?P<text>(?:[^']|'')*)'
    |(?P<mark>[=~+,()])""",
    re.VERBOSE,
)
_MOST_TOKENS = 200
_ESTIMATES = ("mean", "total", "share", "median", "quantile")
_KINDS = (*_ESTIMATES, "table", "predict")
_HOW = (
    'write a use as "mean income by region", "share sex = female", "quantile 0.9 income", "table '
    'region, age(10)", "wage ~ age + education" or "predict died"; names with spaces stand in '
    "double quotes"
)


@dataclass(frozen=True)
class _Token:
    kind: str
    value: str
    at: int

    @property
    def is_name(self) -> bool:
        return self.kind in ("word", "name")


def settings_of_text(text: str, *, regression: bool = False) -> dict[str, Any]:
    """Read the settings of a use, or of nothing but a regression.

    Examples
    --------
    >>> settings_of_text("mean income by age(10)")
    {'kind': 'mean', 'of': 'income', 'by': ['age'], 'bands': {'age': 10.0}}
    """
    return _UseReader(text).whole(regression=regression)


class _UseReader:
    """Reads tokens from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split()

    def whole(self, *, regression: bool) -> dict[str, Any]:
        if regression or (len(self._tokens) > 1 and self._tokens[1].value == "~"):
            found = self._regression()
        elif not self._tokens or self._tokens[0].value not in _KINDS:
            self._expected(f"{', '.join(_KINDS)}, or a regression such as wage ~ age")
        else:
            found = self._of_kind(self._tokens.pop(0).value)
        if self._tokens:
            self._expected("the end")
        return found

    def _of_kind(self, kind: str) -> dict[str, Any]:
        if kind == "table":
            return {"kind": kind, **self._groups()}
        if kind == "predict":
            of = self._name()
            others = self._names(",") if self._take("from") else []
            return {"kind": kind, "of": of, "predictors": others}
        at = {"median": 0.5, "quantile": self._number}.get(kind)
        found: dict[str, Any] = {} if at is None else {"at": at() if callable(at) else at}
        found |= {"kind": "quantile" if found else kind, "of": self._name()}
        if kind == "share" and self._take("="):
            found["category"] = self._category()
        return found | (self._groups() if self._take("by") else {})

    def _regression(self) -> dict[str, Any]:
        of = self._name()
        if not self._take("~"):
            self._expected("~")
        return {"kind": "regression", "of": of, "predictors": self._names("+")}

    def _groups(self) -> dict[str, Any]:
        by, bands = [], {}
        while True:
            by.append(self._name())
            if self._take("("):
                bands[by[-1]] = self._number()
                if not self._take(")"):
                    self._expected(")")
            if not self._take(","):
                return {"by": by} | ({"bands": bands} if bands else {})

    def _names(self, between: str) -> list[str]:
        names = [self._name()]
        while self._take(between):
            names.append(self._name())
        return names

    def _name(self) -> str:
        token = self._tokens[0] if self._tokens else None
        if token is None or not token.is_name or (token.kind, token.value) in _JOINS:
            self._expected("the name of an attribute")
        return self._tokens.pop(0).value

    def _number(self) -> float:
        if not self._tokens or self._tokens[0].kind != "number":
            self._expected("a number")
        return float(self._tokens.pop(0).value)

    def _category(self) -> str:
        if not self._tokens or self._tokens[0].kind not in ("word", "number", "text"):
            self._expected("a category, such as female or 'not known'")
        return self._tokens.pop(0).value

    def _take(self, value: str) -> bool:
        """Take the next token if it is this word or mark."""
        token = self._tokens[0] if self._tokens else None
        if token is None or token.kind not in ("word", "mark") or token.value != value:
            return False
        self._tokens.pop(0)
        return True

    def _expected(self, what: str) -> NoReturn:
        if self._tokens:
            token = self._tokens[0]
            raise self._unreadable(
                f"expected {what} at character {token.at}, found {token.value!r}"
            )
        raise self._unreadable(f"expected {what} at the end")

    def _unreadable(self, problem: str) -> PlanError:
        return PlanError(f"use {self._text!r}: {problem}; {_HOW}", setting="uses")

    def _split(self) -> list[_Token]:
        found, at = list[_Token](), 0
        while at < len(self._text):
            if self._text[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(self._text, at)
            if match is None or match.lastgroup is None:
                raise self._unreadable(f"cannot read {self._text[at]!r} at character {at + 1}")
            if len(found) == _MOST_TOKENS:
                raise self._unreadable(f"it is too long at character {at + 1}")
            quote = {"name": '"', "text": "'"}.get(match.lastgroup, "")
            value = match[match.lastgroup].replace(2 * quote, quote) if quote else match[0]
            found.append(_Token(match.lastgroup, value, at + 1))
            at = match.end()
        return found


_JOINS = {("word", "by"), ("word", "from")}
"""Words that are no names unless they stand in double quotes."""
