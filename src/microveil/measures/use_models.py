"""Models that a table is used for: trained on original and release, tested on other originals."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from microveil.compare.encoding import Tables, features_of
from microveil.compare.examined import Examined
from microveil.compare.paired_columns import MISSING, Categories, Numbers, kind_of
from microveil.compare.use_columns import UseColumns
from microveil.engines.dtypes import column_of, polars_of
from microveil.measures.learning import MOST_CLASSES, scikit_learn
from microveil.plan.plan import Plan
from microveil.plan.uses import Use
from microveil.types import Booleans, Integers, Reals

_MOST_LEARNED = 10_000
_TRAIN = 0.66
_LEAST_LEAF = 5  # records, so that a chance of a class is more than one record's
_NOT_LEARNED_FROM = ("identifier", "pseudonym", "sampling_weight", "shifted")


class ModelScores(NamedTuple):
    """How well original records are predicted that trained neither model.

    `score` says by what: ``"AUC"`` of classes, where guessing has 0.5, ``"R²"`` of numbers, where
    guessing has 0.
    """

    score: str
    original: float
    released: float


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Original records, of which some train models, and these as they are released.

    A release made of everybody knows the records that test, if under other values: a model trained
    on it would be tested on what it has seen. So those that train are protected anew by the plan.

    Attributes
    ----------
    columns
        Original records, and the released rows of those that train.
    trains
        Which of the original records train.
    seed
        Of the models.
    """

    columns: UseColumns
    trains: Booleans
    seed: int


def held_out(seen: Examined, seed: int) -> HeldOut | None:
    """Hold out a third of the records, or units, and protect the others; None if they are few."""
    random = np.random.default_rng(seed)
    drawn = seen.drawn_again(seen.planned, _MOST_LEARNED, random)
    people = seen.people[drawn, :]
    unit = _units(people, seen.planned)
    trains = (random.random(int(unit.max()) + 1) < _TRAIN)[unit]
    trial = seen.protected_anew(seen.planned, drawn[trains], random)
    if trial is None or trains.all():
        return None
    return HeldOut(UseColumns(replace(trial.given, source=people)), trains, seed)


def _units(people: Any, plan: Plan) -> Integers:  # noqa: ANN401 - a table of narwhals
    """Return which records are of one unit."""
    if plan.unit is None or plan.unit not in people.columns:
        return np.arange(len(people))
    units = polars_of(column_of(people, plan.unit))
    return units.rank("dense").fill_null(0).to_numpy().astype(np.int64)


def model_scores(use: Use, held: HeldOut) -> ModelScores | str:
    """Train a random forest on either table; return the reason if that cannot be."""
    columns, trains = held.columns, held.trains
    names = use.predictors or _others(use, columns)
    if not names:
        return "no_predictors"
    (before, after), score = _targets(columns.either(use.of or ""))
    if score == "AUC" and not 2 <= len(_classes(before)) <= MOST_CLASSES:
        return "not_classes_to_learn"
    parts = [features_of(columns.either(name)) for name in names]
    original, released = (np.hstack([part[table] for part in parts]) for table in (0, 1))
    test = _known(original[~trains], before[~trains])
    trained = [_known(original[trains], before[trains]), _known(released, after)]
    with_original, with_release = (_score(each, test, score, held.seed) for each in trained)
    if with_original is None or with_release is None:
        return "class_not_tested"
    return ModelScores(score, with_original, with_release)


def _others(use: Use, columns: UseColumns) -> list[str]:
    """Return all other columns of both tables that hold numbers or categories."""
    original, released = columns.tables
    attributes = columns.plan.attributes if columns.plan else {}
    return [
        name
        for name in released.columns
        if name != use.of
        and name in original.columns
        and attributes[name].role not in _NOT_LEARNED_FROM
        and None not in {kind_of(column_of(table, name)) for table in columns.tables}
    ]


def _targets(target: Numbers | Categories) -> tuple[Tables, str]:
    """Return what is predicted in both tables, classes as numbers; NaN where it is missing."""
    if isinstance(target, Numbers):
        return (target.original, target.released), "R²"
    original, released = (
        np.where(codes == MISSING, np.nan, codes) for codes in (target.original, target.released)
    )
    return (original, released), "AUC"


def _classes(target: Reals) -> Reals:
    found: Reals = np.unique(target[~np.isnan(target)])
    return found


def _known(features: Reals, target: Reals) -> Tables:
    known = ~np.isnan(target)
    return features[known], target[known]


def _score(train: Tables, test: Tables, score: str, seed: int) -> float | None:
    """Train on some records, test on others; None where a class is missing from either."""
    (features, target), (tested, actual) = train, test
    if min(len(target), len(actual)) < 2:
        return None
    forests = scikit_learn("ensemble")
    settings: Any = {"random_state": seed, "n_jobs": -1, "min_samples_leaf": _LEAST_LEAF}
    if score == "R²":
        forest = forests.RandomForestRegressor(**settings)
        return float(forest.fit(features, target).score(tested, actual))
    classes, known = _classes(actual), np.isin(target, actual)
    if len(classes) < 2 or len(_classes(target[known])) < len(classes):
        return None
    forest = forests.RandomForestClassifier(**settings).fit(features[known], target[known])
    chances = forest.predict_proba(tested)
    given = chances[:, 1] if len(classes) == 2 else chances
    return float(scikit_learn("metrics").roc_auc_score(actual, given, multi_class="ovr"))
