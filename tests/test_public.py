"""What is exported, and what importing it does not drag in."""

import subprocess
import sys
from types import ModuleType

import microveil

HEAVY = [
    "adbc_driver_postgresql",
    "altair",
    "fastexcel",
    "jinja2",
    "matplotlib",
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
    public = {
        name
        for name, value in vars(microveil).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    lazy = {"ProtectedEstimator"}
    assert public | lazy | {"__version__"} == set(microveil.__all__)
    assert all(hasattr(microveil, name) for name in lazy)
    assert microveil.__all__ == sorted(microveil.__all__)


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_importing_the_library_or_the_command_line_pulls_in_nothing_heavy() -> None:
    for module in ("microveil", "microveil.cli"):
        assert not modules_after(f"import {module}") & set(HEAVY)


def test_the_command_line_starts_without_the_engine() -> None:
    assert "pyspark" not in modules_after("import microveil.engines.memory")
