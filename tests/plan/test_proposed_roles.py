"""Headers as people have them, with the roles that somebody who knows the table would choose."""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from microveil import Plan, protect
from microveil.plan.propose.proposal import propose_plan

RECORDS = 600
Values = NDArray[Any]
Expected = Mapping[str, tuple[object, str]]
"""The values of each column and what is expected of it.

"amount": masked as a number, date or time; "nominal": masked as categories; "dropped"; "kept";
"weight": masked as the sampling weight.
Two words stand where either is right.
"""

random = np.random.default_rng(16)
NUMBERS = np.arange(RECORDS)


def codes(*values: int, p: list[float] | None = None) -> Values:
    return np.asarray(random.choice(values, RECORDS, p=p))


def words(*values: str) -> Values:
    return np.asarray(random.choice(values, RECORDS))


def money(scale: float = 30_000, decimals: int = 0) -> Values:
    drawn = (random.lognormal(0, 0.7, RECORDS) * scale).round(decimals)
    return np.asarray(drawn if decimals else drawn.astype(np.int64))


def counts(mean: float) -> Values:
    return random.poisson(mean, RECORDS)


def ages() -> Values:
    return random.integers(18, 90, RECORDS)


def days(first: date = date(1990, 1, 1)) -> list[date]:
    return [first + timedelta(days=int(n)) for n in random.integers(0, 9_000, RECORDS)]


def unique(start: int = 1) -> Values:
    return random.permutation(RECORDS) + start


def drawn_keys(digits: int) -> Values:
    drawn = random.choice(9 * 10 ** (digits - 1), RECORDS, replace=False)
    return np.asarray(drawn + 10 ** (digits - 1))


def households(start: int = 1) -> Values:
    sizes = random.integers(1, 6, RECORDS)
    return np.repeat(np.arange(RECORDS) + start, sizes)[:RECORDS]


def weights(mean: float = 250.0) -> Values:
    return random.gamma(20, mean / 20, RECORDS).round(3)


def names() -> Values:
    return words("Smith", "Jones", "Garcia", "Müller", "Martin", "Rossi", "Novak", "Silva")


def texts_of(prefix: str) -> list[str]:
    return [f"{prefix}{n:05d}" for n in drawn_keys(5)]


TABLES: dict[str, Expected] = {
    "sdcMicro": {
        "urbrur": (codes(1, 2), "nominal"),
        "roof": (codes(2, 4, 5, 6, 9, p=[0.3, 0.5, 0.1, 0.05, 0.05]), "nominal"),
        "walls": (codes(2, 3, 9, p=[0.6, 0.35, 0.05]), "nominal"),
        "water": (codes(1, 2, 3, 4, 5, 6, 8, 9), "nominal"),
        "electcon": (codes(0, 1, 2, 3, 4, p=[0.02, 0.6, 0.3, 0.05, 0.03]), "nominal"),
        "relat": (codes(*range(1, 10), p=[0.25, 0.18, 0.4, *[0.17 / 6] * 6]), "nominal"),
        "sex": (codes(0, 1), "nominal"),
        "age": (random.integers(0, 96, RECORDS), "amount"),
        "hhcivil": (codes(1, 2, 3, 4, 9), "nominal"),
        "expend": (random.integers(1, 10**8, RECORDS), "amount"),
        "income": (random.integers(1, 1_000, RECORDS) * 100_000, "amount"),
        "savings": (random.integers(1, 10**7, RECORDS), "amount"),
        "ori_hid": (households(), "dropped"),
        "sampling_weight": (codes(100), "kept"),
        "household_weights": (random.choice([50.0, 25.0, 20.0], RECORDS), "weight or kept"),
    },
    "census": {
        "AFNLWGT": (drawn_keys(6), "weight"),
        "AGI": (money(), "amount"),
        "EMCONTRB": (money(2_000), "amount"),
        "ERNVAL": (money(), "amount"),
        "FEDTAX": (money(4_000), "amount"),
        "FICA": (money(2_500), "amount"),
        "INTVAL": (money(300), "amount"),
        "PEARNVAL": (money(), "amount"),
        "POTHVAL": (money(900), "amount"),
        "STATETAX": (money(1_500), "amount"),
        "TAXINC": (money(), "amount"),
        "WSALVAL": (money(), "amount"),
    },
    "SLID": {
        "row": (NUMBERS + 1, "dropped"),
        "wages": (money(15, 2), "amount"),
        "education": (random.normal(13, 3, RECORDS).clip(0, 20).round(1), "amount"),
        "age": (ages(), "amount"),
        "sex": (words("Female", "Male"), "nominal"),
        "language": (words("English", "French", "Other"), "nominal"),
    },
    "deaths": {
        "Last name": (names(), "dropped"),
        "First name": (words("Anna", "Jan", "Li", "Omar"), "dropped"),
        "Date of birth": (days(date(1920, 1, 1)), "amount"),
        "Date of death": (days(date(2000, 1, 1)), "amount"),
        "Certificate no.": (drawn_keys(7), "dropped"),
        "Cause": (words("I21", "C34", "J44", "I64"), "nominal"),
        "Place": (words("hospital", "home", "other"), "nominal"),
        "ZIP": (random.choice(drawn_keys(5)[:400], RECORDS), "dropped"),
    },
    "business": {
        "company_id": (drawn_keys(8), "dropped"),
        "Company": (texts_of("Firm "), "dropped"),
        "VAT number": (texts_of("ATU"), "dropped"),
        "nace2": (codes(10, 13, 25, 41, 46, 47, 49, 55, 62, 86), "nominal"),
        "legal form": (codes(1, 2, 3), "nominal"),
        "employees": (money(20), "amount"),
        "turnover": (money(900_000), "amount"),
        "profit": (money(50_000) - 30_000, "amount"),
        "export_share": (random.beta(1, 4, RECORDS), "amount"),
        "founded": (random.integers(1950, 2024, RECORDS), "amount"),
        "region": (words("N", "E", "S", "W"), "nominal"),
    },
    "hospital": {
        "patient_id": (random.choice(drawn_keys(6)[:150], RECORDS), "dropped"),
        "VisitID": (unique(4_000_000), "dropped"),
        "admission": (days(), "amount"),
        "los_days": (counts(4), "amount"),
        "ward": (codes(1, 2, 3, 4, 5, 6, 7), "nominal"),
        "icd_code": (words("E11", "I10", "J18", "N39", "S72"), "nominal"),
        "weight": (random.normal(74, 13, RECORDS).round(1), "amount"),
        "height_cm": (random.normal(171, 9, RECORDS).round(), "amount"),
        "systolic": (random.normal(130, 15, RECORDS).round().astype(int), "amount"),
        "smoker": (codes(0, 1), "nominal"),
        "died": (codes(0, 1, p=[0.95, 0.05]), "nominal"),
        "insurance_number": (drawn_keys(10), "dropped"),
        "charges": (money(5_000, 2), "amount"),
        "phone": (texts_of("+43 1 "), "dropped"),
        "country": (["AT"] * RECORDS, "kept"),
    },
    "panel": {
        "pid": (np.tile(np.arange(1, 201), 3), "dropped"),
        "hhnr": (np.tile(np.arange(100) // 1, 6), "dropped"),
        "wave": (np.repeat([1, 2, 3], 200), "nominal"),
        "syear": (np.repeat([2019, 2020, 2021], 200), "nominal"),
        "life_satisfaction": (random.binomial(10, 0.7, RECORDS), "amount or nominal"),
        "hours": (random.normal(38, 6, RECORDS).round(1), "amount"),
        "n_children": (counts(1.2), "amount"),
        "hhsize": (counts(1.5) + 1, "amount"),
        "married": (codes(1, 2), "nominal"),
        "phrf": (weights(3_000), "amount"),
    },
    "German": {
        "Haushaltsnummer": (households(1_000), "dropped"),
        "Personennummer": (random.integers(1, 6, RECORDS), "dropped or nominal"),
        "Vorname": (words("Anna", "Max", "Lena"), "dropped"),
        "Straße": (texts_of("Gasse "), "dropped"),
        "PLZ": (codes(1010, 1020, 1030, 4020, 5020, 6020, 8010), "nominal"),
        "Geschlecht": (codes(1, 2, 3, p=[0.49, 0.49, 0.02]), "nominal"),
        "Alter": (ages(), "amount"),
        "Familienstand": (codes(1, 2, 3, 4, 5), "nominal"),
        "Bundesland": (codes(*range(1, 10)), "nominal"),
        "Nettoeinkommen": (money(1_900), "amount"),
        "Miete": (money(600, 2), "amount"),
        "Anzahl Kinder": (counts(1), "amount"),
        "Zimmer": (counts(2) + 1, "amount"),
        "Gewichtungsfaktor": (weights(1), "weight"),
        "Staatsangehörigkeit": (codes(1, 2, 8, 9), "nominal"),
    },
    "French": {
        "identifiant": (drawn_keys(6), "dropped"),
        "no_menage": (households(), "dropped"),
        "nom": (names(), "dropped"),
        "prénom": (words("Luc", "Zoé", "Inès"), "dropped"),
        "sexe": (codes(1, 2), "nominal"),
        "âge": (ages(), "amount"),
        "code_postal": (random.choice(drawn_keys(5)[:300], RECORDS), "dropped"),
        "département": (random.choice(np.arange(1, 41), RECORDS), "nominal"),
        "situation_familiale": (codes(1, 2, 3, 4), "nominal"),
        "nb_enfants": (counts(1.1), "amount"),
        "revenu": (money(22_000), "amount"),
        "loyer": (money(500), "amount"),
        "poids_menage": (weights(), "weight"),
        "type_logement": (codes(1, 2, 3), "nominal"),
    },
    "Spanish and Italian": {
        "hogar": (households(), "dropped"),
        "persona": (drawn_keys(5), "dropped"),
        "apellido": (names(), "dropped"),
        "sexo": (codes(1, 6), "nominal"),
        "edad": (ages(), "amount"),
        "provincia": (random.choice(np.arange(1, 51), RECORDS), "nominal"),
        "estado_civil": (codes(1, 2, 3, 4, 5), "nominal"),
        "ingresos": (money(14_000), "amount"),
        "factor_expansion": (weights(600), "weight"),
        "NQUEST": (drawn_keys(6), "dropped"),
        "reddito": (money(17_000, 2), "amount"),
        "cognome": (names(), "dropped"),
    },
    "customers": {
        "CustomerKey": (unique(11_000), "dropped"),
        "Unnamed: 0": (NUMBERS, "dropped"),
        "email": ([f"a{n}@example.org" for n in NUMBERS], "dropped"),
        "Address Line": (texts_of("Road "), "dropped"),
        "account_no": (drawn_keys(9), "dropped"),
        "YearlyIncome": (random.integers(1, 17, RECORDS) * 10_000, "amount"),
        "NumberCarsOwned": (random.integers(0, 5, RECORDS), "amount"),
        "HouseOwnerFlag": (codes(0, 1), "nominal"),
        "Segment": (words("A", "B", "C"), "nominal"),
        "first_order": (days(), "amount"),
        "discount": (random.choice([0.0, 0.05, 0.1, 0.25], RECORDS), "amount"),
        "paid": (money(90, 2), "amount"),
        "valid": (codes(0, 1), "nominal"),
        "balance": (np.sort(money(8_000) + NUMBERS * 7), "amount"),
    },
    "ACS": {
        "SERIALNO": (households(2_019_000), "dropped"),
        "SPORDER": (random.integers(1, 7, RECORDS), "nominal or dropped"),
        "PWGTP": (random.integers(1, 200, RECORDS), "weight or amount"),
        "ST": ([48] * RECORDS, "kept"),
        "PUMA": (random.choice([4301, 4502, 4615, 2800, 5301], RECORDS), "nominal"),
        "AGEP": (random.integers(0, 96, RECORDS), "amount"),
        "SEX": (codes(1, 2), "nominal"),
        "RAC1P": (codes(1, 2, 3, 5, 6, 8, 9), "nominal"),
        "MAR": (codes(1, 2, 3, 4, 5), "nominal"),
        "SCHL": (random.integers(1, 25, RECORDS), "amount or nominal"),
        "WAGP": (money(), "amount"),
        "JWMNP": (random.integers(1, 140, RECORDS), "amount"),
        "RELSHIPP": (codes(20, 21, 23, 25, 27, 34, 36), "nominal"),
        "OCCP": (random.choice(drawn_keys(4)[:300], RECORDS), "dropped"),
    },
    "Titanic": {
        "PassengerId": (NUMBERS + 1, "dropped"),
        "Survived": (codes(0, 1), "nominal"),
        "Pclass": (codes(1, 2, 3), "nominal"),
        "Name": ([f"Mr {n}" for n in NUMBERS], "dropped"),
        "Age": (random.normal(30, 12, RECORDS).clip(1, 80).round(1), "amount"),
        "SibSp": (counts(0.5), "amount or nominal"),
        "Ticket": ([f"A/5 {n % 400}" for n in NUMBERS], "dropped"),
        "Fare": (random.gamma(1, 30, RECORDS).round(4), "amount"),
        "Cabin": ([f"C{n}" if n % 4 == 0 else None for n in NUMBERS], "dropped"),
        "Embarked": (words("S", "C", "Q"), "nominal"),
    },
    "NHANES": {
        "SEQN": (NUMBERS + 83_732, "dropped"),
        "RIAGENDR": (codes(1, 2), "nominal"),
        "RIDAGEYR": (random.integers(0, 81, RECORDS), "amount"),
        "RIDRETH3": (codes(1, 2, 3, 4, 6, 7), "nominal"),
        "DMDEDUC2": (codes(1, 2, 3, 4, 5, 9), "nominal"),
        "WTMEC2YR": (random.gamma(2, 15_000, RECORDS), "weight"),
        "SDMVPSU": (codes(1, 2), "nominal"),
        "BMXWT": (random.normal(75, 20, RECORDS).clip(10).round(1), "amount"),
        "BPXSY1": (random.normal(120, 15, RECORDS).round(), "amount"),
    },
    "EU-SILC and LFS": {
        "db030": (households(), "dropped"),
        "rb030": (np.repeat(NUMBERS, 4)[:RECORDS] * 100 + NUMBERS % 4 + 1, "dropped"),
        "pl030": (codes(1, 2, 3, 4, 5, 6, 7), "nominal"),
        "py010n": (money(12_000) * 1.37, "amount"),
        "HHNUM": (households(), "dropped"),
        "FINALWT": (weights(), "weight"),
        "PROV": (codes(10, 11, 12, 13, 24, 35, 46, 47, 48, 59), "nominal"),
        "MARSTAT": (codes(1, 2, 3, 4, 5, 6), "nominal"),
        "SURVYEAR": (codes(2021), "kept"),
        "SURVMNTH": (codes(*range(1, 13)), "nominal"),
        "HRLYEARN": (random.gamma(5, 500, RECORDS).round(), "amount"),
    },
    "bank": {
        "CustNo": (unique() * 7, "dropped"),
        "IBAN": (texts_of("DE02"), "dropped"),
        "branch": (codes(1, 2, 3, 7, 12), "nominal"),
        "credit_limit": (money(5_000) // 100 * 100, "amount"),
        "default": (codes(0, 1), "nominal"),
        "score": (random.integers(300, 850, RECORDS), "amount"),
        "duration": (random.integers(4, 72, RECORDS), "amount"),
        "farmer": ([f"F{n % 60}" for n in NUMBERS], "dropped"),
        "Kostenstelle": (codes(1_000, 2_000, 3_100, 4_200), "nominal"),
        "education-num": (random.integers(1, 17, RECORDS), "amount or nominal"),
        "capital-loss": (np.where(NUMBERS % 20, 0, money(900)), "amount"),
        "matricule": (unique(50_000) * 3, "dropped"),
        "mrn": (drawn_keys(7), "dropped"),
    },
    "school": {
        "student": (unique(20_000), "dropped"),
        "StudentNr": (drawn_keys(7), "dropped"),
        "class": (words("1a", "1b", "2a", "2b"), "nominal"),
        "school_code": (codes(101, 102, 205, 317), "nominal"),
        "region_id": (codes(1, 2, 3, 4), "nominal or dropped"),
        "grade": (codes(1, 2, 3, 4, 5), "nominal"),
        "test_score": (random.normal(500, 90, RECORDS).round(1), "amount"),
        "absences": (counts(5), "amount"),
        "books_at_home": (codes(1, 2, 3, 4, 5, p=[0.1, 0.3, 0.25, 0.2, 0.15]), "nominal"),
        "mother_education": (codes(0, 1, 2, 3, 4, p=[0.05, 0.3, 0.2, 0.4, 0.05]), "nominal"),
        "date_of_test": (days(), "amount"),
        "remark": ([f"note {n % 333}" for n in NUMBERS], "dropped"),
    },
}  # fmt: skip


def proposed(table: pl.DataFrame) -> dict[str, str]:
    plan = Plan.from_toml(propose_plan(table, "t.csv"))
    found = {
        "identifier": "dropped",
        "kept": "kept",
        "sampling_weight": "kept",
        "derived": "derived",
    }
    return {
        name: found.get(attribute.role)
        or ("weight" if name in plan.sampling_weights else "")
        or ("nominal" if plan.confidential[name].is_category else "amount")
        for name, attribute in plan.attributes.items()
    }


def table_of(expected: Expected) -> pl.DataFrame:
    return pl.DataFrame({name: values for name, (values, _) in expected.items()})


@pytest.mark.parametrize("name", TABLES)
def test_proposed_roles(name: str) -> None:
    found = proposed(table_of(TABLES[name]))
    wrong = {c: (found[c], e) for c, (_, e) in TABLES[name].items() if found[c] not in e}
    assert not wrong


def test_keys_stay_keys_whatever_the_order_of_records_and_with_missing_values() -> None:
    for expected in TABLES.values():
        table = table_of(expected).sample(fraction=1.0, shuffle=True, seed=3)
        gaps = table.with_columns(
            pl.when(pl.int_range(pl.len()) % 20 > 0).then(pl.col(c)).alias(c) for c in table.columns
        )
        for changed in (table, gaps):
            found = proposed(changed)
            keys = [c for c, (_, e) in expected.items() if e == "dropped"]
            assert not {c: found[c] for c in keys if found[c] != "dropped"}


def test_the_first_sampling_weight_is_the_plans_and_others_are_masked_as_amounts() -> None:
    table = pl.DataFrame(
        {"pweight": weights(), "hh_weight": weights(3), "gaps_weights": [None, *weights()[1:]],
         "income": money()}
    )  # fmt: skip
    plan = Plan.propose(table)
    assert plan.sampling_weights == ("pweight",)
    assert {"pweight", "hh_weight", "gaps_weights"} <= set(plan.confidential)
    assert plan.kept == ()


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_weights_are_published_where_a_crowd_shares_each_and_clusters_stay_within() -> None:
    w = np.repeat([100.0, 50.0, 20.0], [RECORDS - 50, 25, 25])
    table = pl.DataFrame({"pweight": w, "age": ages(), "income": money()})
    plan = Plan.propose(table)
    assert (plan.names("sampling_weight"), plan.within) == (("pweight",), ("pweight",))
    protect(table, plan)
    fewer = table.with_columns(pweight=pl.Series(np.repeat([100.0, 50.0], [RECORDS - 24, 24])))
    assert Plan.propose(fewer).confidential["pweight"].sampling_weight


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_ten_records_of_a_household_are_not_ten_persons() -> None:
    home = np.repeat(np.arange(60), 10)
    table = pl.DataFrame({
        "hhid": home + 5_000, "pweight": np.where(home < 24, 50.0, 20.0), "age": ages(),
        "rooms": random.integers(1, 9, 60)[home], "income": money(),
    })  # fmt: skip
    plan = Plan.propose(table)
    assert (plan.unit, plan.within) == ("hhid", ())
    assert plan.confidential["pweight"].sampling_weight
    enough = table.with_columns(pweight=pl.Series(np.where(home < 25, 50.0, 20.0)))
    plan = Plan.propose(enough)
    assert plan.within == ("pweight",)
    protect(enough, plan)


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_weights_that_leave_too_few_values_in_a_stratum_are_masked() -> None:
    w = np.repeat([100.0, 50.0], [RECORDS - 12, 12])
    income = pl.Series(money()).to_list()
    table = pl.DataFrame({"pweight": w, "age": ages(), "income": [*income[:-11], *[None] * 11]})
    assert Plan.propose(table).within == ()
    protect(table, Plan.propose(table))


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
def test_the_advice_on_published_weights_works_as_it_is_printed() -> None:
    table = pl.DataFrame({"w": weights(1.0), "n": np.maximum(counts(3), 1), "income": money()})
    for name in ("w", "n"):
        others = {other: "confidential" for other in table.columns if other != name}
        plan = Plan(epsilon=1, attributes={name: "sampling_weight", **others})
        notes = " ".join(protect(table, plan, seed=1).certificate.reading["Notes"])
        advice = re.search(r"mask it \((.*?)\)", notes)
        assert advice is not None
        toml = "\n".join(f"attributes.{name}.{setting}" for setting in advice.group(1).split(", "))
        followed = Plan.from_toml(
            f"epsilon = 0.05\n{toml}\n"
            + "".join(f'attributes.{other} = "confidential"\n' for other in others)
        )
        masked = protect(table, followed, seed=1).data[name]
        assert followed.sampling_weights == (name,)
        assert (masked > 0).all()
