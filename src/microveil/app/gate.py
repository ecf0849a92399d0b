"""Who may use the page: whoever opened the address that was printed, from the page itself."""

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEALTH = "/_stcore/health"  # says only that the page runs
_REFUSED = "Open the address that microveil app printed; it works once, in one browser.\n"
_FOREIGN = "This request comes from another page.\n"
_UNFRAMED = {"X-Frame-Options": "SAMEORIGIN", "Content-Security-Policy": "frame-ancestors 'self'"}


class Gate:
    """Lets a browser in that knows the token of the address, once, and knows it again by a cookie.

    Other users of the machine can connect to the port, but know neither.
    """

    def __init__(self, app: ASGIApp, token: str, origins: tuple[str, ...], cookie: str) -> None:
        self._app, self._origins, self._cookie = app, origins, cookie
        self._token: str | None = token
        self._session = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may pass, and answer the rest; no other page shows an answer in a frame."""

        async def send_unframed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_UNFRAMED)
            await send(message)

        if scope["type"] not in ("http", "websocket") or self._may_pass(scope):
            await self._app(scope, receive, send_unframed)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # which servers answer with 403
        else:
            await self._answer(scope)(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        if not self._is_own(scope):
            return False
        return self._is_known(scope) or (scope["type"] == "http" and scope["path"] == _HEALTH)

    def _is_own(self, scope: Scope) -> bool:
        """Whether it comes from the page or opens it, as far as the browser says."""
        if not all(origin in self._origins for origin in _headers(scope, "origin")):
            return False
        sites = {*_headers(scope, "sec-fetch-site")}  # of a page on another port: same-site
        return sites <= {"same-origin", "none"} or _headers(scope, "sec-fetch-dest") == ["document"]

    def _is_known(self, scope: Scope) -> bool:
        cookies: SimpleCookie = SimpleCookie()
        for line in _headers(scope, "cookie"):
            try:
                cookies.load(line)
            except CookieError:
                return False
        given = cookies.get(self._cookie)
        return given is not None and _same(given.value, self._session)

    def _answer(self, scope: Scope) -> Any:  # noqa: ANN401 - Starlette's own
        if not self._is_own(scope):
            return PlainTextResponse(_FOREIGN, 403)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if self._token is None or scope["method"] != "GET" or not _same(given, self._token):
            return PlainTextResponse(_REFUSED, 403)
        self._token = None
        entered = RedirectResponse("/", 303, {"Referrer-Policy": "no-referrer"})
        entered.set_cookie(self._cookie, self._session, httponly=True, samesite="strict")
        return entered


def _headers(scope: Scope, name: str) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name.encode()]


def _same(one: str, other: str) -> bool:
    return secrets.compare_digest(one.encode(), other.encode())
