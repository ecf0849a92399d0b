"""The key file of pseudonyms: private, since it tells whose pseudonym is whose."""

import hmac
import os
import re
import secrets
import sys
from base64 import b32encode
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from microveil.errors import FileError, PlanError
from microveil.formats import check_regular
from microveil.formats.atomic import why
from microveil.plan.plan import Plan

_CONTENT = re.compile(rb"microveil key 1\n([0-9a-f]{64})\n")
_BYTES = 16  # of a pseudonym: two people of ten billion share one with a chance below 10^-18


@dataclass(frozen=True)
class Key:
    """The secret that pseudonyms and shifts of dates are made with.

    Guarantee
    ---------
    Both are HMAC-SHA-256 of a value as text, with 256 bits from the operating system as the key:
    whoever does not have it can neither compute the pseudonym of a value nor try values out.
    """

    secret: bytes = field(repr=False)
    path: Path | None = None

    def pseudonym(self, text: str, thread: str = "") -> str:
        """Return the pseudonym of a value, which begins with a letter and so is never a number.

        In another `thread` it is another.
        """
        digest = self.digest(f"pseudonym {thread}".rstrip(), text)[:_BYTES]
        return f"p{b32encode(digest).decode().rstrip('=').lower()}"

    def shift(self, text: str, days: int) -> int:
        """Return the days by which a person's dates move, from -days to days, all as likely."""
        number = int.from_bytes(self.digest(f"shift {days}", text))
        return number % (2 * days + 1) - days

    def check_apart(self, protected: object) -> None:
        """Refuse a key in the directory of a release: it would be handed over with it."""
        place = Path(str(protected).removeprefix("file://").removeprefix("file:"))
        if self.path is not None and place.parent.resolve() == self.path.parent:
            raise FileError(
                f"key file {self.path}: it is in the directory of the release and could be shared "
                "with it; keep it in another directory, or write the release elsewhere"
            )

    def digest(self, use: str, text: str) -> bytes:
        """Return 32 bytes of a text that nobody can make without the key, others for each use."""
        return hmac.digest(self.secret, f"{use}\0{text}".encode(), sha256)

    @classmethod
    def throwaway(cls) -> "Key":
        """Return a key that is kept nowhere, for experiments."""
        return cls(secrets.token_bytes(32))

    @classmethod
    def make(cls, path: str | Path) -> "Key":
        """Write a new key to a file that only its owner can read; never replace one."""
        path = Path(path)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
                file.write(f"microveil key 1\n{secrets.token_hex(32)}\n")
        except FileExistsError:
            raise FileError(
                f"key file {path}: the file exists, and a key is never replaced, because its "
                "pseudonyms could not be made again; choose another path"
            ) from None
        except OSError as error:
            raise FileError(f"key file {path}: cannot be written: {why(error)}") from None
        return cls.read(path)

    @classmethod
    def read(cls, path: str | Path) -> "Key":
        """Read a key from a file that nobody else may read."""
        path = Path(path)
        try:
            check_regular(path)
            found = _CONTENT.fullmatch(path.read_bytes())
            open_to_others = path.stat().st_mode & 0o077
        except FileNotFoundError:
            raise FileError(
                f"key file {path}: no such file; create one with: microveil key {path}"
            ) from None
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"key file {path}: cannot be read: {why(error)}") from None
        if found is None:
            raise FileError(f"key file {path}: damaged, or not a key file; restore it from a copy")
        if open_to_others and sys.platform != "win32":
            raise FileError(
                f"key file {path}: other users can read it; restrict it with: chmod 600 {path}"
            )
        return cls(bytes.fromhex(found[1].decode()), path.resolve())


def key_of(plan: Plan, path: str | Path | None, seed: int | None) -> Key:
    """Read the key that a plan needs; seeded releases without one have a key that is thrown away.

    A plan without pseudonyms takes no key, and uses none.
    """
    names = plan.names("pseudonym")
    if path is not None and not names:
        raise PlanError(
            'the plan has no attribute with role = "pseudonym"; remove the key file', setting="key"
        )
    if path is not None:
        return Key.read(path)
    if names and seed is None:
        raise PlanError(
            "pseudonyms need a key file, got none; pass one with key= (--key-file people.key); "
            "create it once with: microveil key people.key",
            attribute=names[0],
            setting="key",
        )
    return Key.throwaway()
