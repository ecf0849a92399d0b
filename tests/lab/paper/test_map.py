"""The map from the paper to the code leads somewhere."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MAP = ROOT / "docs" / "explanation" / "paper-map.md"
QUOTED = sorted(set(re.findall(r"`([^`\n]+)`", MAP.read_text(encoding="utf-8"))))
FILES = [name for name in QUOTED if re.fullmatch(r"[\w/]+\.py", name)]
NAMES = [
    name
    for name in QUOTED
    if re.fullmatch(r"[a-z_]+(\.\w+)+", name)
    and (ROOT / "src" / "microveil" / name.split(".")[0]).is_dir()
    and not name.endswith(".py")
]


@pytest.mark.parametrize("name", FILES)
def test_files_exist(name: str) -> None:
    assert (ROOT / name).exists() or (ROOT / "src" / "microveil" / name).exists()


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name: str) -> None:
    package, module, *attributes = name.split(".")
    found = importlib.import_module(f"microveil.{package}.{module}")
    for attribute in attributes:
        found = getattr(found, attribute)


def test_the_map_names_many() -> None:
    assert len(FILES) > 10
    assert len(NAMES) > 15


@pytest.mark.parametrize(
    "row",
    [f"Definition {n}" for n in range(1, 5)]
    + [f"Theorem {n}" for n in (1, 2)]
    + [f"Proposition {n}" for n in range(1, 4)]
    + [f"Figure {n}" for n in range(1, 7)]
    + ["Algorithm 1"],
)
def test_everything_numbered_in_the_paper_has_a_row(row: str) -> None:
    assert f"\n| {row}" in MAP.read_text(encoding="utf-8")
