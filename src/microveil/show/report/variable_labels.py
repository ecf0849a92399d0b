"""Labels of variables and values, as SPSS, Stata and SAS files have them, instead of codes."""

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

from microveil.compare.figures import Figure
from microveil.formats import LoadedTable, load_table, source_of
from microveil.formats.metadata import ColumnMeta
from microveil.measures.use_figures import ESTIMATE
from microveil.plan.uses import Use
from microveil.release.release import Release
from microveil.types import UserTable

_LONGEST = 60
_LABELLED_FILES = (".sav", ".dta", ".sas7bdat")


class VariableLabels:
    """What a file calls its variables and values."""

    def __init__(self, columns: Mapping[str, ColumnMeta], attributes: Sequence[str]) -> None:
        labelled = {name: columns[name] for name in attributes if name in columns}
        self._labels = {name: _plain(c.label or "") for name, c in labelled.items()}
        self._values = {
            name: {_code(value): _plain(label) for value, label in column.value_labels.items()}
            for name, column in labelled.items()
        }

    def name(self, attribute: str) -> str:
        """Return an attribute's label with its name, of pairs both; without a label the name.

        Examples
        --------
        >>> labels = VariableLabels({"db040": ColumnMeta("Region")}, ["db040"])
        >>> labels.name("db040"), labels.name("db040, age"), labels.name("age")
        ('Region (db040)', 'Region (db040), age', 'age')
        """
        if attribute not in self._labels and ", " in attribute:
            return ", ".join(self.name(part) for part in attribute.split(", "))
        label = self._labels.get(attribute)
        return f"{label} ({attribute})" if label else attribute

    def value(self, attribute: str, code: str) -> str:
        """Return the label of a value; with the value where others share it."""
        values = self._values.get(attribute, {})
        label = values.get(code) or code
        return f"{label} ({code})" if [*values.values()].count(label) > 1 else label

    def group(self, use: str, group: str) -> str:
        """Return a group or a term of a use with labels of its values.

        Where a value holds what groups are joined with, it cannot be told whose it is, and the
        values stay.

        Examples
        --------
        >>> labels = VariableLabels({"db040": ColumnMeta("Region", {7: "West"})}, ["db040"])
        >>> labels.group("table db040, age(10)", "7, 20 to under 30")
        'West, 20 to under 30'
        >>> labels.group("wage ~ age + db040", "db040 = 7")
        'db040 = West'
        """
        asked = Use.parse(use)
        for name in asked.predictors:
            if group.startswith(f"{name} = "):
                return f"{name} = {self.value(name, group.removeprefix(f'{name} = '))}"
        names, values = list(asked.by), group.split(", ")
        if asked.kind == "share" and asked.category is None and len(values) > len(names):
            names.append(str(asked.of))
        if len(names) != len(values):
            return group
        return ", ".join(map(self.value, names, values))

    def legend(self, use: str) -> str:
        """Say what the names in a use stand for; nothing where no label is known."""
        asked = Use.parse(use)
        names = [f"{n}: {self._labels[n]}" for n in asked.columns if self._labels.get(n)]
        label = self._values.get(str(asked.of), {}).get(str(asked.category))
        names += [f"{asked.category}: {label}"] if label else []
        return f" {'; '.join(names)}." if names else ""

    def about(self, figure: Figure) -> str:
        """Name what a figure is about."""
        if figure.measure != ESTIMATE or not figure.facts["group"]:
            return self.name(figure.attribute or "")
        use, group = str(figure.facts["use"]), str(figure.facts["group"])
        return f"{use}: {self.group(use, group)}"

    @property
    def codebook(self) -> list[tuple[str, str, str]]:
        """Every labelled attribute with its label and those of its values."""
        return [
            (name, label, "; ".join(f"{c} = {told}" for c, told in self._values[name].items()))
            for name, label in self._labels.items()
            if label or self._values[name]
        ]


def labels_of(
    original: UserTable, release: Release | UserTable, attributes: Sequence[str]
) -> VariableLabels:
    """Find the labels of the released attributes in what was read."""
    if isinstance(original, LoadedTable):
        columns = original.meta.columns
    elif isinstance(release, Release):
        columns = release.store.meta.columns
    else:
        source = source_of(original)
        labelled = source is not None and source.path is not None
        labelled = labelled and source.path.suffix.lower() in _LABELLED_FILES  # type: ignore[union-attr]
        columns = load_table(original).meta.columns if labelled else {}
    return VariableLabels(columns, attributes)


def _plain(label: str) -> str:
    return shorten(" ".join(label.split()), _LONGEST, placeholder=" …")


def _code(value: Any) -> str:  # noqa: ANN401 - a number or text
    return f"{value:g}" if isinstance(value, float) else str(value)
