"""The paper's two data sets: found or downloaded, and compared with the public originals."""

import csv
import io
import math
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.errors import FileError
from microveil.formats import moved_into_place
from microveil.lab.paper.download import download_file
from microveil.types import Progress

ENVIRONMENT = "MICROVEIL_DATA"
_TOLERANCE = 1e-6  # copies of Wine Quality differ in how they write 10.0333333333333


@dataclass(frozen=True)
class DataSet:
    """What is known of a data set without having it.

    Attributes
    ----------
    file_names
        What the file may be called; a downloaded file gets the first of these names.
    home
        Where people find it.
    urls
        Addresses of the file, tried in turn.
    columns
        The file's columns in order, with their totals.
    attributes
        The columns the paper masks.
    class_column, class_above
        A record is of the second class if its value in this column is above this number.
    class_names
        Names of both classes, as in the paper.
    second_class
        Records of the second class.
    """

    name: str
    file_names: tuple[str, ...]
    home: str
    urls: tuple[str, ...]
    records: int
    columns: Mapping[str, float]
    attributes: tuple[str, ...]
    class_column: str
    class_above: float
    class_names: tuple[str, str]
    second_class: int


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A data set at hand: the attributes the paper masks, and every record's class."""

    dataset: DataSet
    attributes: pl.DataFrame
    second_class: NDArray[np.bool_]


CENSUS = DataSet(
    name="Census",
    file_names=("census.csv", "CASCrefmicrodata.csv", "census.zip"),
    home="https://research.cbs.nl/casc/",
    # The CASC site has no address that stays for the file itself, so this is a copy at a commit.
    urls=(
        "https://raw.githubusercontent.com/francasino/SDC_datasets/"
        "b988a009692cc26b71f789550c63869b85a83b5a/CASCrefmicrodata.csv",
    ),
    records=1_080,
    columns={
        "AFNLWGT": 211_722_997, "AGI": 60_720_579, "EMCONTRB": 3_426_986, "FEDTAX": 8_148_229,
        "PTOTVAL": 48_849_306, "STATETAX": 2_804_959, "TAXINC": 42_889_989, "POTHVAL": 5_575_208,
        "INTVAL": 1_535_124, "PEARNVAL": 43_274_098, "FICA": 3_199_657, "WSALVAL": 42_685_245,
        "ERNVAL": 41_520_121,
    },
    attributes=(
        "AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "STATETAX", "TAXINC", "POTHVAL", "INTVAL", "FICA",
    ),
    class_column="ERNVAL",
    class_above=30_000,
    class_names=("≤30K", ">30K"),
    second_class=644,
)  # fmt: skip

_WINE_COLUMNS = {
    "fixed acidity": 33_574.75, "volatile acidity": 1_362.825, "citric acid": 1_636.87,
    "residual sugar": 31_305.15, "chlorides": 224.193, "free sulfur dioxide": 172_939,
    "total sulfur dioxide": 677_690.5, "density": 4_868.74609, "pH": 15_616.13,
    "sulphates": 2_399.27, "alcohol": 51_498.88, "quality": 28_790,
}  # fmt: skip

WINE = DataSet(
    name="Wine Quality",
    file_names=("winequality-white.csv", "wine-quality.zip"),
    home="https://archive.ics.uci.edu/dataset/186/wine+quality",
    urls=(
        "https://archive.ics.uci.edu/ml/machine-learning-databases/wine-quality/"
        "winequality-white.csv",
        "https://archive.ics.uci.edu/static/public/186/wine+quality.zip",
    ),
    records=4_898,
    columns=_WINE_COLUMNS,
    attributes=tuple(_WINE_COLUMNS)[:-1],
    class_column="quality",
    class_above=6,
    class_names=("Not Excellent", "Excellent"),
    second_class=1_060,
)

DATA_SETS = {dataset.name: dataset for dataset in (CENSUS, WINE)}


def load_data_set(
    dataset: DataSet,
    data_dir: Path | None = None,
    *,
    urls: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> PaperTable:
    """Load a data set from `data_dir`, MICROVEIL_DATA or the cache, or download it into the cache.

    Parameters
    ----------
    dataset
        `CENSUS` or `WINE`.
    data_dir
        Where to look first.
    urls
        Addresses to download from, instead of the data set's own.
    progress
        Called while downloading.

    Raises
    ------
    FileError
        If it cannot be found or downloaded (the message says where to put it), or if it is not the
        public file.
    """
    if data_dir is not None and not data_dir.is_dir():
        raise FileError(f"{data_dir}: no such directory; give the directory of the data sets")
    places = _places(data_dir)
    path = _find(dataset, places)
    if path is None:
        addresses = dataset.urls if urls is None else urls
        path = _download(dataset, addresses, places, progress)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    return _read(dataset, content, str(path))


def cache_directory() -> Path:
    """Where downloaded data sets are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "microveil"


def make_directory(path: Path) -> None:
    """Make a directory and those above it, unless it is there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot create this directory: {error.strerror}") from None


def _places(data_dir: Path | None) -> list[Path]:
    configured = os.environ.get(ENVIRONMENT)
    places = [data_dir, Path(configured) if configured else None, cache_directory()]
    return [place for place in places if place is not None]


def _find(dataset: DataSet, places: Sequence[Path]) -> Path | None:
    candidates = (place / name for place in places for name in dataset.file_names)
    return next((path for path in candidates if path.is_file()), None)


def _download(
    dataset: DataSet, urls: Sequence[str], places: Sequence[Path], progress: Progress | None
) -> Path:
    """Download the data set into the cache; what is not the public file never gets there."""
    failures = []
    for url in urls:
        try:
            content = download_file(url, progress=progress)
            _read(dataset, content, url)
        except FileError as failure:
            failures.append(str(failure))
            continue
        path = cache_directory() / dataset.file_names[0]
        make_directory(path.parent)
        with moved_into_place([path]) as [temporary]:
            temporary.write_text(_text(dataset, content, url), encoding="utf-8")
        return path
    raise FileError(
        f"the {dataset.name} data set is not in {', '.join(map(str, places))}, and "
        f"{'; '.join(failures) or 'there is no address to download it from'}; download it from "
        f"{dataset.home} and save it as {dataset.file_names[0]} in {places[0]}, or in the "
        f"directory named by the environment variable {ENVIRONMENT}"
    )


def _read(dataset: DataSet, content: bytes, source: str) -> PaperTable:
    names, values = _parse(dataset, _text(dataset, content, source), source)
    _check(dataset, names, values, source)
    frame = pl.DataFrame(values, schema=names, orient="row")
    second_class = frame[dataset.class_column].to_numpy() > dataset.class_above
    if np.count_nonzero(second_class) != dataset.second_class:
        raise _not_public(dataset, dataset.class_column, source)
    return PaperTable(dataset, frame.select(dataset.attributes), second_class)


def _text(dataset: DataSet, content: bytes, source: str) -> str:
    """Return the text of a file, or of the right file in an archive."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [name for name in archive.namelist() if not name.endswith("/")]
            known = [name.lower() for name in dataset.file_names]
            named = [name for name in members if Path(name).name.lower() in known]
            if len(named or members) != 1:
                raise FileError(f"{source}: expected {dataset.file_names[0]} in the archive")
            content = archive.read((named or members)[0])
    return content.decode("utf-8-sig", errors="replace")


def _parse(dataset: DataSet, text: str, source: str) -> tuple[list[str], NDArray[np.float64]]:
    """Read numbers separated by commas, semicolons, tabs or spaces, with or without a header."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise FileError(f"{source}: the file is empty")
    separator = next((mark for mark in ";,\t" if mark in lines[0]), " ")
    rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    names = list(dataset.columns)
    if not _is_number(rows[0][0]):
        names = [name.strip() for name in rows.pop(0)]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names) or not all(map(_is_number, row)):
            raise FileError(
                f"{source}: expected {len(names)} numbers in each record, "
                f"found something else in record {number:,}"
            )
    return names, np.array(rows, dtype=np.float64).reshape(len(rows), len(names))


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _check(dataset: DataSet, names: list[str], values: NDArray[np.float64], source: str) -> None:
    if sorted(names) != sorted(dataset.columns):
        expected = ", ".join(dataset.columns)
        raise FileError(f"{source}: not the {dataset.name} data set; expected columns {expected}")
    if len(values) != dataset.records:
        raise FileError(
            f"{source}: the {dataset.name} data set has {dataset.records:,} records, "
            f"found {len(values):,}"
        )
    for name, total in zip(names, values.sum(axis=0), strict=True):
        if not math.isclose(total, dataset.columns[name], rel_tol=_TOLERANCE):
            raise _not_public(dataset, name, source)


def _not_public(dataset: DataSet, column: str, source: str) -> FileError:
    return FileError(
        f"{source}: column {column!r} differs from the public {dataset.name} data set; "
        f"download the file from {dataset.home}"
    )
