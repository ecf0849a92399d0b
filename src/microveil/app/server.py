"""Start the page on this machine, for this machine only."""

import socket
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from microveil.errors import FileError, MicroveilError

ADDRESS = "127.0.0.1"
WHY = (
    f"It listens on {ADDRESS} only, so that nobody else on the network can reach the data you "
    "load. They stay in this machine's memory and are gone when you stop it with Ctrl+C."
)

_LARGEST_UPLOAD = 4_000  # MB
_OPTIONS = {
    "server.address": ADDRESS,
    "server.fileWatcherType": "none",
    "server.maxUploadSize": _LARGEST_UPLOAD,
    "server.maxMessageSize": _LARGEST_UPLOAD,
    "server.showEmailPrompt": False,
    "server.enableStaticServing": False,
    "server.enableXsrfProtection": True,
    "server.enableCORS": True,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.disableDataExport": True,
    "logger.hideWelcomeMessage": True,
    "runner.magicEnabled": False,
}


def address(port: int) -> str:
    """Return the address of the page."""
    return f"http://{ADDRESS}:{port}"


def command(port: int, *, browser: bool) -> list[str]:
    """Return the command that starts Streamlit with the page."""
    page = Path(__file__).with_name("page.py")
    options = {**_OPTIONS, "server.port": port, "server.headless": not browser}
    written = [f"--{name}={str(value).lower()}" for name, value in options.items()]
    hosts = [f"--server.allowedHosts={host}" for host in (ADDRESS, "localhost")]
    return [sys.executable, "-m", "streamlit", "run", str(page), *written, *hosts]


def check(port: int) -> None:
    """Refuse what could not be started: no Streamlit, or a port that is taken."""
    for module in ("streamlit", "altair"):
        if find_spec(module) is None:
            raise FileError(
                f"the page needs {module}, which is not installed; "
                'install it with: pip install "microveil[app]"'
            )
    with socket.socket() as probe:
        if sys.platform != "win32":  # where it would let two programs share a port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            raise MicroveilError(
                f"port {port} cannot be used, perhaps because the page is already running there; "
                "choose another with --port"
            ) from None


def serve(port: int, *, browser: bool) -> None:
    """Run the page until it is stopped."""
    with suppress(KeyboardInterrupt):
        done = subprocess.run(command(port, browser=browser), check=False)  # noqa: S603
        if done.returncode > 0:
            raise MicroveilError(f"the page stopped with exit code {done.returncode}")
