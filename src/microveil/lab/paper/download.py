"""Fetch a small public file, with progress, and never half of it."""

import http.client
import urllib.request

from microveil.errors import FileError
from microveil.types import Progress

_CHUNK = 2**16
_LARGEST_FILE = 2**26
_TIMEOUT_SECONDS = 30.0


def download_file(url: str, *, progress: Progress | None = None) -> bytes:
    """Return what is at an http or https address.

    Progress is in bytes, out of 0 where the server does not say how many there are.

    Raises
    ------
    FileError
        With the address and why it could not be fetched whole.
    """
    if not url.startswith(("http://", "https://")):
        raise FileError(f"{url}: expected an http or https address")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310
            content = _read(response, url, progress)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise FileError(f"{url}: cannot be downloaded ({_reason(error)})") from None
    return content


def _read(response: http.client.HTTPResponse, url: str, progress: Progress | None) -> bytes:
    expected = int(response.headers.get("Content-Length") or 0)
    content = bytearray()
    while chunk := response.read(_CHUNK):
        content += chunk
        if len(content) > _LARGEST_FILE:
            raise ValueError(f"more than {_LARGEST_FILE // 2**20} MB")
        if progress:
            progress(f"downloading {url}", len(content), expected)
    if expected and len(content) != expected:
        raise ValueError(f"{len(content):,} of {expected:,} bytes arrived")
    return bytes(content)


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", error)) or type(error).__name__
