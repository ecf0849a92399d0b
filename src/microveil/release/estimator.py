"""A scikit-learn estimator that trains on protected data. Importing this imports scikit-learn."""
# ruff: noqa: ANN401, N803 - arrays and tables of any kind, by the names scikit-learn gives them

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Self

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.core.choices import MethodName
from microveil.errors import PrivacyWarning, noted, require, warn
from microveil.plan.plan import Plan
from microveil.plan.rules import parse
from microveil.plan.synthetic_checks import require_masked
from microveil.release.protect import protect

try:
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
    from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, get_tags
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    require("sklearn", "learning")  # which says how to install it
    raise


def _has(method: str) -> Callable[["ProtectedEstimator"], bool]:
    def check(self: "ProtectedEstimator") -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)  # says what is missing
        return True

    return check


_BY_DEFAULT: Any = {"anonymity": 10}


class ProtectedEstimator(MetaEstimatorMixin, BaseEstimator):
    """Train an estimator on protected attributes; predict on unprotected data.

    It shows how good a model trained on a release would be: in `cross_val_score` and
    `GridSearchCV`, every fold protects its own training records. The target is not protected.
    Needs ``microveil[learning]``.

    Parameters
    ----------
    estimator
        Any scikit-learn estimator; it is cloned and trained on the protected attributes.
    plan
        What to do with each column of X; the columns of an array are named x0, x1, … Attributes
        that are not confidential, such as the target, may be missing from X. Masked categories
        reach the estimator without encoding: use a pipeline that encodes them. By default every
        column is confidential with epsilon = 1, and values are exchanged among ten records, since
        no row is published; the noise grids of real numbers then follow the
        data, and `fit` warns about that.
    epsilon, k, method
        Override the plan's settings, so that a grid search can vary them.
    random_state
        Makes the noise repeatable. By default it comes from the operating system, as in a release.

    Attributes
    ----------
    estimator_
        The trained estimator.
    plan_
        The plan that protected the training records.
    certificate_
        Their certificate. If something weakens the guarantee, `fit` warns once, and the `notes` of
        the certificate list everything.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(60).reshape(-1, 1)
    >>> model = ProtectedEstimator(LogisticRegression(), epsilon=1.0, k=5, random_state=0)
    >>> model.fit(X, X.ravel() >= 30).score(X, X.ravel() >= 30) > 0.9
    True
    """

    def __init__(
        self,
        estimator: Any,
        plan: Plan | None = None,
        *,
        epsilon: float | None = None,
        k: int | None = None,
        method: MethodName | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.plan = plan
        self.epsilon = epsilon
        self.k = k
        self.method = method
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Self:
        """Protect X and train the estimator on it; `fit_params` go to the estimator."""
        checked = self._checked(X, reset=True)
        if y is not None:
            check_consistent_length(X, y)
        frame = _named(checked)
        self.plan_ = self._plan_for(frame.columns)
        require_masked(self.plan_, "ProtectedEstimator")
        with noted() as notes:
            release = protect(frame.to_native(), self.plan_, keep_order=True, seed=self._seed())
        self.certificate_ = release.certificate
        _warn_of(notes)
        masked = nw.from_native(release.data, eager_only=True)
        self._released = [frame.columns.index(name) for name in masked.columns]
        rows = release.detail.positions
        if rows is not None and len(rows) < len(frame):  # records with missing values were dropped
            y = _safe_indexing(y, rows) if y is not None else None
            fit_params = {
                name: _safe_indexing(value, rows) if _is_per_record(value, len(frame)) else value
                for name, value in fit_params.items()
            }
        given = masked.to_native() if isinstance(checked, nw.DataFrame) else masked.to_numpy()
        self.estimator_ = clone(self.estimator).fit(given, y, **fit_params)
        return self

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict with the trained estimator on data as it is."""
        return self._trained.predict(self._features(X))

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Predict probabilities of classes on data as it is."""
        return self._trained.predict_proba(self._features(X))

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Predict logarithms of probabilities of classes on data as it is."""
        return self._trained.predict_log_proba(self._features(X))

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the trained estimator's decision function on data as it is."""
        return self._trained.decision_function(self._features(X))

    @available_if(_has("score"))
    def score(self, X: Any, y: Any = None, **score_params: Any) -> float:
        """Score the trained estimator on data as it is."""
        return float(self._trained.score(self._features(X), y, **score_params))

    @property
    def _trained(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    @property
    def classes_(self) -> Any:
        """Classes of the trained estimator."""
        return self.estimator_.classes_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for part in ("estimator_type", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, part, getattr(inner, part))
        tags.input_tags.allow_nan = self._takes_missing and inner.input_tags.allow_nan
        tags.input_tags.sparse = False
        tags.non_deterministic = self.random_state is None or inner.non_deterministic
        return tags

    @property
    def _takes_missing(self) -> bool:
        return self.plan is not None and self.plan.missing != "error"

    def _checked(self, X: Any, *, reset: bool) -> nw.DataFrame[Any] | NDArray[Any]:
        """Check X as scikit-learn does; like scikit-learn, take a table without names as array."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and all(isinstance(n, str) for n in frame.columns):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return frame
        finite = "allow-nan" if self._takes_missing else True
        array: NDArray[Any] = validate_data(
            self, X, reset=reset, ensure_all_finite=finite, ensure_min_samples=2 if reset else 1
        )
        return array

    def _features(self, X: Any) -> Any:
        checked = self._checked(X, reset=False)
        released = checked[:, self._released]
        return released.to_native() if isinstance(released, nw.DataFrame) else released

    def _plan_for(self, columns: Sequence[str]) -> Plan:
        chosen = {"epsilon": self.epsilon, "k": self.k, "method": self.method}
        settings: dict[str, Any] = {n: value for n, value in chosen.items() if value is not None}
        if self.plan is None:
            every_column = dict.fromkeys(columns, "confidential")
            return Plan(**_BY_DEFAULT, **{"epsilon": 1.0, "attributes": every_column, **settings})
        used = {
            name: attribute
            for name, attribute in self.plan.attributes.items()
            if name in columns or attribute.role == "confidential"
        }
        rules = [text for text in self.plan.rules if used.keys() >= set(parse(text).names)]
        return self.plan.replace(attributes=used, rules=rules, **settings)

    def _seed(self) -> int | None:
        if self.random_state is None:
            return None
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31))


def _warn_of(notes: list[str]) -> None:
    """Warn once of everything that weakens the guarantee."""
    if notes:
        more = f" (and {len(notes) - 1} more: see certificate_.notes)" if len(notes) > 1 else ""
        warn(f"{notes[0]}{more}", PrivacyWarning)


def _is_per_record(value: Any, records: int) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str) and len(value) == records


def _named(checked: nw.DataFrame[Any] | NDArray[Any]) -> nw.DataFrame[Any]:
    if isinstance(checked, nw.DataFrame):
        return checked
    names = [f"x{i}" for i in range(checked.shape[1])]
    return nw.from_native(pl.DataFrame(checked, schema=names, nan_to_null=True))
