"""Start the page on this machine, for this machine only."""

import signal
import socket
import sys
import webbrowser
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Timer

from microveil.app.upload import scratch_of_this_server
from microveil.errors import FileError, MicroveilError

ADDRESS = "127.0.0.1"
WHY = (
    f"It listens on {ADDRESS} only: nobody else on the network can reach your data, which stay in "
    "memory and are gone when you stop the page with Ctrl+C."
)

_HOSTS = (ADDRESS, "localhost")
_UNTIL_IT_ANSWERS = 1.0  # seconds
_LARGEST_UPLOAD = 4_000  # MB
_OPTIONS = {
    "server.address": ADDRESS,
    "server.fileWatcherType": "none",
    "server.maxUploadSize": _LARGEST_UPLOAD,
    "server.maxMessageSize": _LARGEST_UPLOAD,
    "server.headless": True,
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


def serve(port: int, *, browser: bool) -> None:
    """Run the page in this process until it is stopped; it leaves nothing behind."""
    import streamlit
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    page = Path(__file__).with_name("main_page.py")
    only_here = Middleware(TrustedHostMiddleware, allowed_hosts=_HOSTS, www_redirect=False)
    sys.argv = [str(page)]  # beside which Streamlit looks for settings
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    if browser:
        opened = Timer(_UNTIL_IT_ANSWERS, webbrowser.open, [address(port)])
        opened.daemon = True
        opened.start()
    with scratch_of_this_server(), suppress(KeyboardInterrupt):
        streamlit.App(page, middleware=[only_here]).run(config=options(port))
