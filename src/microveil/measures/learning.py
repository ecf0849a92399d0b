"""Learning: train on the release, test on the original, as the paper does."""

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from microveil.compare.asked import Asked
from microveil.compare.encoding import encoded
from microveil.compare.examined import Examined
from microveil.compare.figures import Figure, Items, NotComputed
from microveil.compare.pairing import Pair
from microveil.errors import DataError, require
from microveil.measures.distances import check_records
from microveil.types import Reals

MOST_CLASSES = 50
F_MEASURES = ("learning.f_measure", "learning.f_measure_original")


def scikit_learn(part: str = "base") -> Any:  # noqa: ANN401 - scikit-learn has no types
    """Import a part of scikit-learn, or say how to install it."""
    return require(f"sklearn.{part}", "learning")


@dataclass(frozen=True)
class ClassScore:
    """F-measures of one class: of a model trained on the release and of one on the original.

    Both are None where no test record is of this class.
    """

    label: Any
    protected: float | None
    original: float | None


def class_scores(
    original: Reals,
    masked: Reals,
    target: NDArray[Any],
    *,
    estimator: Any = None,  # noqa: ANN401 - scikit-learn has no types
    train: float = 0.66,
    seed: int = 0,
) -> list[ClassScore]:
    """Train on masked and on original records, test on other original records.

    Parameters
    ----------
    original, masked
        Records × attributes, in the same order.
    target
        The class of each record, which both models are given as it is.
    estimator, train, seed
        As for `scores_of`; the seed is the same for both models.

    Examples
    --------
    >>> original = np.arange(100.0)[:, np.newaxis] % 10
    >>> scores = class_scores(original, original + 0.25, original.ravel() > 4)
    >>> [(str(score.label), score.protected, score.original) for score in scores]
    [('False', 1.0, 1.0), ('True', 1.0, 1.0)]
    """
    protected, unprotected = (
        scores_of(table, original, target, estimator=estimator, train=train, seed=seed)
        for table in (masked, original)
    )
    return [ClassScore(label, protected[label], unprotected[label]) for label in protected]


def scores_of(
    training: Reals,
    original: Reals,
    target: NDArray[Any],
    *,
    estimator: Any = None,  # noqa: ANN401 - scikit-learn has no types
    train: float = 0.66,
    seed: int = 0,
) -> dict[Any, float | None]:
    """Train a model, test it on other original records, and return each class's F-measure.

    The first 66% of the records train, the others test. The F-measure of a class is the harmonic
    mean of precision and recall, and 0 for a class that is never predicted; None where no test
    record is of the class.

    Parameters
    ----------
    training
        Records × attributes to train on: masked ones, or the original ones themselves.
    original
        The original records, in the same order.
    target
        The class of each record.
    estimator
        A scikit-learn classifier; by default a random forest.
    train
        Share of the records to train on.
    seed
        Of the default estimator.
    """
    check_records(original, training)
    trained, first, classes = _trained(training, target, estimator, train, seed)
    return _scores(trained.predict(original[first:]), target[first:], classes)


def f_and_area(
    training: Reals,
    original: Reals,
    target: NDArray[Any],
    *,
    estimator: Any = None,  # noqa: ANN401 - scikit-learn has no types
    train: float = 0.66,
    seed: int = 0,
) -> tuple[float, float | None]:
    """Train and test once; return the mean F-measure over the classes and the AUC.

    The area under the ROC curve, of more than two classes the mean over each against all others, is
    None where a class is missing from the records tested. Values may be missing where the estimator
    takes that.

    Parameters
    ----------
    training, original, target, estimator, train, seed
        As for `scores_of`.

    Examples
    --------
    >>> original = np.arange(100.0)[:, np.newaxis] % 10
    >>> f_and_area(original + 0.25, original, original.ravel() > 4)
    (1.0, 1.0)
    """
    trained, first, classes = _trained(training, target, estimator, train, seed)
    actual, chances = target[first:], trained.predict_proba(original[first:])
    scores = _scores(trained.classes_[chances.argmax(axis=1)], actual, classes)
    known = [score for score in scores.values() if score is not None]
    if len(known) < len(classes) or len(trained.classes_) < len(classes):
        return float(np.mean(known)), None
    given = chances[:, 1] if len(classes) == 2 else chances
    area = scikit_learn("metrics").roc_auc_score(actual, given, multi_class="ovr")
    return float(np.mean(known)), float(area)


def _trained(
    training: Reals,
    target: NDArray[Any],
    estimator: Any,  # noqa: ANN401 - scikit-learn has no types
    train: float,
    seed: int,
) -> tuple[Any, int, NDArray[Any]]:
    """Return a model of the first records, how many these are, and all classes."""
    first = _split(len(training), train)
    classes = _classes(target, len(training), first)
    model = scikit_learn("base").clone(_classifier(estimator, seed))
    return model.fit(training[:first], target[:first]), first, classes


def _scores(
    predicted: NDArray[Any], actual: NDArray[Any], classes: NDArray[Any]
) -> dict[Any, float | None]:
    scores = scikit_learn("metrics").f1_score(
        actual, predicted, labels=classes, average=None, zero_division=0.0
    )
    return {
        label: float(score) if np.any(actual == label) else None
        for label, score in zip(classes, scores, strict=True)
    }


@dataclass(frozen=True, eq=False)
class Lesson:
    """What there is to learn from a pair: records complete in both tables, and their classes."""

    name: str
    original: Reals
    released: Reals
    classes: NDArray[Any]


def lesson_of(pair: Pair, target: Any) -> Lesson:  # noqa: ANN401 - a name, or classes
    """Take from a pair whose records are paired what can be learned."""
    name, classes = open_target(pair.source, target)
    original, released = encoded(pair)
    original = original[pair.positions]
    usable = ~np.isnan(original).any(axis=1) & ~np.isnan(released).any(axis=1)
    usable &= ~classes.is_null().to_numpy().astype(np.bool_)[pair.positions]
    labels = classes.to_numpy()[pair.positions][usable]
    labels = labels.astype(str) if labels.dtype == object else labels
    return Lesson(name, original[usable], released[usable], labels)


def learning_figures(seen: Examined, asked: Asked) -> Items:
    """Compare a model trained on the release with one trained on the original, class by class."""
    lesson = lesson_of(seen.pair, asked.target)
    scores = class_scores(
        lesson.original,
        lesson.released,
        lesson.classes,
        estimator=asked.estimator,
        train=asked.train,
        seed=asked.seed,
    )
    for score in scores:
        about = f"{lesson.name} = {score.label}"
        if score.protected is None or score.original is None:
            yield NotComputed(F_MEASURES, "class_not_tested", about)
            continue
        yield Figure("learning.f_measure", about, score.protected, {"original": score.original})
        yield Figure("learning.f_measure_original", about, score.original)


def open_target(source: nw.DataFrame[Any], target: Any) -> tuple[str, nw.Series[Any]]:  # noqa: ANN401
    """Return the name of a target, a column of the original or an array, and its classes."""
    scikit_learn()  # without it nothing can be learned
    if isinstance(target, str):
        if target not in source.columns:
            raise DataError(
                f"target {target!r} is not in the original (columns: {', '.join(source.columns)})"
            )
        return target, source[target]
    series = nw.from_native(target, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series):
        series = nw.from_native(pl.Series(np.asarray(target), nan_to_null=True), series_only=True)
    if len(series) != len(source):
        raise DataError(
            f"target must hold one class for each of the {len(source):,} original records, "
            f"found {len(series):,}"
        )
    return "class", series


def _split(records: int, train: float) -> int:
    if not 0 < train < 1:
        raise DataError(f"train must be a share above 0 and below 1, got {train}")
    first = int(records * train)
    if first == 0 or first == records:
        raise DataError(f"too few records to train on {train:.0%} of them: found {records:,}")
    return first


def check_number_of_classes(found: int) -> None:
    """Refuse a target with too few or too many classes to learn."""
    if not 2 <= found <= MOST_CLASSES:
        raise DataError(
            f"target must hold from 2 to {MOST_CLASSES} classes, found {found:,}; "
            "group its values or choose another target"
        )


def _classes(target: NDArray[Any], records: int, first: int) -> NDArray[Any]:
    if target.shape != (records,):
        raise DataError(
            f"target must hold one class for each of the {records:,} records, "
            f"got an array of shape {target.shape}"
        )
    classes = np.unique(target)
    check_number_of_classes(len(classes))
    if len(np.unique(target[:first])) == 1:
        raise DataError(
            f"the first {first:,} records, which train, are all of one class; "
            "shuffle the original before protecting it, or choose another target"
        )
    return classes


def _classifier(estimator: Any, seed: int) -> Any:  # noqa: ANN401 - scikit-learn has no types
    if estimator is None:
        return scikit_learn("ensemble").RandomForestClassifier(random_state=seed, n_jobs=-1)
    if not scikit_learn("base").is_classifier(estimator):
        raise DataError(
            f"estimator must be a scikit-learn classifier, got {type(estimator).__name__}"
        )
    return estimator
