"""Every sentence of a certificate: plan facts only, and true."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pytest

from microveil import (
    Certificate,
    Confidential,
    Derived,
    FileError,
    Plan,
    PlanError,
    PrivacyWarning,
    protect,
)
from microveil.core.choices import MethodName
from microveil.show.report.report_words import done
from microveil.show.words.certificate_words import (
    ATTRIBUTE_COLUMNS,
    attribute_rows,
    clusters_text,
    level_heading,
    level_statement,
    scope_of,
)

VALUES = [15_485_863 + 7919 * i for i in range(12)]  # no digit string of these may be published
DOMAIN = Confidential(lower=0, upper=10**9)


def certificate(**settings: Any) -> Certificate:  # noqa: ANN401
    attributes = settings.pop("attributes", {"x": DOMAIN})
    seed = settings.pop("seed", None)
    table = pl.DataFrame(dict.fromkeys(attributes, VALUES))
    return protect(
        table,
        Plan.published(**{"epsilon": 1.0, "k": 3, **settings}, attributes=attributes),
        seed=seed,
    ).certificate


def statement(found: Certificate, level: int) -> str:
    return level_statement(found, found.levels[level - 1])


def test_the_schema_in_the_package_is_that_of_the_certificate() -> None:
    schema = files("microveil.release").joinpath("certificate.schema.json")
    text = schema.read_text(encoding="utf-8")
    assert json.loads(text) == Certificate.model_json_schema(mode="serialization")


def test_a_certificate_follows_its_schema_and_can_be_read_back(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": VALUES})
    written = protect(table, Plan.published(epsilon=1, attributes={"x": DOMAIN})).write(
        tmp_path / "p.csv"
    )
    text = written.certificate.read_text(encoding="utf-8")
    jsonschema.validate(json.loads(text), Certificate.model_json_schema(mode="serialization"))
    assert Certificate.read(written.certificate).to_json() == text


def test_the_sentences_of_a_certificate_are_never_read_back(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": VALUES})
    written = protect(table, Plan.published(epsilon=1, attributes={"x": DOMAIN})).write(
        tmp_path / "p.csv"
    )
    content = json.loads(written.certificate.read_text(encoding="utf-8"))
    assert content["reading"] == written.certified.reading
    content["reading"] = {"What epsilon covers": ["Everything."]}
    (tmp_path / "changed.json").write_text(json.dumps(content), encoding="utf-8")
    read = Certificate.read(tmp_path / "changed.json")
    assert read == written.certified
    assert "Everything." not in str(read)


def test_something_else_is_not_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileError, match="not a certificate"):
        Certificate.read(tmp_path / "c.json")
    with pytest.raises(FileError, match="cannot be read"):
        Certificate.read(tmp_path / "none.json")


@pytest.mark.parametrize("method", ["DP", "DP-UM", "iDP-LS", "iDP-CBLS"])
@pytest.mark.parametrize("from_data", [False, True])
@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_a_certificate_depends_on_the_plan_and_not_on_the_data(
    method: MethodName, *, from_data: bool
) -> None:
    attribute = Confidential() if from_data else DOMAIN
    plan = Plan.published(
        epsilon=1, k=3, method=method, domain_from_data=from_data, attributes={"x": attribute}
    )
    one, other = (
        protect(pl.DataFrame({"x": values}), plan)
        .certificate.model_copy(update={"created": ""})
        .to_json()
        for values in (VALUES, [1, 2, 3] * 4)
    )
    if not from_data:
        assert one == other
    assert not any(str(value) in one for value in VALUES)


def test_bounds_of_level_2() -> None:
    slack = 1 + 12 * 2.0**-40  # 12 records in 4 clusters, ε = 1
    expected = {"DP": 1, "DP-UM": slack, "iDP-LS": 2 * slack, "iDP-CBLS": 4}
    for method, bound in expected.items():
        level = certificate(method=method).levels[1]
        assert level.epsilon == pytest.approx(bound, rel=1e-14)
        assert certificate(method=method).attributes[0].level_2_bound == level.epsilon


def test_bounds_add_up_over_attributes() -> None:
    attributes = {"x": DOMAIN, "y": Confidential(lower=0, upper=10**9, method="DP", budget_share=3)}
    c = certificate(attributes=attributes)
    assert [a.epsilon for a in c.attributes] == [0.25, 0.75]
    assert c.levels[0].epsilon == 1
    assert c.levels[1].epsilon == 4 * 0.25 + 0.75


def test_last_places_of_shares_are_not_written() -> None:
    given = certificate(attributes=dict.fromkeys("abcdefghij", DOMAIN))
    shares = [a.epsilon for a in given.attributes]
    assert sum(shares) == 1.0
    assert 0.1 not in shares  # but on both sides of it
    assert {row[ATTRIBUTE_COLUMNS.index("epsilon")] for row in attribute_rows(given)} == {"0.1"}
    assert level_heading(certificate(epsilon=0.1).levels[0]).startswith(
        "1. Fixed clusters: epsilon at most 0.1,"
    )


def test_level_1_in_words() -> None:
    dp, idp = statement(certificate(method="DP"), 1), statement(certificate(epsilon=0.5), 1)
    assert "individual" not in dp
    assert dp.startswith("Changing the confidential values of one record makes any set of masked")
    assert "exp(0.5)" in idp
    assert idp.startswith(
        "With fixed clusters and noise scales fixed as computed from this table, "
    )
    assert "For x this is individual differential privacy with fixed noise scales" in idp


def test_only_methods_whose_scales_follow_the_plan_claim_without_fixed_scales() -> None:
    for method, fixed in (("DP-UM", False), ("iDP-LS", True), ("iDP-CBLS", True)):
        for guarantee in ("fixed-clusters", "re-clustered"):
            said = statement(certificate(method=method, guarantee=guarantee), 2)
            assert ("with noise scales fixed as computed from this table" in said) == fixed
            assert ("A neighbour's own noise scales are not covered" in said) == fixed


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_the_bound_of_a_domain_from_the_data_does_not_tell_its_width() -> None:
    plan = Plan.published(epsilon=1, k=3, method="iDP-LS", attributes={"x": "confidential"})
    bounds = {
        protect(pl.DataFrame({"x": [0.0, 1.0, 2.0, width]}), plan).certificate.levels[1].epsilon
        for width in (3.0, 5.0, 7.7, 1e6)
    }
    assert bounds == {2 * (1 + 4 * 2.0**-40)}


def test_level_3_in_words() -> None:
    assert certificate(method="DP").levels[2].epsilon == 1
    clustered = certificate(k=4)
    assert clustered.levels[2].epsilon is None
    said = statement(clustered, 3)
    assert "at any epsilon" in said
    assert "At least 4 records share each masked value of one attribute, but combinations" in said


def test_several_records_per_person() -> None:
    with pytest.warns(
        PrivacyWarning, match="attribute 'x': iDP-CBLS covers one record per cluster"
    ):
        c = certificate(records_per_person=2)
    assert statement(c, 1).startswith("No bound for x: a person may have 2 records")
    assert (c.levels[0].enforced, c.levels[0].epsilon) == (False, None)
    assert (c.attributes[0].level_1_bound, c.attributes[0].level_2_bound) == (None, None)
    assert c.levels[1].epsilon is None
    assert "For all attributes together there is no bound." in statement(c, 2)
    linear = certificate(records_per_person=2, method="iDP-LS")
    assert (linear.levels[0].enforced, linear.levels[0].epsilon) == (True, 1)
    assert "one person's records (at most 2)" in statement(linear, 1)
    assert linear.levels[1].epsilon == pytest.approx(2)
    assert not linear.notes


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_a_domain_from_the_data_voids_the_dp_claim_in_words() -> None:
    dp = certificate(method="DP-UM", domain_from_data=True, attributes={"x": Confidential()})
    assert statement(dp, 1).startswith("No bound for x: settings read from the data")
    idp = certificate(method="iDP-LS", attributes={"x": Confidential()})
    assert "covers only values inside the range observed in the data" in statement(idp, 1)
    assert "No bound" not in statement(idp, 1)
    assert [level.epsilon for level in dp.levels] == [None, None, None]
    assert not any(level.enforced for level in dp.levels)
    only_dp = certificate(method="DP", domain_from_data=True, attributes={"x": Confidential()})
    assert [level.epsilon for level in only_dp.levels] == [None, None, None]


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_a_grid_from_the_data_is_an_exception_in_words() -> None:
    table = pl.DataFrame({"x": [0.5, 1.5, 2.5]})
    for attribute, marks in ((Confidential(resolution="data"), []),
                             (Confidential(decimals=1), ["x: decimals"])):  # fmt: skip
        plan = Plan.published(epsilon=1, k=3, attributes={"x": attribute}, from_data=marks)
        found = protect(table, plan).certificate
        for level in (1, 2):
            said = statement(found, level)
            assert "where the last decimal and the largest value decide it" in said


def test_a_grid_does_not_follow_the_data_unless_asked() -> None:
    plan = Plan.published(epsilon=1, k=3, attributes={"x": "confidential"})
    for value in (6.25, 6.0, 6.123456789, 1e9):
        release = protect(pl.DataFrame({"x": [1.0, 2.0, 5.0, value]}), plan)
        assert release.certificate.attributes[0].grid_step == 2.0**-20


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_what_the_plan_took_from_the_data_is_noted() -> None:
    notes = certificate(from_data=["k", "x: decimals"]).reading["Notes"]
    assert "Read from the data when the plan was made: k, x: decimals." in notes


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_k_from_the_data_claims_what_automatic_k_does() -> None:
    marked = certificate(from_data=["k"])
    automatic = certificate(k="auto", post="penalised-isotonic")
    for one, other in zip(marked.levels, automatic.levels, strict=True):
        assert (one.enforced, one.epsilon) == (other.enforced, other.epsilon)
    assert marked.attributes[0].k_from_data
    for guarantee in ("fixed-clusters", "re-clustered"):
        voided = certificate(method="DP-UM", guarantee=guarantee, from_data=["k"])
        assert [level.enforced for level in voided.levels] == [False, False, False]
        assert [level.epsilon for level in voided.levels] == [None, None, None]
    reclustered = certificate(guarantee="re-clustered", from_data=["k"]).levels[1]
    assert (reclustered.enforced, reclustered.epsilon) == (False, None)
    own = {"x": Confidential(lower=0, upper=10**9, k=3)}
    assert not certificate(attributes=own, from_data=["k"]).attributes[0].k_from_data


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("method", ["DP", "DP-UM"])
def test_categories_and_domains_from_the_data_void_differential_privacy(method: str) -> None:
    sexes = Confidential(kind="nominal", categories=["f", "m"])
    for attribute, mark in ((sexes, "x: categories"), (DOMAIN, "x: upper")):
        settings: dict[str, Any] = {
            "epsilon": 1, "method": method, "k": 3, "attributes": {"x": attribute},
            "from_data": [mark],
        }  # fmt: skip
        with pytest.raises(PlanError, match="remove them from from_data") as error:
            Plan.published(**settings)
        assert (error.value.attribute, error.value.setting) == ("x", mark.removeprefix("x: "))
        plan = Plan.published(**settings, domain_from_data=True)
        table = pl.DataFrame({"x": ["f", "m"] * 9 if attribute is sexes else VALUES})
        found = protect(table, plan).certificate
        assert [level.epsilon for level in found.levels] == [None, None, None]
        assert found.attributes[0].domain == "data"


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("method", ["DP", "DP-UM", "iDP-LS"])
def test_the_type_of_a_csv_column_is_from_the_data_unless_declared(
    tmp_path: Path, method: MethodName
) -> None:
    certificates, texts = [], []
    for kind in (None, "real", "integer"):
        for value in ("37", "37.5") if kind != "integer" else ("37", "37.0"):
            source, output = tmp_path / "in.csv", tmp_path / "out.csv"
            source.write_text("\n".join(["x", *map(str, range(20, 50)), value]))
            attribute = Confidential(kind=kind, lower=0, upper=100)
            plan = Plan.published(epsilon=1, k=3, method=method, attributes={"x": attribute})
            written = protect(source, plan).write(output, overwrite=True)
            certificates.append(written.certified)
            texts.append("." in output.read_text())
    assert texts == [False, True, True, True, False, False]
    expected = [None, None, 1, 1, 1, 1] if method != "iDP-LS" else [1] * 6
    assert [c.levels[0].epsilon for c in certificates] == expected


def test_rows_in_their_original_order_are_listed_as_unprotected(tmp_path: Path) -> None:
    release = protect(
        pl.DataFrame({"x": VALUES}), Plan.published(epsilon=1, attributes={"x": DOMAIN})
    )
    for keep_order in (False, True):
        written = release.write(tmp_path / "x.csv", keep_order=keep_order, overwrite=True)
        exposed = Certificate.read(written.certificate).not_protected
        assert any(one.kind == "row-order" for one in exposed) == keep_order


def test_re_clustered_in_words() -> None:
    for method in ("DP-UM", "iDP-LS", "iDP-CBLS"):
        c = certificate(method=method, guarantee="re-clustered")
        one, two, three = c.levels
        assert (one.enforced, two.enforced, three.enforced) == (False, True, False)
        assert two.epsilon == c.attributes[0].level_2_bound == 1
        assert statement(c, 2).startswith("Changing the confidential values of one record and re-")
        assert ("individual" in statement(c, 2)) == (method != "DP-UM")
        assert one.epsilon == (None if method == "iDP-LS" else 1)
        assert statement(c, 1).startswith("No bound for x") == (method == "iDP-LS")
        exposed = {one.kind for one in c.not_protected}
        assert ("exact-values" in exposed) == c.attributes[0].exact_values == (method != "DP-UM")


def test_levels_that_are_enforced() -> None:
    assert [level.enforced for level in certificate(method="DP").levels] == [True, True, True]
    assert [level.enforced for level in certificate().levels] == [True, False, False]


@pytest.mark.parametrize("method", ["iDP-LS", "iDP-CBLS"])
def test_re_clustered_idp_covers_one_record_per_person(method: str) -> None:
    with pytest.raises(PlanError, match="attribute 'x': with guarantee = \"re-clustered\""):
        certificate(method=method, guarantee="re-clustered", records_per_person=2)
    allowed = certificate(method="DP-UM", guarantee="re-clustered", records_per_person=2)
    assert allowed.levels[1].epsilon == 1


def test_what_is_not_protected_is_listed() -> None:
    c = certificate(
        missing="keep",
        attributes={
            "x": DOMAIN,
            "region": "kept",
            "name": "identifier",
            "twice": Derived(expression="x + x"),
        },
    )
    text = " ".join(c.reading["What is not protected"])
    assert "published unchanged: region" in text
    assert "Which values are missing" in text
    assert "Which records share a masked value: x" in text
    assert "without noise: x" in text
    assert (c.kept, c.dropped) == (("region",), ("name",))
    assert c.derived[0].expression == "x + x"
    only_dp = " ".join(certificate(method="DP").reading["What is not protected"])
    assert "share a masked value" not in only_dp
    assert "without noise" not in only_dp


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_what_is_trimmed_is_said() -> None:
    table = pl.DataFrame({"x": range(30), "y": range(30), "z": range(30), "c": ["a", "b"] * 15})
    attributes: dict[str, Any] = {
        "x": "confidential", "y": Confidential(trim=0),
        "z": Confidential(method="iDP-LS", lower=0, upper=50),
        "c": Confidential(kind="nominal", categories=["a", "b"]),
    }  # fmt: skip
    certificate = protect(
        table, Plan.published(epsilon=1.0, trim=0.2, attributes=attributes)
    ).certificate
    assert [a.trim for a in certificate.attributes] == [0.2, 0.0, None, None]
    assert certificate.levels[1].epsilon is not None
    assert clusters_text(certificate.attributes[0]) == "k = 10, trim 0.2"
    assert clusters_text(certificate.attributes[1]) == "k = 10"
    unmoved = [
        item for item in certificate.reading["What is not protected"] if "without noise" in item
    ]
    assert unmoved == [
        "Exact values: a value that all records of a cluster share, and that one record cannot "
        "move, is published without noise: y.",
        "Exact values: a value that all records of a cluster share, except some of those trimmed "
        "at its ends, and that one record cannot move, is published without noise: x.",
    ]
    trimmed, plain = done(certificate)[:2]
    assert trimmed.startswith("x (iDP-CBLS): ")
    assert "cluster means leave out 0.2 of the records at each end, rounded down" in trimmed
    assert "leave out" not in plain


def test_values_that_all_but_those_left_out_share_go_without_noise() -> None:
    table = pl.DataFrame({"x": [1, 2] + [7] * 8 + [9, 9, 30]})
    plan = Plan.published(epsilon=1.0, k=13, trim=0.25, attributes={"x": "confidential"})
    assert protect(table, plan).detail.clusters["scale"].to_list() == [
        pytest.approx(2 / 7, rel=1e-4)
    ]
    fewer = table.with_columns(x=pl.Series([1, 2] + [7] * 9 + [9, 30]))
    assert protect(fewer, plan, keep_order=True).data["x"].to_list() == [7] * 13
    assert protect(fewer, plan.replace(trim=0.1)).detail.clusters["scale"].item() > 0


def test_a_seeded_release_is_stamped() -> None:
    assert scope_of(certificate(seed=1)).startswith("NOT FOR PUBLICATION")
    assert certificate(seed=1).randomness == "seeded"


def test_no_certificate_reads_as_a_clearance() -> None:
    text = certificate().to_json().lower()
    assert "it is not a clearance" in text
    assert "for publication" not in text
    assert certificate().randomness == "operating system"
