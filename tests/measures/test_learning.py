import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression
from sklearn.metrics import precision_score, recall_score
from sklearn.neighbors import KNeighborsClassifier

from microveil import DataError
from microveil.measures.learning import class_scores
from microveil.types import Reals


def test_f_measures_by_hand() -> None:
    """The nearest of the first six records decides; the last four test."""
    original = np.array([[0.0], [1], [2], [10], [11], [12], [0.4], [1.4], [10.4], [5.9]])
    masked = original.copy()
    masked[3] = 5  # moves «b» towards «a»: 5.9 is now nearer to it than to 2
    target = np.array(["a", "a", "a", "b", "b", "b", "a", "a", "b", "a"])
    nearest = KNeighborsClassifier(n_neighbors=1)
    scores = class_scores(original, masked, target, estimator=nearest, train=0.6)
    # On the original all four are right. On the masked one of three «a» is called «b»:
    # a: precision 1, recall 2/3, F = 4/5; b: precision 1/2, recall 1, F = 2/3.
    assert [s.label for s in scores] == ["a", "b"]
    assert [s.original for s in scores] == pytest.approx([1, 1])
    assert [s.protected for s in scores] == pytest.approx([4 / 5, 2 / 3])


def test_f_measures_against_precision_and_recall() -> None:
    rng = np.random.default_rng(0)
    original = rng.normal(size=(300, 3))
    masked = original + rng.normal(scale=1.0, size=original.shape)
    target = (original.sum(axis=1) > 0).astype(int)
    scores = class_scores(original, masked, target, seed=3)
    forest = RandomForestClassifier(random_state=3).fit(masked[:198], target[:198])  # 66% of 300
    predicted = forest.predict(original[198:])
    for score in scores:
        is_class, called = target[198:] == score.label, predicted == score.label
        precision, recall = precision_score(is_class, called), recall_score(is_class, called)
        assert score.protected == pytest.approx(2 * precision * recall / (precision + recall))
    assert scores == class_scores(original, masked, target, seed=3)


def test_a_class_that_is_never_predicted_scores_0_and_one_never_tested_has_no_score() -> None:
    target = np.array([0, 0, 0, 1, 0, 0, 2, 0, 0, 0])
    scores = class_scores(
        FEATURES, FEATURES, target, estimator=DummyClassifier(strategy="most_frequent"), train=0.6
    )
    assert [s.original for s in scores] == pytest.approx([6 / 7, None, 0.0])
    assert [s.protected for s in scores] == [s.original for s in scores]


FEATURES: Reals = np.arange(10.0)[:, np.newaxis]
HALVES = np.repeat([0, 1], 5)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (np.ones(10), "2 to 50 classes, found 1;"),
        (HALVES[:9], r"each of the 10 records, got an array of shape \(9,\)"),
        (np.repeat([0, 1], [7, 3]), "first 6 records, which train, are all of one class"),
    ],
)
def test_unusable_targets(target: Reals, message: str) -> None:
    with pytest.raises(DataError, match=message):
        class_scores(FEATURES, FEATURES, target)


def test_a_target_with_too_many_classes() -> None:
    features = np.arange(200.0)[:, np.newaxis]
    with pytest.raises(DataError, match=r"2 to 50 classes, found 200; group its values"):
        class_scores(features, features, features.ravel())


def test_unusable_settings() -> None:
    with pytest.raises(DataError, match="classifier, got LinearRegression"):
        class_scores(FEATURES, FEATURES, HALVES, estimator=LinearRegression())
    with pytest.raises(DataError, match="share above 0 and below 1, got 1"):
        class_scores(FEATURES, FEATURES, HALVES, train=1)
    with pytest.raises(DataError, match="too few records to train on 66% of them: found 1"):
        class_scores(FEATURES[:1], FEATURES[:1], HALVES[:1])
