"""Documentation and program use the words of the glossary, and none that it rejects."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [ROOT / "README.md"] + [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if page != GLOSSARY
]
SOURCE = ROOT / "src" / "microveil"
TALKING = ("show", "app", "cli", "plan", "compare", "attacks", "measures", "release", "lab")
CODE = re.compile(r"^```.*?^```$|^ {4}.*?$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
TITLES_AND_FLAGS = re.compile(r'"[^"]*"|--\w[\w-]* [A-Z]+|[^"]*", IEEE')
"""Titles of papers have words of their own."""


def rows() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return every word with its meaning and the words that are not used for it."""
    lines = GLOSSARY.read_text(encoding="utf-8").splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return {
        word: (meaning, tuple(filter(None, rejected.split(", "))))
        for word, meaning, rejected in table[2:]
    }


REJECTED = {wrong: word for word, (_, many) in rows().items() for wrong in many}


def found_in(text: str) -> list[str]:
    """Return the rejected words in a text, singular or plural, outside of code."""
    prose = TITLES_AND_FLAGS.sub("", CODE.sub("", text))
    return [
        f"{wrong!r}: say {word!r}"
        for wrong, word in REJECTED.items()
        if re.search(rf"\b{re.escape(wrong)}s?\b", prose, re.IGNORECASE)
    ]


def test_every_word_has_a_short_meaning_and_one_place() -> None:
    words = list(rows())
    assert len(words) > 20
    assert words == sorted(words, key=lambda word: word.replace("ε", "epsilon").lower())
    for word, (meaning, _) in rows().items():
        assert 0 < len(meaning) < 160, word
    assert not set(REJECTED) & set(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_uses_a_rejected_word(page: Path) -> None:
    assert found_in(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("package", TALKING)
def test_no_sentence_of_the_program_uses_a_rejected_word(package: str) -> None:
    wrong = [
        f"{module.relative_to(SOURCE)}:{line}: {found}"
        for module in sorted((SOURCE / package).rglob("*.py"))
        if module.name != "headers.py"  # which lists words of column names
        for line, text in sentences_of(module)
        for found in found_in(text)
    ]
    assert wrong == []


def sentences_of(module: Path) -> Iterator[tuple[int, str]]:
    """Give every text of several words that is no documentation of code."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in documentation or not isinstance(node, ast.Constant):
            continue
        if isinstance(node.value, str) and len(node.value.split()) > 3:
            yield node.lineno, node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_quotes_are_straight(page: Path) -> None:
    """Except where a page quotes the paper."""
    assert page.name == "claims.md" or not set("«»“”„‘’") & set(page.read_text(encoding="utf-8"))


def test_rejected_words_are_found_in_prose_alone() -> None:
    assert found_in("Intruders know it.") == ["'intruder': say 'attacker'"]
    assert found_in("`intruder`\n\n```text\nan intruder knows\n```\n") == []
