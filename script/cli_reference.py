"""Print docs/cli.md: what every command says of itself with --help.

``script/docs`` writes the page again.
"""

import sys

from typer.main import get_command
from typer.testing import CliRunner

from microveil.cli.commands import app

WIDTH = 80
HEAD = """# Commands

What `microveil COMMAND --help` prints. Exit codes: 0 done, 1 your mistake (one line says which),
2 usage, 3 a defect of microveil. Warnings go to the error stream, a line each.
"""


def help_of(*command: str) -> str:
    """Return the help of a command, at one width and without colours wherever it is run."""
    result = CliRunner().invoke(
        app, [*command, "--help"], prog_name="microveil", terminal_width=WIDTH, color=False
    )
    if result.exit_code:
        raise SystemExit(result.output)
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def reference() -> str:
    """Return the page."""
    commands: list[tuple[str, ...]] = [(), *((name,) for name in get_command(app).commands)]  # type: ignore[attr-defined]
    parts = (
        f"## {' '.join(('microveil', *command))}\n\n```text\n{help_of(*command)}\n```\n"
        for command in commands
    )
    return "\n".join((HEAD, *parts))


if __name__ == "__main__":
    sys.stdout.write(reference())
