import csv as python_csv
from collections.abc import Callable
from datetime import date, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import FileError, FileWarning, MicroveilError, Plan, protect
from microveil.core.choices import DateOrder
from microveil.errors import noted
from microveil.formats import Source, load_table, read_table, write_table
from microveil.formats import csv as csv_format
from microveil.formats.csv import detect_csv, read_csv_columnwise

Run = Callable[[str], tuple[int, str, str]]
VALUE = "918273"  # stands for a data value: no message may contain it


def csv(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "in.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_columns_are_read_as_what_they_hold(tmp_path: Path) -> None:
    text = "i,f,t,b,z,n,m\n1,0.5,x,true,007,,1\n-2,1e3,,false,010,,\n"
    table = read_table(csv(tmp_path, text))
    assert table.to_dict(as_series=False) == {
        "i": [1, -2],
        "f": [0.5, 1000.0],
        "t": ["x", None],
        "b": [True, False],
        "z": ["007", "010"],
        "n": [None, None],
        "m": [1, None],
    }


def test_nothing_in_quotes_is_missing_among_numbers(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, 'x,y\n"1","a"\n"",""\n"2","b"\n'))
    assert table["x"].to_list() == [1, None, 2]
    assert table["y"].to_list() == ["a", "", "b"]


def test_columns_that_are_published_as_they_are_keep_their_text(tmp_path: Path) -> None:
    text = "a,b,c,long\n28.10,3e2,1,12345678901234567890\n3.25,4,2,12345678901234567891\n"
    path = csv(tmp_path, text)
    table = read_table(path, verbatim=["a", "b", "c", "long"])
    assert table.to_dict(as_series=False) == {
        "a": ["28.10", "3.25"],
        "b": ["3e2", "4"],
        "c": [1, 2],
        "long": ["12345678901234567890", "12345678901234567891"],
    }
    assert read_table(path)["a"].to_list() == [28.1, 3.25]


@pytest.mark.parametrize("end", ["", "\n", "\n\n\n", "\r\n\r\n"])
def test_empty_lines_at_the_end_are_no_records(tmp_path: Path, end: str) -> None:
    path = csv(tmp_path, "x,y\n1,2\n3," + end)
    assert read_table(path).height == 2
    files, _ = read_csv_columnwise(Source(path), (), tmp_path)
    assert [pl.read_parquet(files[name])[name].to_list() for name in "xy"] == [[1, 3], [2, None]]


@pytest.mark.parametrize("end", ["\r\r", "\r\n\r", "\n\r\n", "\n\n\n"])
def test_lines_that_end_in_different_ways_cost_no_record(tmp_path: Path, end: str) -> None:
    path = csv(tmp_path, "x,y\n1,2\n3,4\n" + end)
    assert read_table(path).rows() == [(1, 2), (3, 4)]
    files, _ = read_csv_columnwise(Source(path), (), tmp_path)
    assert [pl.read_parquet(files[name])[name].to_list() for name in "xy"] == [[1, 3], [2, 4]]


@pytest.mark.parametrize("columnwise", [False, True])
def test_carriage_returns_alone_end_lines(tmp_path: Path, columnwise: bool) -> None:
    path = csv(tmp_path, '"x\n1",y\r1,"a\nb"\r2,"c\rd"\r3,\r\r')
    table = read_table(path)
    if columnwise:
        files, _ = read_csv_columnwise(Source(path), (), tmp_path)
        table = pl.DataFrame([pl.read_parquet(file).to_series() for file in files.values()])
    assert table.rows() == [(1, "a\nb"), (2, "c\rd"), (3, None)]
    assert table.columns == ["x\n1", "y"]
    path = csv(tmp_path, "x\r1\n2\n3\r")
    with pytest.raises(FileError, match="expected one kind of line ending, found several"):
        read_csv_columnwise(Source(path), (), tmp_path) if columnwise else read_table(path)


@pytest.mark.parametrize("end", ["\n", "\r\n\r\n"])
@pytest.mark.parametrize("columnwise", [False, True])
def test_empty_lines_at_the_end_of_one_column_are_no_records(
    tmp_path: Path, end: str, columnwise: bool
) -> None:
    """They may be missing values, or nothing: only the person knows."""
    path = csv(tmp_path, "x\n1\n\n3\n" + end)
    with pytest.raises(FileError, match="line 5: empty lines at the end"):
        read_csv_columnwise(Source(path), (), tmp_path) if columnwise else read_table(path)
    assert read_table(csv(tmp_path, 'x\n1\n\n3\n""\n'))["x"].to_list() == [1, None, 3, None]


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas", "pyarrow"])
def test_missing_values_of_one_column_survive(tmp_path: Path, kind: str) -> None:
    table = pl.DataFrame({"x": [1, None, 3, None]})
    kinds: dict[str, Any] = {
        "lazy": table.lazy,
        "pandas": table.to_pandas,
        "pyarrow": table.to_arrow,
    }
    write_table(kinds.get(kind, lambda: table)(), tmp_path / "out.csv")
    assert read_table(tmp_path / "out.csv")["x"].to_list() == [1, None, 3, None]


def test_quotes_in_names_are_read_and_written_once(tmp_path: Path) -> None:
    path = csv(tmp_path, '"a""b",y\n1,2\n3,4\n')
    assert read_table(path).columns == ['a"b', "y"]
    assert list(read_csv_columnwise(Source(path), (), tmp_path)[0]) == ['a"b', "y"]
    write_table(read_table(path), tmp_path / "out.csv")
    assert read_table(tmp_path / "out.csv").columns == ['a"b', "y"]


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf", b"\xff\xfe", b"\n\n", b" \n"])
def test_a_file_of_nothing_is_empty(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(FileError, match="the file is empty"):
        read_table(csv(tmp_path, content))


@pytest.mark.parametrize("delimiter", ["é", "—", "\0", "ab", ""])
def test_delimiters_are_single_bytes(delimiter: str) -> None:
    with pytest.raises(FileError, match="delimiter must be one ASCII character"):
        Source("in.csv", delimiter=delimiter)


@pytest.mark.parametrize("encoding", ["utf-8", "windows-1252", "utf-16"])
@pytest.mark.parametrize("columnwise", [False, True])
@pytest.mark.filterwarnings("ignore:.*not UTF-8")
def test_a_file_is_opened_twice_at_most(
    tmp_path: Path, encoding: str, columnwise: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once for all there is to find out, also of missing values and empty lines; once to read."""
    path = csv(tmp_path, "x;y\n1,5;é\n2,5;\n\n".encode(encoding))
    opened = count_openings(monkeypatch)
    if columnwise:
        files, meta = read_csv_columnwise(Source(path), (), tmp_path)
        rows = [*zip(*(pl.read_parquet(files[name])[name] for name in "xy"), strict=True)]
    else:
        (data, meta) = load_table(path)
        rows = data.rows()
    assert rows == [(1.5, "é"), (2.5, None)]
    assert meta.dialect == (";", ",")
    if encoding == "utf-8":
        assert opened == [path, path]
    else:
        copy = tmp_path / "text.csv"
        assert opened == ([path, copy, copy] if columnwise else [path, BytesIO])


def count_openings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note every path that Python opens, and what Polars is given to read as CSV."""
    opened: list[object] = []

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(what: Any, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401
            opened.append(what if isinstance(what, Path) else type(what))
            return function(what, *arguments, **options)

        return call

    monkeypatch.setattr(Path, "open", noted(Path.open))
    for name in ("read_csv", "scan_csv"):
        monkeypatch.setattr(pl, name, noted(getattr(pl, name)))
    return opened


def test_a_file_without_permission_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = csv(tmp_path, "x\n1\n")
    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(FileError, match=r"in\.csv: cannot be read: Permission denied"):
        read_table(path)


def test_the_delimiter_is_found_in_the_head_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that ends within quotes, or within the header, does not mislead."""
    text = 'first;second\n1;"a\nb"\n2;"c,d\ne,f,g"\n3;h\n'
    for head in range(1, len(text) + 1):
        monkeypatch.setattr(csv_format, "_HEAD", head)
        table = load_table(csv(tmp_path, text))
        assert table.meta.dialect == (";", ".")
        assert table.data["second"].to_list() == ["a\nb", "c,d\ne,f,g", "h"]


def test_a_single_column_may_have_missing_values(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, "x\n1\n\n3\n"))["x"].to_list() == [1, None, 3]


def test_long_fields(tmp_path: Path) -> None:
    long = "z" * 200_000
    assert read_table(csv(tmp_path, f"x,y\n{long},1\na,\n"))["x"][0] == long


def test_a_number_far_down_does_not_surprise(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "x\n" + "1\n" * 5000 + "0.5\n"))
    assert table["x"].dtype == pl.Float64


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, "\ufeffx,y\n1,2\n")).columns == ["x", "y"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("x,y\n", "found only column names"),
        (f"x,y\n1,2\n{VALUE},4,5\n", r"line 3: expected 2 fields, found 3"),
        (f"x,y\n1,2\n3,4\n{VALUE}\n", r"line 4: expected 2 fields, found 1"),
        ("x,y\n1,2\n\n3,4\n", r"line 3: expected 2 fields, found 0"),
        (f'x,y\n1,"{VALUE}\n3,4\n', r"line \d: broken quotes"),
        (f'x,y\n1,"{VALUE}"z\n', r"line 2: broken quotes"),
        (b"x,y\n1,\xe9\x81\n", "expected UTF-8 text, found other bytes; give its encoding"),
        (b"PAR1\x15\x00\x15", "expected text, found binary data"),
        ("x,y\n1,2\n".encode("utf-16-le"), "found binary data; if it is text, give its encoding"),
        (f"a;b,c\n{VALUE};2,3\n", "the delimiter may be ',' or ';'; give it"),
        (f"a;b|c\n{VALUE};2|3\n4\n", "the delimiter may be ';' or '|'; give it"),
        (f"x;y\n1;2\n{VALUE};4;5\n", r"line 3: expected 2 fields, found 3"),
        (f'x\ty\n1\t"{VALUE}\n3\t4\n', r"line \d: broken quotes"),
        ("x;x\n1;2\n", "same name twice"),
        ("sep=;\nx;y\n1;2\n", "expected column names in the first line"),
        (f"x,x\n1,{VALUE}\n", "same name twice"),
        (f"{VALUE},b\n1,2\n", "expected column names in the first line"),
        ("x,,y\n1,2,3\n", "expected column names in the first line"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(MicroveilError, match=message) as error:
        read_table(csv(tmp_path, content))
    assert VALUE not in str(error.value)
    assert "\n" not in str(error.value)


def test_the_delimiter_is_found(tmp_path: Path) -> None:
    for delimiter in ",;\t|":
        text = "x_y_z\n1_'a,b;c|d'_\n2__0.5\n".replace("_", delimiter).replace("'", '"')
        table = load_table(csv(tmp_path, text))
        assert table.meta.dialect == (delimiter, ".")
        assert table.data.rows() == [(1, "a,b;c|d", None), (2, None, 0.5)]


def test_a_line_break_in_quotes_is_part_of_the_value(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, 'x;note\r\n1;"two\r\nlines; ""q"""\r\n2;b\r\n'))
    assert table["note"].to_list() == ['two\r\nlines; "q"', "b"]


def test_long_fields_do_not_hide_the_delimiter(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, f"x;y\n{'z' * 200_000};1\n")).width == 2


def test_the_decimal_comma_is_found_where_numbers_can_be_read_in_no_other_way(
    tmp_path: Path,
) -> None:
    text = "id;a;b;c;day\n1;1,5;-2;1.000,5;01.02.2003\n2;12,25;,5;2;\n3;;3;3;\n"
    with pytest.warns(FileWarning, match="thousands separators .*'c'; dates .* day-first: 'day'"):
        table = load_table(csv(tmp_path, text.replace(";,5", ";0,5")))
    assert table.meta.dialect == (";", ",")
    assert table.data["a"].to_list() == [1.5, 12.25, None]
    assert table.data["b"].to_list() == [-2.0, 0.5, 3.0]
    assert table.data["c"].to_list() == [1000.5, 2.0, 3.0]
    assert table.data["day"].to_list() == [date(2003, 2, 1), None, None]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x;y\n1,234;a\n2,345;b\n", "may separate thousands"),
        ("x;y\n1,5;0.25\n2,25;0.5\n", "others have a decimal point"),
    ],
)
def test_commas_that_could_be_something_else_stay_text_and_are_named(
    tmp_path: Path, text: str, why: str
) -> None:
    path = csv(tmp_path, text)
    with pytest.warns(FileWarning, match=f"column 'x' has numbers with commas, but .*{why}"):
        assert read_table(path)["x"].dtype == pl.String
    assert read_table(Source(path, decimal=","))["x"].dtype == pl.Float64
    with noted():  # which says where separators of thousands are removed
        known = read_table(Source(path, decimal="."))["x"].to_list()
    assert known == ([1234, 2345] if "thousands" in why else ["1,5", "2,25"])


def test_quoted_decimal_commas_between_commas_must_be_given(tmp_path: Path) -> None:
    path = csv(tmp_path, 'x,y\n"1,5",2\n"2,5",3\n')
    assert read_table(path)["x"].dtype == pl.String
    assert read_table(Source(path, decimal=","))["x"].to_list() == [1.5, 2.5]


def test_kept_columns_with_decimal_commas_keep_their_text(tmp_path: Path) -> None:
    path = csv(tmp_path, "a;b\n28,10;1,5\n3,25;2,5\n")
    table = read_table(path, verbatim=["a", "b"])
    assert table["a"].to_list() == ["28,10", "3,25"]
    assert table["b"].to_list() == [1.5, 2.5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_unicode_is_recognised(tmp_path: Path, encoding: str) -> None:
    bom = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path = csv(tmp_path, bom + "größe,ok\n1,ü\n\n".encode(encoding))
    assert read_table(path).to_dict(as_series=False) == {"größe": [1], "ok": ["ü"]}


def test_what_is_not_unicode_is_read_as_windows_1252_and_said(tmp_path: Path) -> None:
    path = csv(tmp_path, "name;x\nJosé €;1,5\n".encode("cp1252"))
    with pytest.warns(FileWarning, match="not UTF-8, read as windows-1252"):
        assert read_table(path)["name"].to_list() == ["José €"]
    assert read_table(Source(path, encoding="windows-1252"))["name"].to_list() == ["José €"]
    polish = csv(tmp_path, "name,x\nŁódź,1\n".encode("iso-8859-2"))
    assert read_table(Source(polish, encoding="latin2"))["name"].to_list() == ["Łódź"]


@pytest.mark.parametrize(
    ("encoding", "city"),
    [("cp1251", "Москва"), ("koi8_r", "Москва"), ("cp1253", "Θεσσαλονίκη"), ("cp932", "東京の")],
)
def test_other_encodings_are_recognised_by_their_language(
    tmp_path: Path, encoding: str, city: str
) -> None:
    path = csv(tmp_path, ("x,city\n" + f"1,{city}\n" * 30).encode(encoding))
    with pytest.warns(FileWarning, match=f"not UTF-8, read as {encoding}"):
        assert set(read_table(path)["city"]) == {city}


def test_bytes_that_are_not_utf_8_far_down_decide_on_the_encoding(tmp_path: Path) -> None:
    text = "x,city\n" + "1,London\n" * 150_000 + "2,Москва\n" * 30
    path = csv(tmp_path, text.encode("cp1251"))
    with pytest.warns(FileWarning, match="not UTF-8, read as cp1251"):
        assert read_table(path)["city"].unique().sort().to_list() == ["London", "Москва"]


def test_a_wrong_encoding_is_said_without_the_text(tmp_path: Path) -> None:
    path = csv(tmp_path, f"x,y\n1,{VALUE}\xe9\n".encode("latin-1"))
    for encoding in ("utf-8", "ascii", "utf-16"):
        with pytest.raises(
            FileError, match=f"expected {encoding} text, found other bytes; give"
        ) as error:
            read_table(Source(path, encoding=encoding))
        assert VALUE not in str(error.value)


@pytest.mark.parametrize("dialect", [(",", "."), (";", ","), ("\t", "."), (",", ","), ("|", ",")])
def test_what_is_written_is_of_the_dialect_that_was_read(
    tmp_path: Path, dialect: tuple[str, str]
) -> None:
    delimiter, decimal = dialect
    frame = pl.DataFrame({"x": [1.5, -0.25, None], "n": [1, 2, 3], "t": ["a,b", 'c;"d', "e\tf|é"]})
    frame.write_csv(tmp_path / "in.csv", separator=delimiter, decimal_comma=decimal == ",")
    table = load_table(Source(tmp_path / "in.csv", delimiter=delimiter, decimal=decimal))
    assert table.data.equals(frame)
    write_table(table.data, tmp_path / "out.csv", table.meta)
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "in.csv").read_bytes()
    assert table.meta.dialect == dialect


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\ufeff"))


@given(
    rows=st.lists(st.tuples(words, st.integers(-(10**9), 10**9)), min_size=1),
    delimiter=st.sampled_from(",;\t|"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_whatever_python_writes_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int]],
    delimiter: str,
    encoding: str,
) -> None:
    path = tmp_path_factory.mktemp("csv") / "in.csv"
    written = [("x" + text, number) for text, number in rows]
    with path.open("w", encoding=encoding, newline="") as file:
        python_csv.writer(file, delimiter=delimiter).writerows([("text", "number"), *written])
    for source in (Source(path, delimiter=delimiter), Source(path)):
        assert read_table(source).rows() == written


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ";;"}, "delimiter must be one ASCII character"),
        ({"delimiter": "a"}, "delimiter must be one ASCII character"),
        ({"delimiter": '"'}, "delimiter must be one ASCII character"),
        ({"decimal": "x"}, 'decimal must be "." or ","'),
        ({"encoding": "klingon"}, "encoding must be one that Python knows"),
        ({"encoding": "hex"}, "encoding must be .* got 'hex'"),
        ({"sheet": "s"}, "sheet does not apply to CSV"),
        ({"query": "select 1"}, "query does not apply to CSV"),
    ],
)
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    path = csv(tmp_path, "x,y\n1,2\n")
    with pytest.raises(FileError, match=message):
        read_table(Source(path, **options))


def test_a_tab_can_be_given_in_two_ways(tmp_path: Path) -> None:
    path = csv(tmp_path, "x\ty,z\n1\t2,3\n")
    for tab in ("\t", "\\t"):
        assert read_table(Source(path, delimiter=tab)).columns == ["x", "y,z"]


def test_dates_and_times_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    row = "2020-01-02,2020-01-02T03:04:05,03:04:05,2020-13-01,0123"
    path.write_text(f"day,moment,at,no,code\n{row}\n")
    table = read_table(path)
    assert table.dtypes == [pl.Date, pl.Datetime("us"), pl.Time, pl.String, pl.String]
    assert read_table(path, verbatim=["day"])["day"].to_list() == ["2020-01-02"]


@pytest.mark.filterwarnings("error")
def test_what_was_detected_is_not_detected_again(tmp_path: Path) -> None:
    path = csv(tmp_path, "größe;ort\n1;é\n".encode("cp1252"))
    with pytest.warns(FileWarning, match="read as windows-1252"):
        source, names = detect_csv(Source(path, decimal=","))
    assert (source.encoding, source.delimiter, source.decimal) == ("windows-1252", ";", ",")
    assert names == ["größe", "ort"]
    assert read_table(source).rows() == [(1, "é")]


def both_ways(tmp_path: Path, source: Source) -> pl.DataFrame:
    """Read a file in memory and column by column; both must give the same."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with noted() as said:
        table = load_table(source).data
    with noted() as said_again:
        files, _ = read_csv_columnwise(source, (), scratch)
    assert said == said_again
    columns = pl.DataFrame([pl.read_parquet(file).to_series() for file in files.values()])
    assert columns.equals(table)
    assert columns.schema == table.schema
    return pl.DataFrame(table)


def test_a_file_of_r_has_row_names_and_missing_values(tmp_path: Path) -> None:
    text = '"","wages","language","born","ok"\n"1",10.5,"English",2001-02-03,TRUE\n'
    text += '"2",NA,NA,NA,NA\n"3",7,"French",1999-01-01,FALSE\n'
    path = csv(tmp_path, text)
    table = both_ways(tmp_path, Source(path))
    assert table.columns == ["row", "wages", "language", "born", "ok"]
    assert table["wages"].to_list() == [10.5, None, 7.0]
    assert table["language"].to_list() == ["English", "NA", "French"]
    assert table["born"].to_list() == [date(2001, 2, 3), None, date(1999, 1, 1)]
    assert table["ok"].to_list() == [True, None, False]
    with pytest.warns(FileWarning) as said:
        load_table(path)
    assert [str(one.message) for one in said] == [
        f"{path}: the first column has no name and is read as: 'row'; "
        "\"NA\" is read as missing: 'wages', 'born', 'ok'; "
        "\"NA\" stays text (--na NA makes it missing): 'language'"
    ]


@pytest.mark.parametrize("marker", ["N/A", ".", "#N/A", "NaN", "NULL", ""])
def test_markers_of_missing_values(tmp_path: Path, marker: str) -> None:
    table = both_ways(tmp_path, Source(csv(tmp_path, f"x,y\n1,a\n{marker},b\n3,c\n")))
    assert table["x"].to_list() == [1, None, 3]


def test_declared_missing_values_are_missing_everywhere(tmp_path: Path) -> None:
    path = csv(tmp_path, "x,y,z\n-99,NA,refused\n-99.0,b,2\n3,c,4\n")
    table = both_ways(tmp_path, Source(path, na=("-99", "NA", "refused")))
    assert table["x"].to_list() == [None, None, 3.0]
    assert table["y"].to_list() == [None, "b", "c"]
    assert table["z"].to_list() == [None, 2, 4]


@pytest.mark.parametrize(
    ("text", "dates", "expected"),
    [
        ("02.03.2011|31.12.1999", None, [date(2011, 3, 2), date(1999, 12, 31)]),
        ("2.3.2011|1.2.2003", None, [date(2011, 3, 2), date(2003, 2, 1)]),
        ("03/02/2011|12/31/1999", None, [date(2011, 3, 2), date(1999, 12, 31)]),
        ("03/02/2011|31/12/1999", None, [date(2011, 2, 3), date(1999, 12, 31)]),
        ("03/02/2011|1/1/1999", "day-first", [date(2011, 2, 3), date(1999, 1, 1)]),
        ("03-02-2011|NA", "month-first", [date(2011, 3, 2), None]),
        ("2011/03/02|1999/12/31", None, [date(2011, 3, 2), date(1999, 12, 31)]),
        ("31.12.2011 14:05|1.1.1999 00:00", None,
         [datetime(2011, 12, 31, 14, 5), datetime(1999, 1, 1)]),
        ("31/12/2011|12/31/1999", None, ["31/12/2011", "12/31/1999"]),
        ("31.02.2011|01.01.1999", None, ["31.02.2011", "01.01.1999"]),
        ("1.2.3|2.3.4", None, ["1.2.3", "2.3.4"]),
    ],
)  # fmt: skip
def test_national_dates(
    tmp_path: Path, text: str, dates: DateOrder, expected: list[object]
) -> None:
    path = csv(tmp_path, "n,day\n1," + text.replace("|", "\n2,") + "\n")
    assert both_ways(tmp_path, Source(path, dates=dates))["day"].to_list() == expected


def test_where_day_and_month_cannot_be_told_apart_is_a_question(tmp_path: Path) -> None:
    path = csv(tmp_path, "n,born,died\n1,03/02/2011,04/05/2012\n2,01/01/1999,02/02/2000\n")
    message = "'born', 'died': day and month cannot be told apart.*--dates day-first"
    with pytest.raises(FileError, match=message) as raised:
        load_table(path)
    assert "2011" not in str(raised.value)
    (tmp_path / "columns").mkdir()
    with pytest.raises(FileError, match=message):
        read_csv_columnwise(Source(path), (), tmp_path / "columns")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('a,x\n1,"1,234,567"\n2,12\n', [1234567, 12]),
        ('a,x\n1,"1,234.50"\n2,"-12.25"\n', [1234.5, -12.25]),
        ("a;x\n1;1.234,50\n2;12\n", [1234.5, 12.0]),
        ("a;x\n1,5;1.234\n2,5;12\n", [1234, 12]),
        ("a;x\n1;1 234,5\n2;12\n", [1234.5, 12.0]),
        ("a,x\n1,1'234.5\n2,12\n", [1234.5, 12.0]),
        ("a,x\n1,12.5%\n2,3 %\n", [12.5, 3.0]),
        ("a,x\n1, 12\n2,3 \n", [12, 3]),
        ('a,x\n1,"12,34"\n2,"1,234"\n', ["12,34", "1,234"]),
        ("a,x\n1,12%\n2,3\n", ["12%", "3"]),
    ],
)
def test_thousands_and_percent(tmp_path: Path, text: str, expected: list[object]) -> None:
    assert both_ways(tmp_path, Source(csv(tmp_path, text)))["x"].to_list() == expected


def test_a_plan_keeps_how_its_file_is_read(run: Run, tmp_path: Path) -> None:
    rows = [
        f"{i},{-99 if i % 9 == 0 else i * 7 % 50},0{i % 9 + 1}/02/20{i % 20 + 10}"
        for i in range(60)
    ]
    csv(tmp_path, "\n".join(["person,score,day", *rows]))
    assert run("plan in.csv -o plan.toml --na -99")[0] == 1
    code, _, err = run("plan in.csv -o plan.toml --na -99 --dates month-first")
    assert code == 0, err
    plan = Plan.read(tmp_path / "plan.toml")
    assert (plan.na, plan.dates) == (("-99",), "month-first")
    assert run("protect in.csv --plan plan.toml -o out.parquet --quiet --no-verdict")[0] == 0
    released = pl.read_parquet(tmp_path / "out.parquet")
    assert released["score"].null_count() == 7
    assert released["day"].dtype == pl.Date


def test_what_stands_for_missing_in_a_kept_column_stays_as_it_is(tmp_path: Path) -> None:
    rows = "".join(f"{i},{'NA' if i % 3 == 0 else i}\n" for i in range(12))
    (tmp_path / "in.csv").write_text(f"x,kept\n{rows}", encoding="utf-8")
    roles = {"x": "confidential", "kept": "kept"}
    release = protect(tmp_path / "in.csv", Plan.published(epsilon=1, k=3, attributes=roles))
    written = release.write(tmp_path / "out.csv", keep_order=True).protected
    lines = written.read_text(encoding="utf-8").split()[1:]
    assert [line.partition(",")[2] for line in lines] == [
        "NA" if i % 3 == 0 else str(i) for i in range(12)
    ]
