"""The table of a certificate by attribute has all that its sentences do not name."""

import polars as pl
import pytest

from microveil import Certificate, Plan, protect
from microveil.plan.sample import people
from microveil.show.report import certificate_page
from microveil.show.words.attribute_marks import MOST_NAMED, mark_rows, named
from microveil.show.words.certificate_words import certificate_sections

NUMBERS = [f"c{n}" for n in range(6)]


def certified(**changes: object) -> Certificate:
    table = pl.DataFrame({name: [(n * 37 + k) % 50 for n in range(60)] for k, name in
                          enumerate(NUMBERS)}).with_columns(area=pl.lit("a"))  # fmt: skip
    roles = {**dict.fromkeys(NUMBERS, "confidential"), "area": "kept"}
    settings = {"epsilon": 1.0, "anonymity": 10, "attributes": roles, **changes}
    return protect(table, Plan(**settings), seed=1).certificate  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return certified(from_data=["c0: kind", "c1: kind", "c2: kind", "c3: kind", "unit"])


def test_few_attributes_are_named_and_many_are_counted(certificate: Certificate) -> None:
    assert named(["c0", "c1"], "exact values", certificate) == "c0, c1"
    assert named(NUMBERS[:4], "exact values", certificate) == (
        "4 attributes (by attribute: exact values)"
    )
    assert named(NUMBERS, "exact values", certificate) == "all masked attributes"
    assert named(NUMBERS[:4], "", certificate) == "c0, c1, c2, c3"


def test_no_sentence_lists_more_than_a_few_attributes(certificate: Certificate) -> None:
    sections = certificate_sections(certificate)
    rows = sections.pop("By attribute")
    assert [line.partition(":")[0] for line in rows] == [*NUMBERS, "area"]
    for sentences in sections.values():
        for sentence in sentences:
            assert sum(name in sentence for name in NUMBERS) <= MOST_NAMED
    assert "unit, 4 settings of attributes (by attribute)" in " ".join(sections["Notes"])


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_the_table_has_every_fact_about_an_attribute() -> None:
    """Whatever the certificate says of an attribute by kind is in its row, and nothing else."""
    release = protect(people(300), Plan.propose(people(300)), seed=1)
    rows = {name: cells for name, *cells in mark_rows(release.certificate)}
    certificate = release.certificate
    exact = {n for e in certificate.not_protected if e.kind == "exact-categories"
             for n in e.attributes}  # fmt: skip
    assert exact == {n for n, cells in rows.items() if "exact categories" in cells[0].split("; ")}
    clusters = {n for e in certificate.notes if e.kind == "clusters-from-data"
                for n in e.attributes}  # fmt: skip
    assert clusters == {n for n, cells in rows.items() if "clusters" in cells[1].split("; ")}
    settings = {(one.rpartition(": ")[0], one.rpartition(": ")[2])
                for one in release.plan.from_data if ": " in one}  # fmt: skip
    assert all(what in rows[name][1].split("; ") for name, what in settings)
    fixed = {n for level in certificate.levels[:2] for n in level.about("noise-scales-fixed")}
    assert fixed == {n for n, cells in rows.items() if "noise scales fixed" in cells[2]}
    assert "noise scales fixed, levels 1 and 2" in rows["age"][2]


def test_the_page_has_a_table_by_attribute(certificate: Certificate) -> None:
    page = certificate_page(certificate)
    assert "<h3>By attribute</h3>" in page
    assert page.count('<td class="name">c4</td>') == 2
