from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest

from microveil.lab.paper.datasets import DataSet, PaperTable
from microveil.lab.paper.diagnosis import Diagnosis, diagnose
from microveil.lab.paper.experiments import Experiment, perform


@pytest.fixture(scope="module")
def tables(tiny: DataSet) -> Mapping[str, PaperTable]:
    """One attribute without ties; one in steps of 50, 20 and 10 records that tells the class."""
    generator = np.random.default_rng(1)
    steps = generator.permutation(np.repeat([1.0, 2.0, 10.0], [50, 20, 10]))
    attributes = pl.DataFrame({"spread": np.arange(80.0), "FICA": steps})
    return {"Census": PaperTable(tiny, attributes, steps > 1.5)}


@pytest.fixture(scope="module")
def diagnosis(tables: Mapping[str, PaperTable]) -> Diagnosis:
    return diagnose(tables, {"Census": [4, 5]}, runs=2)


def test_clusters_of_equal_values_are_counted(
    tables: Mapping[str, PaperTable], diagnosis: Diagnosis
) -> None:
    assert diagnosis.without_noise("Census", 5, "spread") == 0
    assert diagnosis.without_noise("Census", 5, "FICA") == 1
    # Clusters of 4: the one with the 50th and the one with the 70th of 80 values are mixed.
    assert diagnosis.without_noise("Census", 4, "FICA") == 72 / 80
    released = perform(Experiment("Census", 4, 1), tables["Census"]).filter(method="iDP-CBLS")
    assert released["without_noise"].unique().to_list() == [diagnosis.without_noise("Census", 4)]


def test_local_sensitivity_is_compared_with_global(diagnosis: Diagnosis) -> None:
    """Domains end at 118.5 and 15; a cluster reaches to the end that is further away."""
    lows, highs = np.arange(0, 80, 5.0), np.arange(4, 80, 5.0)
    spread = np.mean((np.maximum(118.5 - lows, highs) / 118.5) ** 2)
    steps = (10 * 14**2 + 4 * 13**2 + 2 * 10**2) / 16 / 15**2
    weights = [118.5**2 / np.var(np.arange(80), ddof=1)]
    weights += [15**2 / np.var(np.repeat([1, 2, 10], [50, 20, 10]), ddof=1)]
    expected = np.average([spread, steps], weights=weights)
    assert diagnosis.local_to_global("Census", 5) == pytest.approx(expected)
    attribute, part = diagnosis.widest("Census")
    assert attribute == "spread" if weights[0] > weights[1] else attribute == "FICA"
    assert part == pytest.approx(max(weights) / sum(weights))


def test_learning_from_tied_records_is_told_apart(diagnosis: Diagnosis) -> None:
    learning = diagnosis.learning
    assert learning["tied"].to_list() == [True, False, True, False]
    assert learning.filter(tied=True)["f_second_class"].min() > 0.9  # type: ignore[operator]
    assert learning.filter(tied=False)["f_second_class"].max() < 0.9  # type: ignore[operator]
