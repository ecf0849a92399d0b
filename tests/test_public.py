"""What is exported, and what importing it does not drag in."""

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import microveil

HEAVY = [
    "adbc_driver_postgresql",
    "altair",
    "fastexcel",
    "jinja2",
    "numba",
    "pandas",
    "pyarrow",
    "pyreadstat",
    "pyspark",
    "scipy",
    "sklearn",
    "streamlit",
    "vl_convert",
    "xlsxwriter",
]


def test_public_names_are_exactly_what_is_exported() -> None:
    every = [*microveil.__all__, "ProtectedEstimator"]  # whose extra may not be installed
    assert sorted([*microveil._HOMES, "__version__"]) == sorted(every) == dir(microveil)
    for name, home in microveil._HOMES.items():
        assert getattr(microveil, name) is getattr(import_module(f"microveil.{home}"), name)
    assert microveil.__all__ == sorted(microveil.__all__)
    with pytest.raises(AttributeError, match="'microveil' has no attribute 'nothing'"):
        microveil.nothing  # noqa: B018


def test_no_public_name_is_also_that_of_a_module() -> None:
    for name in dir(microveil):
        with pytest.raises(ModuleNotFoundError):
            import_module(f"microveil.{name}")
        assert not isinstance(getattr(microveil, name), ModuleType)


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    return set(run.stdout.split())


def test_importing_the_library_or_the_command_line_pulls_in_nothing_heavy() -> None:
    for code in ("import microveil.cli.commands", "from microveil import *"):
        assert not modules_after(code) & set(HEAVY)


def test_the_command_line_starts_at_once() -> None:
    assert not modules_after("import microveil.cli.commands") & {
        "numpy",
        "polars",
        "pydantic",
        "narwhals",
    }


def test_the_command_line_starts_without_the_engine() -> None:
    assert "pyspark" not in modules_after("import microveil.engines.memory")
