"""The page as a real process, and sessions that speak its protocol."""

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from fuzz.checks import Broken

HOST = "127.0.0.1"
_LONGEST_RUN = 60.0  # seconds of the page's script
_BOUNDARY = "boundary"
_FORM = f"multipart/form-data; boundary={_BOUNDARY}"


@dataclass(frozen=True)
class Page:
    """A page that runs, and the cookie of the browser that it let in."""

    port: int
    cookie: str

    @property
    def answers(self) -> bool:
        """Whether it still says that it runs."""
        return self.ask("GET", "/_stcore/health") == 200

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> int:
        """Send a request; return its status."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=20)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {"Cookie": self.cookie, **named})
            return connection.getresponse().status
        finally:
            connection.close()

    def upload(self, path: str, content: bytes) -> int:
        """Send a file to where the page said."""
        head = 'Content-Disposition: form-data; name="f"; filename="f.csv"'
        body = f"--{_BOUNDARY}\r\n{head}\r\n\r\n".encode() + content
        body += f"\r\n--{_BOUNDARY}--\r\n".encode()
        return self.ask(
            "PUT", path, body, Content_Type=f"multipart/form-data; boundary={_BOUNDARY}"
        )


@dataclass(frozen=True)
class Session:
    """A session of a browser: what was sent, and what the page answered."""

    page: Page
    socket: ClientConnection

    def send(self, message: BackMsg) -> list[ForwardMsg]:
        """Send a message that runs the script; return what came until it had run."""
        self.socket.send(message.SerializeToString())
        return list(self._until("script_finished"))

    def ask_where(self, name: str) -> tuple[str, str]:
        """Ask where to upload a file of some name; return its number and the place."""
        message = BackMsg()
        message.file_urls_request.request_id = "1"
        message.file_urls_request.file_names.append(name)
        self.socket.send(message.SerializeToString())
        *_, answer = self._until("file_urls_response")
        place = answer.file_urls_response.file_urls[0]
        return place.file_id, place.upload_url

    def _until(self, kind: str) -> Iterator[ForwardMsg]:
        while True:
            message = ForwardMsg()
            try:
                message.ParseFromString(self.socket.recv(timeout=_LONGEST_RUN))
            except TimeoutError:
                raise Broken("hang", "the page's script does not end") from None
            yield message
            if message.WhichOneof("type") == kind:
                return


@contextmanager
def session(scratch: Path) -> Iterator[Session]:
    """Open a session of the page, which is started once in a process, with a scratch folder."""
    page = _started(scratch)
    with connect(
        f"ws://{HOST}:{page.port}/_stcore/stream",
        additional_headers={"Cookie": page.cookie, "Origin": f"http://{HOST}:{page.port}"},
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
    ) as opened:
        yield Session(page, opened)


@cache
def _started(scratch: Path) -> Page:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    parent, own = os.getpid(), {"TMPDIR": mkdtemp(dir=scratch), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "microveil", "app", "--no-browser", "--port", str(port)],
        env=os.environ | own, cwd=own["TMPDIR"], preexec_fn=lambda: _end_with(parent),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None  # noqa: S101
    token = process.stdout.readline().partition("?token=")[2].strip()
    return Page(port, _entered(port, token))


def _end_with(parent: int) -> None:
    """End the page with the process that started it, which may be killed."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _entered(port: int, token: str) -> str:
    """Open the printed address as soon as the page listens; return the cookie that it gives."""
    for _ in range(600):
        connection = http.client.HTTPConnection(HOST, port, timeout=20)
        try:
            connection.request("GET", f"/?token={token}")
            given = connection.getresponse().getheader("Set-Cookie") or ""
            return given.partition(";")[0]
        except ConnectionRefusedError:
            time.sleep(0.1)
        finally:
            connection.close()
    raise Broken("hang", "the page does not start")
