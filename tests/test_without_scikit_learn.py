"""What works in a base install, without the extra `learning`, and what asks for it."""

import subprocess
import sys
from pathlib import Path

BLOCKED = """
import sys
sys.modules["sklearn"] = None
"""

COMMANDS = """
from microveil.cli.commands import app
from microveil.plan.sample import people
people(300).write_csv("few.csv")
for command in (
    "demo -o demo",
    "plan few.csv -o proposed.toml",
    "risk few.csv --quasi-identifier age --quasi-identifier region",
    "protect few.csv -o out.csv --plan demo/plan.toml --detail --report protect.html",
    "evaluate few.csv out.csv --detail out.detail.zip --report evaluate.html",
):
    app(command.split(), standalone_mode=False)
"""

ASKING = """
from pathlib import Path
import microveil
from microveil import *
from microveil.lab.paper import reproduce as repeat
from microveil.plan.sample import people
table = people(300)
for ask in (
    lambda: microveil.ProtectedEstimator,
    lambda: evaluate(table, table, aligned=True, target="region"),
    lambda: explore(table, target="region"),
    lambda: benchmark("census"),
    lambda: benchmark(table, target="region"),
    lambda: repeat(None, Path()),
):
    try:
        ask()
    except FileError as error:
        print(error)
"""


def run_blocked(code: str, directory: Path) -> str:
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", BLOCKED + code], cwd=directory, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_commands_of_a_base_install(tmp_path: Path) -> None:
    said = run_blocked(COMMANDS, tmp_path)
    assert "Verdict" in said
    assert "pMSE ratio" in said
    assert (tmp_path / "protect.html").is_file()
    assert (tmp_path / "evaluate.html").is_file()


def test_what_learns_asks_for_the_extra_before_any_work_is_done(tmp_path: Path) -> None:
    asked = (
        "this needs sklearn, which is not installed; "
        'install it with: pip install "microveil[learning]"'
    )
    assert run_blocked(ASKING, tmp_path).splitlines() == [asked] * 6
    assert not list(tmp_path.iterdir())
