"""Files that this machine and the server of Spark Connect both reach, by Arrow's interface.

A client of Spark Connect has no Java through which to ask Spark for its files.
"""

import atexit
import re
import secrets
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from microveil.errors import FileError

_NOTHING = fs.FileType.NotFound
_HERE = "file://"
_SCHEMES = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""What Hadoop calls them, and what Arrow does."""


class SharedFiles:
    """The file system that holds a path; one that names none is on this machine."""

    def __init__(self, path: str) -> None:
        address = _address(path)
        self._local = address.startswith(_HERE)
        try:
            self._files, inside = (
                (fs.LocalFileSystem(), "")
                if self._local
                else fs.FileSystem.from_uri(quote(address, safe=":/@"))
            )
        except (pa.ArrowException, OSError):
            raise FileError(
                f"{path}: not reachable from this machine, which Spark Connect requires; choose a "
                "directory on a file system that pyarrow.fs can open here"
            ) from None
        self._beside = _HERE if self._local else _directory(address)
        self._inside = "" if self._local else _directory(inside)

    def whole(self, path: str) -> str:
        """Return a path with its file system and all its directories."""
        return _address(path)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        return bool(self._kind(path) != _NOTHING)

    def _kind(self, path: str) -> fs.FileType:
        return self._files.get_file_info(self._at(path)).type

    def _at(self, path: str) -> str:
        """Return a path, beside the first one or below it, as the file system knows it."""
        return self._inside + _address(path).removeprefix(self._beside)

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with all it holds, if it is there."""
        kind = self._kind(path)
        if kind == fs.FileType.Directory:
            self._files.delete_dir(self._at(path))
        elif kind != _NOTHING:
            self._files.delete_file(self._at(path))

    def move(self, source: str, target: str) -> None:
        """Rename a file or directory; where stores have no directories, copy and remove it."""
        try:
            if isinstance(self._files, fs.LocalFileSystem | fs.HadoopFileSystem):
                self._files.move(self._at(source), self._at(target))
            else:
                self._copy(self._at(source), self._at(target))
                self.delete(source)
        except OSError:
            raise FileError(f"{target}: cannot be written") from None

    def _copy(self, source: str, target: str) -> None:
        if self._files.get_file_info(source).type == fs.FileType.Directory:
            self._files.create_dir(target)
        both = {"source_filesystem": self._files, "destination_filesystem": self._files}
        fs.copy_files(source, target, **both)

    def on_this_machine(self, path: str) -> Path | None:
        """Return a path as Python knows it; None if it is on another file system."""
        return Path(self._at(path)) if self._local else None

    def make_new(self, path: str) -> bool:
        """Make a file, unless there is one.

        Arrow cannot ask for both at once: of two who see none at the same moment, the one whose
        word is found in it has made it.
        """
        if self.exists(path):
            return False
        word = secrets.token_hex(8)
        self.write_text(path, word)
        with self._files.open_input_stream(self._at(path)) as stream:
            return bool(stream.read().decode() == word)

    def write_text(self, path: str, text: str) -> None:
        """Write a file."""
        if self._local:
            Path(self._at(path)).parent.mkdir(parents=True, exist_ok=True)
        with self._files.open_output_stream(self._at(path)) as stream:
            stream.write(text.encode())

    def make_private(self, path: str) -> None:
        """Make a directory that goes when Python ends; others cannot read one of this machine."""
        here = self.on_this_machine(path)
        if here is None:
            self._files.create_dir(self._at(path))
        else:
            here.mkdir(mode=0o700, parents=True, exist_ok=True)
            here.chmod(0o700)
        atexit.register(self.delete, path)


def _address(path: str) -> str:
    """Return an address in Arrow's words: Hadoop also writes file:/tmp, and has other schemes."""
    found = re.fullmatch(r"([A-Za-z][\w+.-]*):(/.*)", path)
    if found is None:
        return f"{_HERE}{Path(path).absolute().as_posix()}"
    scheme, rest = found.groups()
    if scheme == "file":
        return f"{_HERE}/{rest.lstrip('/')}"
    return f"{_SCHEMES.get(scheme, scheme)}:{rest}"


def _directory(address: str) -> str:
    return address.rstrip("/").rpartition("/")[0]
