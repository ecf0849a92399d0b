"""CSV files of any dialect and encoding, whole and damaged, by both paths that read them."""

import csv
import io
from collections.abc import Callable
from pathlib import Path
from random import Random

from fuzz import values
from fuzz.checks import Broken, check_error
from fuzz.damage import damaged
from microveil import Confidential, MicroveilError, Plan, Source, protect, protect_file
from microveil.errors import noted
from microveil.formats import read_table

_AMOUNT = "amount"


def run(random: Random, folder: Path) -> str:
    """Protect a CSV file in memory and a column at a time: the same, and kept text as it was."""
    path = folder / "people.csv"
    rows, source, content = _make(random, path)
    whole = random.random() < 0.5
    path.write_bytes(content if whole else damaged(random, content))
    secrets = {cell for row in rows[1:] for cell in row if len(cell) > 12}
    with noted():
        kept = _names(source)
        plan = Plan.published(
            epsilon=1,
            k=3,
            missing="keep",
            attributes=dict.fromkeys(kept, "kept") | {_AMOUNT: Confidential(lower=-1e7, upper=1e7)},
        )
        in_memory = _protected(source, plan, folder / "memory.csv", secrets, large=False)
        large = _protected(source, plan, folder / "large.csv", secrets, large=True)
    if (in_memory is None) != (large is None):
        raise Broken("engines", "one way of reading refuses what the other takes")
    if in_memory is None or large is None:
        return "refused"
    if in_memory.read_bytes() != large.read_bytes():
        raise Broken("engines", "the two ways of reading release something else")
    if whole:
        _check_kept(rows, in_memory, source)
    return "released"


def _names(source: Source) -> list[str]:
    """Return the names of the other columns, as far as the file can be read."""
    try:
        return [name for name in read_table(source).columns if name != _AMOUNT]
    except MicroveilError:
        return []


def _protected(
    source: Source, plan: Plan, output: Path, secrets: set[str], *, large: bool
) -> Path | None:
    try:
        if large:
            protect_file(source, plan, output, seed=1, keep_order=True)
        else:
            protect(source, plan, seed=1).write(output, keep_order=True)
    except MicroveilError as error:
        check_error(error, secrets)
        return None
    return output


def _check_kept(rows: list[list[str]], output: Path, source: Source) -> None:
    """Check that every kept cell is written as it was read."""
    dialect = {"delimiter": source.delimiter or ","}
    with output.open(encoding="utf-8", newline="") as file:
        released = list(csv.reader(file, **dialect, strict=True))  # type: ignore[arg-type]
    if len(released) != len(rows):
        raise Broken("rows", f"{len(rows) - 1} records became {len(released) - 1}")
    place = rows[0].index(_AMOUNT)
    for old, new in zip(rows, released, strict=True):
        if [c for i, c in enumerate(old) if i != place] != [
            c for i, c in enumerate(new) if i != place
        ]:
            raise Broken("changed value", "a kept cell of a CSV file")


def _make(random: Random, path: Path) -> tuple[list[list[str]], Source, bytes]:
    """Write rows of text as a CSV file of some dialect, and say how it is to be read."""
    rows = _rows(random)
    delimiter = random.choice([",", ";", "\t", "|"])
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=delimiter,
        quoting=random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
        lineterminator=random.choice(["\n", "\r\n"]),
    )
    writer.writerows(rows)
    content = text.getvalue()
    if len(rows[0]) > 1:
        content += random.choice(["", "", "\n", "\n\n\r\n"])
    encoding = random.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16"])
    given = None if random.random() < 0.8 else encoding
    return rows, Source(path, delimiter=delimiter, encoding=given), content.encode(encoding)


def _rows(random: Random) -> list[list[str]]:
    records, columns = random.randint(4, 40), random.randint(0, 4)
    names = values.names(random, columns)
    place = random.randint(0, columns)
    cells = [_column(random, records) for _ in range(columns)]
    amount = [
        str(random.choice([random.randint(0, 99), round(random.random(), 3)]))
        for _ in range(records)
    ]
    cells.insert(place, amount)
    names.insert(place, _AMOUNT)
    return [names, *map(list, zip(*cells, strict=True))]


def _column(random: Random, records: int) -> list[str]:
    """Make cells that look like numbers, dates, flags, codes or text, or like several."""
    kinds: list[Callable[[], str]] = [
        lambda: str(random.randint(-50, 50)), lambda: f"{random.random():.3f}",
        lambda: str(values.dates(random, 1).item()), lambda: random.choice(["true", "false"]),
        lambda: f"{random.randint(0, 9999):05}", lambda: random.choice(values.TEXTS),
        lambda: f"person-{random.getrandbits(40)}", lambda: "",
        lambda: repr(random.random() * 1e20), lambda: str(random.getrandbits(70)),
        lambda: str(values.moments(random, 1).item()),
    ]  # fmt: skip
    mixed = random.sample(kinds, random.choice([1, 1, 1, 2, 3]))
    cells = [random.choice(mixed)() for _ in range(records)]
    return [cell.replace("\0", "") for cell in cells]
