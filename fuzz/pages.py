"""The page: requests of whoever can reach its port, and messages that no browser would send."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed

from fuzz import values
from fuzz.checks import Broken
from fuzz.damage import damaged
from fuzz.page_server import Session, session
from microveil.app.gate import Gate

_ORIGIN, _COOKIE = "http://127.0.0.1:8501", "microveil-8501"
_PATHS = (
    "/",
    "/_stcore/stream",
    "/_stcore/health",
    "/media/x",
    "//_stcore/health",
    "/_stcore/health/",
)
_HEADERS = ("origin", "cookie", "sec-fetch-site", "sec-fetch-dest", "host")
_TEXTS = (
    "", "null", "none", "same-origin", "same-site", "cross-site", "document", "iframe", _ORIGIN,
    "http://127.0.0.1:9", "http://evil.example", "\xff", "=", ";", f"{_COOKIE}=", "a" * 5000, '"',
    f"{_COOKIE}=wrong", f'{_COOKIE}="\\101"', "\r\n", "x=1; y=2", "(*)=1",
)  # fmt: skip
_NUMBERS = (-1, 0, 1, 2**31, -(2**53), 10**15)
_REALS = (float("nan"), float("inf"), -1.0, 1e308, 0.5)
_NAMES = ("people.csv", "../../people.csv", "a\0b.csv", "x" * 5000 + ".csv", "p.xlsx", ".", "")


def run(random: Random, folder: Path) -> str:
    """Ask the gate, mostly; now and then speak to a page that runs."""
    if random.random() < 0.9:
        return _knock(random)
    return _speak(random, folder)


def _knock(random: Random) -> str:
    """Send requests to the gate: none passes without the cookie or from another page."""
    passed: list[dict[str, Any]] = []

    async def app(scope: dict[str, Any], *_: object) -> None:
        passed.append(scope)

    async def ignore(*_: object) -> None:
        return None

    gate = Gate(app, "a-token", (_ORIGIN,), _COOKIE)  # type: ignore[arg-type]
    right = f"{_COOKIE}={gate._session}"
    for _ in range(20):
        headers = [
            (name.encode(), random.choice([*_TEXTS, right, right, right]).encode("latin-1"))
            for name in random.choices(_HEADERS, k=random.randint(0, 5))
        ]
        token = random.choice([b"token=", b"token=wrong", b"token=\xff", b"token[]=a-token", b"%"])
        scope = {
            "type": random.choice(["http", "websocket"]), "path": random.choice(_PATHS),
            "method": random.choice(["GET", "POST", "HEAD"]), "query_string": token,
            "headers": headers,
        }  # fmt: skip
        before = len(passed)
        asyncio.run(gate(scope, ignore, ignore))  # type: ignore[arg-type]
        if len(passed) > before and not _may(scope, right):
            raise Broken("page", "a stranger passed")
    return "asked"


def _may(scope: dict[str, Any], right: str) -> bool:
    told = [(name.decode(), value.decode("latin-1")) for name, value in scope["headers"]]
    if any(name == "origin" and value != _ORIGIN for name, value in told):
        return False
    sites = [value for name, value in told if name == "sec-fetch-site"]
    opens = [value for name, value in told if name == "sec-fetch-dest"] == ["document"]
    if not opens and any(site not in ("same-origin", "none") for site in sites):
        return False
    health = scope["type"] == "http" and scope["path"] == "/_stcore/health"
    return health or any(name == "cookie" and right in value for name, value in told)


def _speak(random: Random, folder: Path) -> str:
    """Send values to controls as no browser would: no other file is read, and others are served."""
    canary = f"canary-{random.getrandbits(60):x}"
    (folder / "secret.key").write_text(canary, encoding="utf-8")
    with session(folder.parent) as opened:
        try:
            said = opened.send(_rerun({}))
            said += _upload(random, opened, said, folder)
            for _ in range(random.randint(1, 3)):
                said += opened.send(_rerun(_hostile(random, said, folder / "secret.key")))
            _babble(random, opened)
        except ConnectionClosed:
            pass
        if any(canary.encode() in message.SerializeToString() for message in said):
            raise Broken("page", "a file was read that the owner did not name")
    with session(folder.parent) as another:
        kinds = {kind for _, kind in _controls(another.send(_rerun({})))}
        if "file_uploader" not in kinds or not another.page.answers:
            raise Broken("page", "the next session does not begin")
    return "spoken to"


def _rerun(states: dict[str, tuple[str, Any]]) -> BackMsg:
    message = BackMsg()
    message.rerun_script.query_string = ""
    for control, (kind, value) in states.items():
        state = message.rerun_script.widget_states.widgets.add()
        state.id = control
        if isinstance(value, list):
            getattr(state, kind).data.extend(value)
        else:
            setattr(state, kind, value)
    return message


def _upload(
    random: Random, opened: Session, seen: list[ForwardMsg], folder: Path
) -> list[ForwardMsg]:
    """Upload a table, perhaps a damaged one; return what the page then says."""
    control = next((c for c in _controls(seen) if "file_uploader" in c[1]), None)
    if control is None:
        raise Broken("page", "there is nothing to upload to")
    table = pl.DataFrame({
        "age": [random.randint(18, 90) for _ in range(60)],
        "some": values.column(random, 60, values.NUMERIC),
    })  # fmt: skip
    content = table.write_csv().encode()
    content = damaged(random, content) if random.random() < 0.3 else content
    (folder / "uploaded.csv").write_bytes(content)
    number, place = opened.ask_where(random.choice(_NAMES))
    if opened.page.upload(place, content) >= 500:
        raise Broken("page", "an upload fails")
    message = BackMsg()
    state = message.rerun_script.widget_states.widgets.add()
    state.id = control[0]
    file = state.file_uploader_state_value.uploaded_file_info.add()
    file.file_id, file.name, file.size = number, random.choice(_NAMES), len(content)
    file.file_urls.file_id, file.file_urls.upload_url = number, place
    return opened.send(message)


def _controls(messages: list[ForwardMsg]) -> list[tuple[str, str]]:
    """Return the number and the kind of every control that was shown."""
    elements = [m.delta.new_element for m in messages if m.WhichOneof("type") == "delta"]
    kinds = [(element, element.WhichOneof("type")) for element in elements]
    found = [(getattr(getattr(e, kind), "id", ""), kind) for e, kind in kinds if kind]
    return [(control, kind) for control, kind in found if control]


def _hostile(
    random: Random, messages: list[ForwardMsg], secret: Path
) -> dict[str, tuple[str, Any]]:
    """Give some controls values of any kind; press some buttons."""
    states: dict[str, tuple[str, Any]] = {}
    for control, kind in dict(_controls(messages)).items():
        texts = [str(secret), "/etc/passwd", "none", "x" * 3000, "\0", "<b>"]
        wrong: list[tuple[str, Any]] = [
            ("int_value", random.choice(_NUMBERS)), ("double_value", random.choice(_REALS)),
            ("string_value", random.choice(texts)), ("bool_value", True),
            ("json_value", random.choice(["{", "[]", '{"edited_rows": {"0": {"role": "?"}}}'])),
            ("string_array_value", texts), ("double_array_value", list(_REALS)),
        ]  # fmt: skip
        if kind == "button" and random.random() < 0.3:
            states[control] = ("trigger_value", True)
        elif random.random() < 0.2:
            states[control] = random.choice(wrong)
    return states


def _babble(random: Random, opened: Session) -> None:
    opened.socket.send(random.randbytes(random.choice([0, 1, 50, 5000])))
    opened.socket.send(damaged(random, _rerun({"x": ("int_value", 1)}).SerializeToString()))
