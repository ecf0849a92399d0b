import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from microveil.errors import FileError
from microveil.lab.paper.datasets import CENSUS, WINE, DataSet, load_data_set

COMMAS = "wage,tax rate,class\n1,2,0\n2.5,4,1\n4,0,2\n"
VARIANTS = {
    "commas": COMMAS,
    "semicolons and quotes": '"wage";"tax rate";"class"\n1;2;0\n2.5;4;1\n4;0;2\n',
    "tabs and another order": "class\twage\ttax rate\n0\t1\t2\n1\t2.5\t4\n2\t4\t0\n",
    "old line ends": COMMAS.replace("\n", "\r"),
    "byte-order mark": "\ufeff" + COMMAS,
    "aligned, without a header": "  1.0   2  0 \n  2.5   4  1 \n  4.0   0  2 \n\n",
}


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS)
def test_reads_what_public_copies_look_like(tiny: DataSet, tmp_path: Path, text: str) -> None:
    (tmp_path / "tiny.csv").write_text(text, encoding="utf-8", newline="")
    table = load_data_set(tiny, tmp_path)
    assert table.attributes.to_dict(as_series=False) == {
        "tax rate": [2.0, 4.0, 0.0],
        "wage": [1.0, 2.5, 4.0],
    }
    assert table.second_class.tolist() == [False, True, True]


def test_reads_the_right_file_of_an_archive(tiny: DataSet, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "tiny.zip", "w") as archive:
        archive.writestr("data/readme.txt", "not this")
        archive.writestr("data/Tiny.csv", COMMAS)
    assert load_data_set(tiny, tmp_path).attributes["wage"].to_list() == [1.0, 2.5, 4.0]


def test_an_archive_without_the_file_is_an_error(tiny: DataSet, tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("one.txt", COMMAS)
        archive.writestr("two.txt", COMMAS)
    (tmp_path / "tiny.zip").write_bytes(content.getvalue())
    with pytest.raises(FileError, match=r"expected tiny\.csv in the archive"):
        load_data_set(tiny, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (COMMAS.replace("wage", "pay"), "expected columns wage, tax rate, class"),
        (COMMAS + "1,2,3\n", "has 3 records, found 4"),
        (COMMAS.replace("2.5", "2.6"), "column 'wage' differs from the public Tiny"),
        (COMMAS.replace("2.5", "secret"), "something else in record 2"),
        (COMMAS.replace("2.5", "nan"), "something else in record 2"),
        (COMMAS.replace("4,1", "4"), "something else in record 2"),
        (COMMAS.replace("1,2,0", "1,2,1").replace("4,0,2", "4,0,1"), "column 'class'"),
    ],
)
def test_what_is_not_the_public_file_is_refused(
    tiny: DataSet, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "tiny.csv").write_text(text)
    with pytest.raises(FileError, match=message) as caught:
        load_data_set(tiny, tmp_path)
    assert "secret" not in str(caught.value)
    assert "2.6" not in str(caught.value)


def test_looks_in_the_directory_then_the_environment_then_the_cache(
    tiny: DataSet, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [tmp_path / "given", tmp_path / "configured", empty_cache]
    wages = [("1,2,0", "4,0,2"), ("2,2,0", "3,0,2"), ("0,2,0", "5,0,2")]
    for place, (first, last) in zip(places, wages, strict=True):
        place.mkdir(parents=True)
        text = COMMAS.replace("1,2,0", first).replace("4,0,2", last)
        (place / "tiny.csv").write_text(text)
    monkeypatch.setenv("MICROVEIL_DATA", str(places[1]))
    found = []
    for place in places:
        found.append(load_data_set(tiny, places[0]).attributes["wage"][0])
        (place / "tiny.csv").unlink()
    assert found == [1.0, 2.0, 0.0]


def test_without_data_says_where_to_put_it(tiny: DataSet, empty_cache: Path) -> None:
    with pytest.raises(FileError) as caught:
        load_data_set(tiny)
    message = str(caught.value)
    assert "https://example.org/tiny" in message
    assert f"save it as tiny.csv in {empty_cache}" in message
    assert "MICROVEIL_DATA" in message


def test_a_directory_that_is_not_there_is_an_error(tiny: DataSet, tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such directory"):
        load_data_set(tiny, tmp_path / "nowhere")


def test_census_is_the_public_file(paper_data: Path) -> None:
    table = load_data_set(CENSUS, paper_data)
    assert table.attributes.shape == (1_080, 9)
    assert np.count_nonzero(table.second_class) == 644
    assert table.attributes["FICA"].max() == 7_932


def test_wine_quality_is_the_public_file(paper_data: Path) -> None:
    table = load_data_set(WINE, paper_data)
    assert table.attributes.shape == (4_898, 11)
    assert np.count_nonzero(table.second_class) == 1_060
    assert table.attributes["alcohol"].max() == 14.2


def test_one_changed_value_is_noticed(paper_data: Path, tmp_path: Path) -> None:
    text = (paper_data / "census.csv").read_text()
    (tmp_path / "census.csv").write_text(text.replace("45554", "46554", 1))
    with pytest.raises(FileError, match="column 'AGI' differs from the public Census"):
        load_data_set(CENSUS, tmp_path)


def test_every_attribute_has_a_total() -> None:
    for dataset in (CENSUS, WINE):
        assert {*dataset.attributes, dataset.class_column} <= set(dataset.columns)
