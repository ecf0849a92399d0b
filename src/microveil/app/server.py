"""Start the page on this machine, for this machine only."""

import os
import signal
import socket
import sys
import webbrowser
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

from microveil.app.upload import scratch_of_this_server
from microveil.errors import FileError, MicroveilError

ADDRESS = "127.0.0.1"
WHY = (
    f"The address works once, in one browser. The page listens on {ADDRESS} only: nobody else on "
    "the network can reach your data, which stay in memory and are gone when you stop the page "
    "with Ctrl+C."
)

_HOSTS = (ADDRESS, "localhost")
_UNTIL_IT_ANSWERS = 1.0  # seconds
_LARGEST_UPLOAD = 4_000  # MB
_KEPT_SESSIONS = 4  # whose browser left and may come back; each holds its tables and three files
_OPTIONS = {
    "server.address": ADDRESS,
    "server.fileWatcherType": "none",
    "server.maxUploadSize": _LARGEST_UPLOAD,
    "server.maxMessageSize": _LARGEST_UPLOAD,
    "server.headless": True,
    "server.showEmailPrompt": False,
    "server.enableStaticServing": False,
    "server.enableAgentApi": False,
    "server.enableXsrfProtection": True,
    "server.enableCORS": True,
    "server.corsAllowedOrigins": [],
    "server.baseUrlPath": "",
    "server.runOnSave": False,
    "server.scriptHealthCheckEnabled": False,
    "global.developmentMode": False,
    "browser.serverAddress": ADDRESS,
    "browser.gatherUsageStats": False,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.disableDataExport": True,
    "client.allowedOrigins": [],
    "logger.hideWelcomeMessage": True,
    "runner.magicEnabled": False,
}


@dataclass
class Named:
    """Files that the owner named at the start: the only paths the page can be told of."""

    ledgers: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


NAMED = Named()


def address(port: int, token: str) -> str:
    """Return the address of the page, which lets one browser in."""
    return f"http://{ADDRESS}:{port}/?token={token}"


def options(port: int) -> dict[str, object]:
    """Return what Streamlit is told."""
    return {**_OPTIONS, "server.port": port, "server.allowedHosts": list(_HOSTS)}


def check_server(port: int) -> None:
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
                f"port {port} is not available, perhaps because the page already runs there; "
                "choose another with --port"
            ) from None


def _no_files(file_name: str) -> list[str]:  # noqa: ARG001 - Streamlit's own signature
    """Name no file of settings or secrets."""
    return []


def _without_other_settings() -> None:
    """Let Streamlit know only what it is told here, and never ask a network for its address."""
    for name in [name for name in os.environ if name.startswith("STREAMLIT_")]:
        del os.environ[name]
    from streamlit import config, net_util

    config.get_config_files = _no_files
    net_util.get_external_ip = net_util.get_internal_ip = lambda: None


def _let_go_of_sessions() -> None:
    """Keep few sessions whose browser left; Streamlit would keep 128."""
    from streamlit.runtime import memory_session_storage as home

    few = partial(home.MemorySessionStorage, maxsize=_KEPT_SESSIONS)
    home.MemorySessionStorage = few  # type: ignore[assignment, misc]


def serve(port: int, token: str, *, browser: bool) -> None:
    """Run the page in this process until it is stopped; it leaves nothing behind."""
    _without_other_settings()
    _let_go_of_sessions()
    import streamlit
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from microveil.app.gate import Gate

    page = Path(__file__).with_name("main_page.py")
    only_here = Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS, www_redirect=False)
    origins = tuple(f"http://{host}:{port}" for host in _HOSTS)
    gate = Middleware(Gate, token=token, origins=origins, cookie=f"microveil-{port}")
    sys.argv = [str(page)]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    if browser:
        opened = Timer(_UNTIL_IT_ANSWERS, webbrowser.open, [address(port, token)])
        opened.daemon = True
        opened.start()
    with scratch_of_this_server(), suppress(KeyboardInterrupt):
        streamlit.App(page, middleware=[only_here, gate]).run(config=options(port))
