"""The page's server as a real process: whom it answers, how it ends, and what it leaves."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HOST = "127.0.0.1"
FOREIGN = ("evil.example", "127.0.0.1.evil.example", "localhost.", "[::1]", "a@127.0.0.1")
HOSTS = (HOST, "localhost")
ORIGINS = ("http://evil.example", f"http://{HOST}:9", "http://localhost", f"https://{HOST}", "null")
ROUTES = (
    "GET /", "GET /_stcore/health", "GET /_stcore/host-config", "GET /_stcore/stream",
    "GET /_stcore/metrics", "PUT /_stcore/upload_file/a/b", "OPTIONS /_stcore/upload_file/a/b",
    "GET /media/x", "GET /static/js/x.js", "GET /favicon.png", "GET /app/static/x", "GET /nothing",
)  # fmt: skip
EVERY = ("GET /_stcore/stream", "GET /")
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}
WITH_AN_UPLOAD_THAT_IS_READ = """
import sys, time
from threading import Thread
from microveil.app.upload import Upload
from microveil.cli.commands import main
from microveil.formats import FORMATS

def waits(source, verbatim):
    time.sleep(600)

FORMATS[".sav"] = FORMATS[".sav"]._replace(read=waits)
Thread(target=Upload("people.sav", b"somebody's data").read, daemon=True).start()
main()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def soon(happened: Callable[[], object]) -> None:
    until = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.05)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


@contextmanager
def started(
    port: int,
    folder: Path,
    code: str = "",
    *,
    at: Path | None = None,
    environment: dict[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the page with a folder for temporary files."""
    how = ["-c", code] if code else ["-m", "microveil"]
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, *how, "app", "--no-browser", "--port", str(port)],
        env=os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"} | (environment or {}),
        cwd=at,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        soon(lambda: answers(port) or process.poll() is not None)
        yield process
    finally:
        process.kill()
        process.communicate()


def enter(process: subprocess.Popen[bytes], port: int) -> tuple[str, str]:
    """Open the printed address; return its path and the cookie that it gives."""
    assert process.stdout is not None
    path = process.stdout.readline().decode().split(f":{port}")[1].strip()
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    connection.request("GET", path)
    reply = connection.getresponse()
    connection.close()
    assert (reply.status, reply.getheader("Location")) == (303, "/")
    given = reply.getheader("Set-Cookie") or ""
    assert "HttpOnly" in given
    assert "SameSite=strict" in given
    return path, given.partition(";")[0]


def answer(port: int, route: str, host: str, **headers: str) -> http.client.HTTPResponse:
    method, path = route.split()
    connection = http.client.HTTPConnection(HOST, port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host)
    upgrade = UPGRADE if path.endswith("stream") else {}
    for name, value in {**upgrade, **headers}.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    try:
        return connection.getresponse()
    finally:
        connection.close()


def status(port: int, route: str, host: str, **headers: str) -> int:
    return answer(port, route, host, **headers).status


def hostile_settings(folder: Path) -> None:
    """Write every setting and secret of Streamlit as an attacker would."""
    (folder / ".streamlit").mkdir(parents=True)
    (folder / ".streamlit" / "config.toml").write_text(
        '[server]\nenableCORS = false\ncorsAllowedOrigins = ["http://evil.example"]\n'
        'baseUrlPath = "evil"\nenableAgentApi = true\n[global]\ndevelopmentMode = true\n'
    )
    (folder / ".streamlit" / "secrets.toml").write_text('MICROVEIL_READ_MEMORY = "1"\n')


def test_it_answers_one_browser_alone(tmp_path: Path) -> None:
    """Settings of a project, of the user or of the environment change nothing of it."""
    for folder in (tmp_path / "project", tmp_path / "home"):
        hostile_settings(folder)
    port = free_port()
    host, stream = f"{HOST}:{port}", "GET /_stcore/stream"
    environment = {"HOME": str(tmp_path / "home"), "STREAMLIT_SERVER_BASE_URL_PATH": "evil"}
    at = tmp_path / "project"
    with started(port, tmp_path, at=at, environment=environment) as process:
        shut = {route: status(port, route, host) for route in ROUTES}
        guessed = status(port, "GET /?token=guessed", host)
        path, cookie = enter(process, port)
        again = status(port, f"GET {path}", host)
        wrong = status(port, "GET /", host, Cookie=cookie[:-1] + "~")
        own = {route: status(port, route, host, Cookie=cookie) for route in ROUTES}
        foreign = {status(port, route, name) for route in ROUTES for name in FOREIGN}
        from_own = [
            status(port, stream, host, Cookie=cookie, Origin=f"http://{name}:{port}")
            for name in HOSTS
        ]
        others = {
            origin: [status(port, route, host, Cookie=cookie, Origin=origin) for route in EVERY]
            for origin in ORIGINS
        }
        sites = {
            (site, to): status(
                port, "GET /", host, Cookie=cookie, Sec_Fetch_Site=site, Sec_Fetch_Dest=to
            )
            for site in ("none", "same-origin", "same-site", "cross-site")
            for to in ("document", "iframe", "script")
        }
        page = answer(port, "GET /", host, Cookie=cookie)
        left = [open_files(process, port, cookie) for _ in range(10)]
    assert shut.pop("GET /_stcore/health") == 200
    assert {*shut.values(), guessed, again, wrong} == {403}
    assert own["GET /"] == own["GET /_stcore/health"] == 200
    assert own[stream] == 101
    assert 400 not in own.values()
    assert foreign == {400}
    assert from_own == [101, 101]
    assert others == {origin: [403, 403] for origin in ORIGINS}
    assert {place for place, code in sites.items() if code != 200} == {
        (site, to) for site in ("same-site", "cross-site") for to in ("iframe", "script")
    }
    assert page.getheader("X-Frame-Options") == "SAMEORIGIN"
    assert page.getheader("Content-Security-Policy") == "frame-ancestors 'self'"
    assert len(left) == 10
    assert max(left) - left[0] <= 3  # a session that is about to end


def open_files(process: "subprocess.Popen[bytes]", port: int, cookie: str) -> int:
    """Return how many files the page has open after 20 more sessions, on Linux."""
    if sys.platform != "linux":
        return 0
    for _ in range(20):
        assert status(port, "GET /_stcore/stream", f"{HOST}:{port}", Cookie=cookie) == 101
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def test_it_asks_no_network_for_its_address() -> None:
    told = (
        "import socket, urllib.request\n"
        "from microveil.app import server\n"
        "server._without_other_settings()\n"
        "def refuse(*_, **__): raise AssertionError\n"
        "socket.socket.connect = urllib.request.urlopen = refuse\n"
        "from streamlit.web.server.server_util import is_url_from_allowed_origins\n"
        "print(is_url_from_allowed_origins('http://evil.example'))\n"
    )
    command = [sys.executable, "-c", told]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stdout == "False\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_ends_it_and_removes_what_is_read(name: str, tmp_path: Path) -> None:
    if signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        pytest.skip(f"{name} is ignored here, as by nohup")
    port = free_port()
    with started(port, tmp_path, WITH_AN_UPLOAD_THAT_IS_READ) as process, socket.socket() as open_:
        _, cookie = enter(process, port)
        (folder,) = tmp_path.glob(".microveil-*")
        assert [path.name for path in folder.iterdir()] == ["people.sav"]
        assert folder.stat().st_mode & 0o777 == 0o700
        open_.connect((HOST, port))
        lines = [f"{name}: {value}" for name, value in (UPGRADE | {"Cookie": cookie}).items()]
        request = ["GET /_stcore/stream HTTP/1.1", f"Host: {HOST}:{port}", *lines, "", ""]
        open_.sendall("\r\n".join(request).encode())
        assert b" 101 " in open_.recv(1000)
        process.send_signal(getattr(signal, name))
        assert process.wait(timeout=20) == (0 if name == "SIGINT" else 143)
    assert list(tmp_path.iterdir()) == []
    assert not answers(port)


def test_a_killed_one_listens_no_more_and_the_next_removes_what_it_left(tmp_path: Path) -> None:
    port = free_port()
    with started(port, tmp_path, WITH_AN_UPLOAD_THAT_IS_READ) as process:
        process.kill()
        process.wait()
    assert not answers(port)
    (left,) = tmp_path.glob(".microveil-*/people.sav")
    host = re.sub(r"\W", "_", socket.gethostname())
    (tmp_path / f".microveil-{host}-{os.getpid()}-of-one-that-runs").mkdir()
    with started(port, tmp_path):
        assert not left.exists()
        assert len(list(tmp_path.iterdir())) == 1
