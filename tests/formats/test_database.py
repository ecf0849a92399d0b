"""Queries against a real PostgreSQL server, started here and gone afterwards."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from pathlib import Path
from urllib.parse import quote

import adbc_driver_postgresql.dbapi as adbc
import polars as pl
import pytest

from microveil import Confidential, DataError, FileError, MicroveilError, Plan, Source, protect
from microveil.formats import load_table, read_table

Run = Callable[[str], tuple[int, str, str]]
pytestmark = pytest.mark.xdist_group("postgresql")  # one server
PASSWORD = "s3cr:t/w@rd%#"  # noqa: S105 - of a server that lives as long as the tests
PIECES = ("s3cr", "w@rd", "rd%", quote(PASSWORD, safe=""))
VALUE = "918273"  # stands for a data value: no message may contain it


def programs() -> Path:
    """The directory with initdb and pg_ctl."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for place in places:
        if (place / "initdb").exists():
            return place
    pytest.skip("no PostgreSQL server on this machine: apt-get install postgresql")


def unprivileged() -> str | None:
    """Whom the server runs as: it refuses to run as root."""
    if os.getuid() != 0:
        return None
    import pwd

    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Start a server; give the address of its database."""
    binaries, user = programs(), unprivileged()
    home = Path(tempfile.mkdtemp(prefix="pg"))
    (home / "password").write_text(PASSWORD, encoding="utf-8")
    if user:
        shutil.chown(home, user)
        shutil.chown(home / "password", user)
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(program: str, *arguments: str) -> None:
        subprocess.run(  # noqa: S603
            [binaries / program, "-D", home / "data", *arguments],
            cwd=home,
            user=user,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    options = f"-p {port} -F -c listen_addresses=127.0.0.1 -c unix_socket_directories={home}"
    try:
        call("initdb", "-U", "steward", "-A", "scram-sha-256", "--pwfile", str(home / "password"),
             "-E", "UTF8", "--no-sync")  # fmt: skip
        call("pg_ctl", "-w", "-o", options, "-l", str(home / "log"), "start")
        yield f"postgresql://steward:{quote(PASSWORD, safe='')}@127.0.0.1:{port}/postgres"
    finally:
        call("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(home)


@pytest.fixture(scope="module")
def people(server: str) -> str:
    """The address of a database with a table of people and one of every type."""
    statements = [
        "create table people (person uuid default gen_random_uuid(), age int, income numeric(12,2),"
        " region text)",
        "insert into people (age, income, region) select 20 + i % 60, 1000 + i * 1.25,"
        " 'R' || i % 4 from generate_series(1, 200) as i",
        "create table kinds (i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric,"
        " w numeric, z text, v varchar(9), b boolean, d date, ts timestamp, tz timestamptz, t time,"
        " u uuid, j jsonb, e interval, m money)",
        "insert into kinds values (1, 2, 3, 0.5, 0.1, 12.30, 7, '007', 'ä', true, '1850-01-02',"
        " '2020-01-02 03:04:05', '2020-01-02 03:04:05+02', '01:02:03',"
        " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": 1}', '1 day', 12.5)",
        "insert into kinds default values",
    ]
    with adbc.connect(server) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
    return server


@pytest.mark.parametrize(
    "value",
    [
        "inet '10.0.0.1'", "cidr '10.0.0.0/8'", "macaddr '08:00:2b:01:02:03'", "point '(1,2)'",
        "int4range '[1,5)'", "tstzrange '[2020-01-01,2021-01-01)'", "B'101'", "varbit '101'",
        "array[[1,2],[3,4]]", "array[1,2]", "array['a']", "xml '<a/>'", "timetz '01:02:03+02'",
        "interval '1 day'", "money '1.50'", "to_tsvector('a b')", "int4multirange '{[1,5)}'",
    ],
)  # fmt: skip
def test_types_that_would_arrive_as_something_else_are_refused(server: str, value: str) -> None:
    with pytest.raises(FileError, match=r"column 'x': type .* cannot be read; convert it") as e:
        read_table(Source(server, query=f"select {value} as x"))
    assert "101" not in str(e.value)


@pytest.mark.parametrize(
    "value",
    [
        "time '24:00'", "timestamp 'infinity'", "timestamp '-infinity'", "timestamptz 'infinity'",
        "date 'infinity'", "date '-infinity'", "timestamp '10000-01-01'", "date '0001-01-01 BC'",
    ],
)  # fmt: skip
def test_times_outside_the_calendar_are_refused(server: str, value: str) -> None:
    with pytest.raises(FileError, match=r"column 'x': expected .*, found 1 others"):
        read_table(Source(server, query=f"select {value} as x union all select null"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("bytea '\\x00ff'", b"\0\xff"),
        ("json '{}'", "{}"),
        ("'a'::char(3)", "a  "),
        ("'a'::name", "a"),
        ("timestamp '9999-12-31 23:59:59.999999'", datetime.max),
        ("date '0001-01-01'", date.min),
        ("time '23:59:59.999999'", time.max),
        ("'a'::mood", "a"),
    ],
)
def test_what_can_be_read_is_exact(server: str, value: str, expected: object) -> None:
    with adbc.connect(server) as connection, connection.cursor() as cursor:
        cursor.execute("drop type if exists mood")
        cursor.execute("create type mood as enum ('a', 'b')")
        connection.commit()
    assert read_table(Source(server, query=f"select {value} as x"))["x"].to_list() == [expected]


def test_every_type(people: str) -> None:
    query = "select i2, i4, i8, f4, f8, n, w, z, v, b, d, ts, tz, t, u, j from kinds;  "
    table = read_table(Source(people, query=query))
    assert table.schema == {
        "i2": pl.Int16, "i4": pl.Int32, "i8": pl.Int64, "f4": pl.Float32, "f8": pl.Float64,
        "n": pl.Float64, "w": pl.Int64, "z": pl.String, "v": pl.String, "b": pl.Boolean,
        "d": pl.Date, "ts": pl.Datetime("us"), "tz": pl.Datetime("us", "UTC"), "t": pl.Time,
        "u": pl.String, "j": pl.String,
    }  # fmt: skip
    assert table.row(0) == (
        1, 2, 3, 0.5, 0.1, 12.3, 7, "007", "ä", True, date(1850, 1, 2),
        datetime(2020, 1, 2, 3, 4, 5), datetime(2020, 1, 2, 1, 4, 5, tzinfo=UTC), time(1, 2, 3),
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", '{"a": 1}',
    )  # fmt: skip
    assert table.row(1) == (None,) * 16


def test_numbers_that_are_kept_keep_their_decimals(people: str) -> None:
    source = Source(people, query="select n from kinds")
    assert load_table(source, verbatim=["n"]).data["n"].to_list() == ["12.30", None]


def test_types_that_must_be_converted(people: str) -> None:
    with pytest.raises(FileError, match=r"column 'e': type interval .* for example to text"):
        read_table(Source(people, query="select e from kinds"))
    with pytest.raises(FileError, match=r"column 'm': type money .* for example to numeric"):
        read_table(Source(people, query="select m from kinds"))
    table = read_table(Source(people, query="select e::text, m::numeric from kinds"))
    assert table.row(0) == ("1 day", 12.5)


def test_a_query_is_protected(people: str) -> None:
    roles = {"age": "confidential", "income": Confidential(decimals=2), "region": "kept"}
    source = Source(people, query="select age, income, region from people")
    release = protect(source, Plan.published(epsilon=1, k=5, attributes=roles), keep_order=True)
    assert release.data.height == 200
    assert release.data["income"].n_unique() <= 40
    for piece in PIECES:
        assert piece not in repr(source) + repr(release) + repr(release.store.meta)


def test_the_command_line_writes_the_password_nowhere(run: Run, people: str) -> None:
    query = "--query 'select age, income, region from people'"
    steps = [
        f"plan '{people}' {query} -o plan.toml",
        f"protect '{people}' {query} --plan plan.toml -o out.parquet --detail --accept-risk",
        f"protect '{people}' {query} --epsilon 1 --keep region -o flags.sav --accept-risk",
        "certificate out.certificate.json",
        f"evaluate '{people}' out.parquet {query}",
        f"audit '{people}' {query} --plan plan.toml --runs 100",
        f"explore '{people}' {query} --plan plan.toml --runs 1 --epsilon 1 "
        "-o best.toml --svg chart.svg",
    ]
    said = ""
    for step in steps:
        code, out, err = run(step)
        assert code == 0, err
        said += out + err
    assert "matches the certificate" in said
    written = {path.name for path in Path().iterdir()}
    assert {"plan.toml", "out.parquet", "out.detail.zip", "flags.sav", "best.toml"} <= written
    for text in [said.encode(), *(path.read_bytes() for path in Path().iterdir())]:
        for piece in PIECES:
            assert piece.encode() not in text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select nope from people", 'refused: column "nope" does not exist'),
        ("selec age", "refused: syntax error"),
        ("select age from nobody", 'refused: relation "nobody" does not exist'),
        ("select ('918273' || region)::int as x from people", r"failed \(SQLSTATE 22P02\)"),
        ("select age / (age - age) as x, 918273 from people", r"failed \(SQLSTATE 22012\)"),
        ("delete from people returning age", "cannot execute DELETE in a read-only transaction"),
        ("drop table people", "cannot execute DROP TABLE in a read-only transaction"),
        ("select age from people; select age from people", "refused: "),
        ("select age, age from people", "same name twice"),
        ("select age from people where false", "expected records, found only column names"),
        ("commit", "expected records|refused|failed"),
    ],
)
def test_queries_that_do_not_work(people: str, query: str, message: str) -> None:
    with pytest.raises(MicroveilError, match=message) as error:
        read_table(Source(people, query=query))
    assert VALUE not in str(error.value)
    assert "\n" not in str(error.value)
    assert read_table(Source(people, query="select age from people")).height == 200


def test_servers_that_do_not_answer(people: str) -> None:
    address = people.replace("127.0.0.1", "{host}").replace("/postgres", "/{database}")
    good = {"host": "127.0.0.1", "database": "postgres"}
    secret = quote(PASSWORD, safe="")
    cases = [
        (people.replace(secret, "wr0ng"), "refused the user or password"),
        (people.replace(f":{secret}", ""), "refused the user or password"),
        (people.replace("steward", "nobody"), "refused the user or password"),
        (address.format(**{**good, "database": "none"}), "no database of that name"),
        (f"postgresql://steward:{secret}@127.0.0.1:1/postgres", "no server answers"),
        (f"postgresql://steward:{secret}@nowhere.invalid/postgres", "no server answers"),
        (people.replace(secret, PASSWORD), "no server|cannot connect"),
        (f"postgresql://steward:{secret}@127.0.0.1:x/postgres", "cannot connect"),
        (f"{people}?unheard={secret}", "cannot connect; expected postgresql://user:password@host"),
    ]
    for location, message in cases:
        with pytest.raises(FileError, match=message) as error:
            read_table(Source(location, query="select 1 as x"))
        for piece in (*PIECES, "wr0ng"):
            assert piece not in str(error.value)


def test_a_password_from_the_environment(people: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    without = people.replace(f":{quote(PASSWORD, safe='')}", "")
    assert read_table(Source(without, query="select age from people")).height == 200


def test_addresses_that_are_none() -> None:
    with pytest.raises(FileError, match="expected a query for the database"):
        Source("postgresql://steward:s3cret@localhost/x")
    for location in ("mysql://u:s3cret@localhost/x", Path("postgresql://u:s3cret@localhost/x")):
        with pytest.raises(FileError, match="found an address that begins with") as error:
            Source(location, query="select 1")
        assert "s3cret" not in str(error.value)
    for location in (
        " postgresql://u:s3cret@localhost/x", "\tPOSTGRES://u:s3cret@localhost/x",
        "jdbc:postgresql://u:s3cret@localhost/x", "jdbc:oracle:thin:u/s3cret@//localhost:1521/x",
        "u:s3cret@localhost/x", "postgresql:u:s3cret@localhost/x",
    ):  # fmt: skip
        with pytest.raises(FileError, match="expected a file, or a database address") as error:
            Source(location)
        assert "s3cret" not in str(error.value)
    assert Source("C:/data/a@b.csv").path is not None
    with pytest.raises(FileError, match="sheet does not apply to the database"):
        read_table(Source("postgresql://u@h/d", query="select 1", sheet="x"))


def test_a_mistake_in_an_address_prints_one_line(run: Run) -> None:
    code, out, err = run("plan postgresql://u:s3cret@127.0.0.1:1/x --query 'select 1' -o p.toml")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "no server answers" in err
    assert "s3cret" not in err
    Path("in.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    for command in ("protect in.csv --epsilon 1 -o", "evaluate in.csv"):
        code, out, err = run(f"{command} postgresql://u:s3cret@127.0.0.1/x.csv")
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "s3cret" not in err


def test_no_columns_of_numbers(people: str) -> None:
    roles = {"region": "confidential"}
    source = Source(people, query="select region from people")
    with pytest.raises(DataError, match="attribute 'region': a confidential attribute must be"):
        protect(source, Plan.published(epsilon=1, attributes=roles))
