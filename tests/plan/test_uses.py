"""Uses in plans: their text form, TOML, and what is refused before any work."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microveil import Confidential, Plan, PlanError, Use

ATTRIBUTES = {
    "income": Confidential(),
    "age": Confidential(),
    "sex": Confidential(kind="nominal"),
    "net pay": Confidential(),
    "region": "kept",
    "died": "kept",
    "name": "identifier",
    "patient": "pseudonym",
}
TEXTS = {
    "mean income": Use.mean("income"),
    "mean income by region, sex": Use.mean("income", by=["region", "sex"]),
    "total income by age(10)": Use.total("income", by="age", bands={"age": 10}),
    "share sex": Use.share("sex"),
    "share sex = female by region": Use.share("sex", "female", by="region"),
    "share sex = 'not known'": Use.share("sex", "not known"),
    "median income": Use.quantile("income", 0.5),
    'quantile 0.9 "net pay" by region': Use.quantile("net pay", 0.9, by="region"),
    "table region, age(0.5)": Use.table("region", "age", bands={"age": 0.5}),
    "income ~ age + sex": Use.regression("income ~ age + sex"),
    "predict died": Use.model("died"),
    "predict died from age, sex": Use.model("died", predictors=["age", "sex"]),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_form(text: str) -> None:
    assert Use.parse(text) == TEXTS[text]
    assert str(TEXTS[text]) == text


def test_settings_of_every_kind() -> None:
    assert Use.parse("quantile 0.9 income by age(10)").model_dump(exclude_defaults=True) == {
        "kind": "quantile", "of": "income", "by": ("age",), "bands": {"age": 10.0}, "at": 0.9,
    }  # fmt: skip
    assert Use.parse("income ~ age + sex").columns == ("income", "age", "sex")


NAMES = st.text(min_size=1).filter(lambda name: "\x00" not in name)


@given(NAMES, NAMES, NAMES, st.floats(1e-6, 1e6))
def test_any_name_survives_the_text_form(of: str, by: str, category: str, width: float) -> None:
    if of == by:
        return
    for use in (
        Use.mean(of, by=by, bands={by: width}),
        Use.share(of, category, by=by),
        Use(kind="regression", of=of, predictors=[by]),
        Use.model(of, predictors=by),
    ):
        assert Use.parse(str(use)) == use


def test_plan_to_toml_and_back() -> None:
    plan = Plan(epsilon=1.0, uses=list(TEXTS), attributes=ATTRIBUTES)
    text = plan.to_toml()
    assert '[[uses]]\nmean = "income"\nby = ["region", "sex"]\n' in text
    assert '[[uses]]\nregression = "income ~ age + sex"\n' in text
    assert '[[uses]]\npredict = "died"\n' in text
    assert '[[uses]]\ntable = ["region", "age"]\n' in text
    assert Plan.from_toml(text) == plan == pickle.loads(pickle.dumps(plan))  # noqa: S301 - our own
    assert plan.uses == tuple(TEXTS.values())
    other = plan.replace(uses=())
    assert plan.diff(other) == "uses: 0 added, 12 removed"
    as_text = 'epsilon = 1.0\nuses = ["mean income"]\n[attributes]\nincome = "confidential"'
    assert Plan.from_toml(as_text).uses == (Use.mean("income"),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mean income bye region", "expected the end at character 13, found 'bye'"),
        ("avg income", "expected mean, total, share, median, quantile, table, predict, or a "
         "regression such as wage ~ age at character 1, found 'avg'"),
        ("mean", "expected the name of an attribute at the end"),
        ("mean by region", "expected the name of an attribute at character 6, found 'by'"),
        ("quantile income", "expected a number at character 10, found 'income'"),
        ("income ~ age * sex", "cannot read '*' at character 14"),
        ("income ~ ", "expected the name of an attribute at the end"),
        ("mean income by age(10", "expected ) at the end"),
        ("mean __import__('os')", "expected the end at character 16, found '('"),
        ("share sex = ", "expected a category, such as female or 'not known' at the end"),
        ("table " + ", ".join("abcdefgh" * 20), "it is too long at character"),
        ("", "expected mean, total"),
    ],
)  # fmt: skip
def test_wrong_text_says_where(text: str, problem: str) -> None:
    with pytest.raises(PlanError) as raised:
        Use.parse(text)
    assert problem in str(raised.value)
    assert "write a use as" in str(raised.value)


@pytest.mark.parametrize(
    ("use", "problem"),
    [
        ("mean incme", "use 'mean incme': no attribute 'incme'; did you mean 'income'?"),
        ("mean sex", "'sex' holds categories; group by it without bands, or take the share of sex"),
        ("share income", "'income' holds numbers; group them into bands, such as income(10)"),
        ("table age", "'age' holds numbers; group them into bands, such as age(10)"),
        ("table sex(10)", "'sex' holds categories"),
        ("income ~ name", "'name' is an identifier; name attributes that are released"),
        ("predict patient", "'patient' is a pseudonym"),
        ("quantile 1.5 income", "a quantile is at a number above 0 and below 1, got 1.5"),
        ("mean income by income", "'income' is named twice"),
        ({"mean": "income", "total": "age"}, "found mean, total"),
        ({"men": "income"}, "found none"),
        ({"mean": "income", "at": 0.5}, "only a quantile has at"),
        ({"table": []}, "a table needs one attribute or more"),
        ({"mean": "income", "bands": {"age": 10}}, "bands of 'age', which is not grouped by"),
        ({"mean": "income", "by": ["age"], "bands": {"age": 0}}, "must be a number above 0"),
        ({"mean": "income", "category": "x"}, "only a share has a category"),
        ({"kind": "regression", "of": "income"}, "a regression needs one attribute or more"),
        ({"predict": "died", "by": ["sex"]}, "predict has no groups"),
        ({"mean": "income", "predictors": ["sex"]}, "only regression and predict have predictors"),
        ({"mean": "income", "weight": "w"}, "unknown key 'weight'"),
    ],
)  # fmt: skip
def test_wrong_uses_are_refused(use: object, problem: str) -> None:
    with pytest.raises(PlanError) as raised:
        Plan(epsilon=1.0, uses=[use], attributes=ATTRIBUTES)  # type: ignore[list-item]
    assert problem in str(raised.value)


def test_a_wrong_use_is_one_problem_with_its_line() -> None:
    text = 'epsilon = 1.0\nuses = ["mean incme"]\n[attributes]\nincome = "confidential"\n'
    with pytest.raises(PlanError) as raised:
        Plan.from_toml(text)
    assert [problem.line for problem in raised.value.problems] == [2]
