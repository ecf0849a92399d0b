"""Facts below, words above: only `show` makes sentences; errors and warnings have their own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import microveil

SOURCE = Path(microveil.__file__).parent
PACKAGES = ("core", "release", "compare", "measures", "attacks", "judge")
TABLES_OF_TEXTS = {
    "release/notes.py",  # warnings, which certificates show too
    "compare/reasons.py",  # why something was not computed, as errors have it
    "attacks/attack_rows.py",
    "measures/measure_rows.py",  # what a row of the registries computes
    "judge/registry.py",
}

MOST_WORDS = 5
DIAGNOSTICS = ("Error", "warn", "Field", "computed_field")
"""What may be told in sentences: errors, warnings, and descriptions for JSON schemas."""


def sentences(module: Path) -> Iterator[str]:
    """Find text of more than a few words that is neither documentation nor a diagnostic."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    told = set(_told(tree))
    for node in ast.walk(tree):
        if id(node) in told or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = _text(node)
        if len([word for word in text.split() if word.isalpha()]) > MOST_WORDS:
            yield f"{module.name}:{node.lineno}: {text}"


def _told(tree: ast.AST) -> Iterator[int]:
    """Name the nodes that are documentation, or arguments of what tells of a problem."""
    messages = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)
        if isinstance(node, ast.JoinedStr):
            yield from (id(part) for part in ast.walk(node) if part is not node)
        if isinstance(node, ast.Call) and _name(node.func).endswith(DIAGNOSTICS):
            yield from (id(part) for part in ast.walk(node))
            names = (part.id for part in ast.walk(node) if isinstance(part, ast.Name))
            messages.update(names)
    for node in ast.walk(tree):  # what is put together first, and told then
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id in messages for target in targets):
            yield from (id(part) for part in ast.walk(node))


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_below_show_makes_no_sentences(package: str) -> None:
    modules = [
        module
        for module in sorted((SOURCE / package).rglob("*.py"))
        if module.relative_to(SOURCE).as_posix() not in TABLES_OF_TEXTS
    ]
    assert modules
    assert [found for module in modules for found in sentences(module)] == []


def test_a_sentence_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        '"""A module that says a great deal about itself in here."""\n'
        'SAID = "these are six words and more"\n'
        'raise DataError("this may be said since it is an error")\n'
        'said = f"the value of {SAID} was told and then raised"\n'
        "raise DataError(said)\n"
        'told = f"the masked values of {SAID} were exchanged at random"\n'
    )
    found = [line.partition(": ")[0] for line in sentences(module)]
    assert found == [
        "module.py:2",
        "module.py:6",
    ]
