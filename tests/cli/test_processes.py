"""Passwords of databases in the list of processes."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from microveil.cli.processes import without_passwords

SECRET = "s3cr3t"  # noqa: S105 - of a server that never answers


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot change its list")
def test_the_list_of_processes_holds_no_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://steward:{SECRET}@127.0.0.1:{silent.getsockname()[1]}/survey"
        command = [sys.executable, "-m", "microveil", "plan", address, "--query", "select 1"]
        command += ["-o", "plan.toml"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:  # noqa: S603
            try:
                silent.settimeout(30)
                with silent.accept()[0]:  # it is connected, and waits for an answer
                    listed = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            finally:
                process.kill()
    assert SECRET.encode() not in listed
    assert b"postgresql://steward:******@127.0.0.1" in listed
    assert b"select 1" in listed


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (b"postgresql://u:p@ss:w/rd@host:1/db", b"postgresql://u:*********@host:1/db"),
        (b"postgresql://h/db?Password=ab&x=1", b"postgresql://h/db?Password=**&x=1"),
        (b"postgresql://u@host:5432/db", b"postgresql://u@host:5432/db"),
        (b"--keep\0a:b@c", b"--keep\0a:b@c"),
    ],
)
def test_only_passwords_are_hidden(given: bytes, shown: bytes) -> None:
    assert without_passwords(given) == shown
