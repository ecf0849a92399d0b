import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

import pytest

from microveil.errors import FileError
from microveil.lab.paper.datasets import DataSet, load_data_set
from microveil.lab.paper.download import download_file

PAGE = b"wage,tax rate,class\n1,2,0\n2.5,4,1\n4,0,2\n"
LARGE = b"x" * 200_000


class Site(NamedTuple):
    address: str
    requests: list[str]


class Handler(BaseHTTPRequestHandler):
    pages = {"/tiny.csv": PAGE, "/large": LARGE, "/wrong.csv": PAGE.replace(b"2.5", b"2.6")}  # noqa: RUF012
    requests: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if self.path not in (*self.pages, "/cut-short"):
            self.send_error(404)
            return
        content = self.pages.get(self.path, PAGE)
        self.send_response(200)
        missing = 10 if self.path == "/cut-short" else 0
        self.send_header("Content-Length", str(len(content) + missing))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Keep quiet."""


@pytest.fixture
def site() -> Iterator[Site]:
    Handler.requests.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Site(f"http://127.0.0.1:{server.server_port}", Handler.requests)
    server.shutdown()
    thread.join()
    server.server_close()


def test_downloads_all_of_it_and_says_how_far(site: Site) -> None:
    seen: list[tuple[int, int]] = []
    content = download_file(
        f"{site.address}/large", progress=lambda _, done, of: seen.append((done, of))
    )
    assert content == LARGE
    assert seen[-1] == (200_000, 200_000)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len(seen) > 1


@pytest.mark.parametrize(
    ("page", "reason"), [("absent", "Not Found"), ("cut-short", "40 of 50 bytes")]
)
def test_half_a_file_or_none_is_an_error(site: Site, page: str, reason: str) -> None:
    with pytest.raises(FileError, match=reason):
        download_file(f"{site.address}/{page}")


def test_an_address_nobody_answers_at_is_an_error() -> None:
    with pytest.raises(FileError, match="cannot be downloaded"):
        download_file("http://127.0.0.1:9/tiny.csv")


def test_only_the_web_is_read(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="expected an http or https address"):
        download_file((tmp_path / "tiny.csv").as_uri())


def test_a_data_set_is_downloaded_once(tiny: DataSet, site: Site, empty_cache: Path) -> None:
    urls = [f"{site.address}/tiny.csv"]
    said: list[str] = []
    first = load_data_set(tiny, urls=urls, progress=lambda what, *_: said.append(what))
    second = load_data_set(tiny, urls=urls)
    assert first.attributes.equals(second.attributes)
    assert site.requests == ["/tiny.csv"]
    assert said == [f"downloading {urls[0]}"]
    assert [path.name for path in empty_cache.iterdir()] == ["tiny.csv"]


def test_the_next_address_is_tried(tiny: DataSet, site: Site, empty_cache: Path) -> None:
    pages = ["absent", "wrong.csv", "tiny.csv"]
    assert (
        load_data_set(tiny, urls=[f"{site.address}/{page}" for page in pages]).attributes.height
        == 3
    )
    assert site.requests == [f"/{page}" for page in pages]
    assert (empty_cache / "tiny.csv").read_bytes() == PAGE


def test_what_is_not_the_public_file_is_not_kept(
    tiny: DataSet, site: Site, empty_cache: Path
) -> None:
    with pytest.raises(FileError, match=r"wrong\.csv: column 'wage' .* save it as tiny\.csv in"):
        load_data_set(tiny, urls=[f"{site.address}/wrong.csv"])
    assert not empty_cache.exists()
