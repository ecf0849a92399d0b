"""The checks of scikit-learn, and what they do not see.

Every check of scikit-learn that applies passes with the defaults (the recommended plan at ε = 1)
and at ε = 10. Two settings make some of them fail, by design: `EXPECTED_TO_FAIL` lists them with
the reason, as docs/reference/python.md does.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from microveil import (
    Confidential,
    DataError,
    Plan,
    PlanError,
    PrivacyWarning,
    ProtectedEstimator,
    protect,
)  # fmt: skip

ignore_grid = pytest.mark.filterwarnings("ignore:attribute 'x:microveil.PrivacyWarning")

X, y = make_classification(
    400, 5, n_informative=3, n_clusters_per_class=1, class_sep=2.0, random_state=0
)
DOMAINS = {f"x{i}": Confidential(lower=-20, upper=20) for i in range(5)}
PLAN = Plan.published(epsilon=50.0, k=5, attributes=DOMAINS)


EXPECTED_TO_FAIL: dict[str, tuple[dict[str, Any], str, set[str]]] = {
    "much noise": (
        {"epsilon": 0.1},
        "they ask for a score above 0.5",
        {"check_regressors_train"},
    ),
    "a large k": (
        {"epsilon": 10.0, "k": 25},
        "they fit 10 to 21 records, and fewer records than k are an error",
        {
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_estimators_dtypes",
            "check_estimators_fit_returns_self",
            "check_estimators_nan_inf",
            "check_estimators_overwrite_params",
            "check_f_contiguous_array_estimator",
            "check_fit2d_1feature",
            "check_fit2d_predict1d",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in_after_fitting",
            "check_readonly_memmap_input",
            "check_regressor_multioutput",
            "check_regressors_no_decision_function",
            "check_regressors_train",
        },
    ),
}


def pooled_too_few(estimator: ProtectedEstimator) -> dict[str, str]:
    """Name the checks that fail since values of few, unrelated records are pooled."""
    ridge = isinstance(estimator.estimator, Ridge)
    return {"check_regressors_train": "ten unrelated attributes are pooled"} if ridge else {}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("why", EXPECTED_TO_FAIL)
def test_only_checks_that_are_documented_fail(why: str) -> None:
    settings, reason, expected = EXPECTED_TO_FAIL[why]
    model = ProtectedEstimator(Ridge(), random_state=0, **settings)
    results = check_estimator(model, on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed
    assert failed <= expected
    page = Path(__file__).parents[2] / "docs" / "reference" / "python.md"
    documented = " ".join(page.read_text(encoding="utf-8").split())
    assert reason in documented
    assert all(name in documented for name in expected)


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        ProtectedEstimator(LogisticRegression(), epsilon=10.0, random_state=0),
        ProtectedEstimator(Ridge(), epsilon=10.0, random_state=0),
        ProtectedEstimator(
            RandomForestClassifier(n_estimators=10, random_state=0), epsilon=10.0, random_state=0
        ),
        ProtectedEstimator(DecisionTreeClassifier(random_state=0), epsilon=10.0),
        ProtectedEstimator(LogisticRegression(), random_state=0),
    ],
    expected_failed_checks=pooled_too_few,
)
def test_scikit_learns_own_checks(
    estimator: ProtectedEstimator, check: Callable[[ProtectedEstimator], None]
) -> None:
    check(estimator)


def test_it_trains_on_what_protect_makes_of_the_data() -> None:
    model = ProtectedEstimator(LogisticRegression(), PLAN, random_state=7).fit(X, y)
    table = pl.DataFrame(X, schema=list(DOMAINS))
    masked = protect(table, PLAN, seed=7, keep_order=True).data.to_numpy()
    expected = LogisticRegression().fit(masked, y)
    assert not np.array_equal(masked, X)
    assert np.array_equal(model.estimator_.coef_, expected.coef_)
    assert model.predict_proba(X) == pytest.approx(expected.predict_proba(X), rel=1e-9)
    assert model.score(X, y) == expected.score(X, y)
    assert model.classes_.tolist() == [0, 1]


def test_noise_is_fresh_unless_seeded() -> None:
    def coefficients(random_state: Any) -> list[float]:  # noqa: ANN401
        model = ProtectedEstimator(LogisticRegression(), PLAN, random_state=random_state)
        return model.fit(X, y).estimator_.coef_.ravel().tolist()  # type: ignore[no-any-return]

    assert coefficients(None) != coefficients(None)
    assert coefficients(1) == coefficients(1) == coefficients(np.int64(1))
    assert coefficients(np.random.RandomState(1)) == coefficients(np.random.RandomState(1))


def test_less_budget_makes_a_worse_model() -> None:
    scores = [
        cross_val_score(
            ProtectedEstimator(LogisticRegression(), PLAN, epsilon=epsilon, random_state=0), X, y
        ).mean()
        for epsilon in (0.001, 1000.0)
    ]
    assert scores[0] < 0.75 < 0.85 < scores[1]


def test_grid_search_over_the_plan_and_the_estimator() -> None:
    model = ProtectedEstimator(DecisionTreeClassifier(random_state=0), PLAN, random_state=0)
    grid = {
        "epsilon": [0.001, 1000.0],
        "k": [3, 20],
        "method": ["iDP-CBLS", "DP-UM"],
        "estimator__max_depth": [2, 4],
    }
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 16
    assert search.best_params_["epsilon"] == 1000.0
    best = search.best_estimator_.plan_
    assert (best.epsilon, best.k) == (1000.0, search.best_params_["k"])
    assert PLAN.epsilon == 50.0


@ignore_grid
def test_a_pipeline_around_it_and_in_it() -> None:
    protected = ProtectedEstimator(LogisticRegression(), epsilon=100.0, random_state=0)
    assert cross_val_score(make_pipeline(StandardScaler(), protected), X, y).mean() > 0.8
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    outer = ProtectedEstimator(inner, PLAN, random_state=0)
    assert cross_val_score(outer, X, y).mean() > 0.8
    assert hasattr(outer, "predict_proba")


# Scikit-learn before 1.9 looks at a Polars table through a protocol that Polars has deprecated.
@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_tables_keep_their_names_and_lose_their_identifiers(kind: Any) -> None:  # noqa: ANN401
    table = kind({"name": [f"n{i}" for i in range(60)], "age": range(60), "size": range(60)})
    plan = Plan.published(
        epsilon=5.0,
        attributes={
            "name": "identifier",
            "age": Confidential(lower=0, upper=100),
            "size": "kept",
            "class": "kept",
        },
    )
    target = np.arange(60) > 30
    model = ProtectedEstimator(DecisionTreeClassifier(), plan, random_state=0).fit(table, target)
    assert model.estimator_.feature_names_in_.tolist() == ["age", "size"]
    assert model.feature_names_in_.tolist() == ["name", "age", "size"]
    assert model.score(table, target) > 0.9


def test_records_left_out_for_missing_values_take_their_target_and_weight_along() -> None:
    values = X.copy()
    values[::4, 0] = np.nan
    weights = np.linspace(0.5, 1.5, len(y))
    present = ~np.isnan(values[:, 0])
    plan = PLAN.replace(missing="drop")
    model = ProtectedEstimator(LogisticRegression(), plan, random_state=1)
    model.fit(values, y, sample_weight=weights)
    table = pl.DataFrame(values[present], schema=list(DOMAINS))
    masked = protect(table, PLAN, seed=1, keep_order=True).data.to_numpy()
    expected = LogisticRegression().fit(masked, y[present], sample_weight=weights[present])
    assert np.array_equal(model.estimator_.coef_, expected.coef_)


def test_missing_values_that_are_kept_reach_the_estimator() -> None:
    values = X.copy()
    values[::4, 0] = np.nan
    plan = PLAN.replace(missing="keep")
    model = ProtectedEstimator(DecisionTreeClassifier(max_depth=4), plan, random_state=1)
    assert model.fit(values, y).score(values, y) > 0.7
    assert model.__sklearn_tags__().input_tags.allow_nan
    with pytest.raises(ValueError, match="NaN"):
        ProtectedEstimator(DecisionTreeClassifier(), PLAN).fit(values, y)


def test_methods_follow_the_estimator() -> None:
    model = ProtectedEstimator(LinearRegression(), PLAN)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "classes_")
    assert hasattr(ProtectedEstimator(LogisticRegression(), PLAN), "decision_function")
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_without_a_plan_nothing_is_read_from_the_data() -> None:
    model = ProtectedEstimator(Ridge(), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[:, :1], y)
    assert model.plan_ == Plan(epsilon=1.0, anonymity=10, attributes={"x0": "confidential"})


def test_one_warning_per_fit_and_a_certificate_of_it() -> None:
    plan = Plan.published(
        epsilon=5.0, attributes={name: Confidential(resolution="data") for name in DOMAINS}
    )
    with pytest.warns(PrivacyWarning) as caught:
        model = ProtectedEstimator(LogisticRegression(), plan).fit(X, y)
    assert len(caught) == 1
    assert str(caught[0].message).startswith("attributes 'x0', 'x1', 'x2', 'x3', 'x4': the noise ")
    assert caught[0].filename == __file__
    assert [note.kind for note in model.certificate_.notes] == ["grid-from-data"]
    assert (model.certificate_.records, model.certificate_.epsilon) == (400, 5.0)
    assert model.certificate_.randomness == "operating system"


def test_every_fold_has_its_own_certificate() -> None:
    model = ProtectedEstimator(LogisticRegression(), PLAN, random_state=0)
    found = cross_validate(model, X, y, cv=4, return_estimator=True, return_train_score=True)
    assert [fitted.certificate_.records for fitted in found["estimator"]] == [300] * 4
    assert found["test_score"].min() > 0.7
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {
        "protectedestimator__epsilon": [40.0], "protectedestimator__plan": [PLAN],
    }, cv=2)  # fmt: skip
    assert search.fit(X, y).best_estimator_[-1].certificate_.epsilon == 40.0


# Scikit-learn before 1.9 looks at a Polars table through a protocol that Polars has deprecated.
@pytest.mark.filterwarnings("ignore:Support for the dataframe interchange:DeprecationWarning")
@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_set_output_around_it_and_in_it(output: str) -> None:
    inner = make_pipeline(StandardScaler(), LogisticRegression()).set_output(transform=output)
    outer = make_pipeline(StandardScaler(), ProtectedEstimator(inner, PLAN, random_state=0))
    outer.set_output(transform=output)
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[output]
    assert isinstance(outer[:-1].fit_transform(X), kind)
    assert outer.fit(X, y).score(X, y) > 0.8
    assert outer[-1].feature_names_in_.tolist() == list(DOMAINS)
    assert outer[-1].estimator_[0].feature_names_in_.tolist() == list(DOMAINS)


def test_a_plan_that_does_not_fit() -> None:
    model = ProtectedEstimator(Ridge(), PLAN)
    with pytest.raises(DataError, match="attribute 'x4': in the plan, but not in the data"):
        model.fit(X[:, :4], y)
    with pytest.raises(DataError, match=r"found 4 records for k = 5"):
        model.fit(X[:4], y[:4])
    with pytest.raises(DataError, match="the plan has none for 'x5'"):
        model.fit(np.hstack([X, X[:, :1]]), y)
    with pytest.raises(PlanError, match="epsilon must be"):
        ProtectedEstimator(Ridge(), PLAN, epsilon=-1.0).fit(X, y)


@pytest.mark.filterwarnings("ignore::microveil.PrivacyWarning")
@pytest.mark.parametrize("as_pandas", [False, True])
def test_categories_go_through_a_pipeline_that_encodes_them(as_pandas: bool) -> None:
    rng = np.random.default_rng(5)
    table = pl.DataFrame({"job": rng.choice(["nurse", "smith", "clerk"], 90),
                          "age": rng.integers(18, 80, 90)})  # fmt: skip
    labels = ((table["job"] == "nurse") | (table["age"] > 60)).to_numpy()
    plan = Plan.published(
        epsilon=20.0,
        k=5,
        attributes={"job": Confidential(kind="nominal"), "age": Confidential(lower=0, upper=99)},
    )
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["job"]), remainder="passthrough"
    )
    pipeline = make_pipeline(encode, DecisionTreeClassifier(random_state=0))
    given = table.to_pandas() if as_pandas else table
    model = ProtectedEstimator(pipeline, plan, random_state=1).fit(given, labels)
    masked = protect(given, plan, seed=1, keep_order=True).data
    expected = clone(pipeline).fit(masked, labels)
    assert np.array_equal(model.predict(given), expected.predict(given))
    assert model.score(given, labels) > 0.8


def test_it_trains_on_each_record_with_its_own_answer() -> None:
    answers = np.arange(200.0)
    records = pl.DataFrame({"x": answers, "age": answers[::-1]})
    plan = Plan.published(
        epsilon=1e6, k=3, attributes=dict.fromkeys(records.columns, "confidential")
    )
    model = ProtectedEstimator(Ridge(), plan, random_state=0).fit(records, answers)
    assert model.score(records, answers) > 0.99
