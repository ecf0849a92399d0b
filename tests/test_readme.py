"""Every example in the README, run as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_examples_run_as_printed(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shell = [block for block in blocks("bash") if "microveil " in block]
    script = "\n".join(["set -e", "microveil demo", *shell])
    environment = {**os.environ, "PATH": path}
    for command in (["bash", "-c", script], *([sys.executable, "-c", b] for b in blocks("python"))):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)  # noqa: S603
    written = {file.name for file in tmp_path.iterdir()}
    assert {"protected.parquet", "flags.csv", "people.parquet", "recommended.toml"} <= written


def test_the_two_commands_are_there() -> None:
    assert "script/demo" in blocks("bash")[0]
    for name in ("demo", "test", "bench"):
        assert os.access(ROOT / "script" / name, os.X_OK)
