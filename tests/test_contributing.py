"""The way of one record through the code, as CONTRIBUTING.md lists it."""

import re
import sys
import threading
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from types import FrameType

import polars as pl

from microveil import Confidential, Plan
from tests.conftest import Run

ROOT = Path(__file__).parent.parent
LISTED = re.findall(
    r"^\d+\. `([\w.]+)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.MULTILINE
)


def module_of(name: str) -> str:
    """Return the module of a function, or of a method of a class."""
    module, _, last = name.rpartition(".")
    return module.rpartition(".")[0] if module.rpartition(".")[2][0].isupper() and last else module


def entered(work: Callable[[], object]) -> list[str]:
    """Return the functions of microveil in the order in which they are first called."""
    names: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        _, inside, path = frame.f_code.co_filename.rpartition("/microveil/")
        if event == "call" and inside:
            module = path.removesuffix(".py").replace("/", ".")
            names.setdefault(f"{module}.{frame.f_code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(names)


def test_one_record_from_file_to_file(run: Run, tmp_path: Path) -> None:
    pl.DataFrame({"x": range(60)}).write_csv(tmp_path / "people.csv")
    plan = Plan(epsilon=1, attributes={"x": Confidential(lower=0, upper=99)})
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    command = "protect people.csv --plan plan.toml -o out.parquet"
    found = entered(lambda: run(command))
    way = [name for name in found if name in LISTED]
    assert way == LISTED


def test_the_list_is_short_and_enters_each_module_once() -> None:
    assert 10 < len(LISTED) <= 25
    modules = [module for module, _ in groupby(map(module_of, LISTED))]
    assert len(modules) == len(set(modules))
