from pathlib import Path

import numpy as np
import polars as pl
import pytest

from microveil.errors import DataError
from microveil.lab.paper.datasets import DataSet, PaperTable
from microveil.lab.paper.experiments import Experiment
from microveil.lab.paper.runner import run_experiments

TASKS = [Experiment("Tiny", k, 1) for k in (3, 5, None)]


@pytest.fixture
def tables(tiny: DataSet) -> dict[str, PaperTable]:
    values = np.random.default_rng(2).gamma(2.0, 100.0, (60, 2))
    attributes = pl.DataFrame(values, schema=["a", "b"])
    return {"Tiny": PaperTable(tiny, attributes, values[:, 0] > np.median(values[:, 0]))}


@pytest.mark.long
def test_finished_tasks_are_kept_and_not_done_again(
    tables: dict[str, PaperTable], tmp_path: Path
) -> None:
    seen: list[tuple[str, int, int]] = []
    first = run_experiments(TASKS[:2], tables, tmp_path, lambda *step: seen.append(step))
    assert seen == [("experiments", done, 2) for done in range(3)]

    [directory] = tmp_path.iterdir()
    kept = sorted(directory.iterdir())
    assert [path.stem for path in kept] == ["tiny-k-003-run-01", "tiny-k-005-run-01"]
    marked = pl.read_parquet(kept[0]).with_columns(correlation=pl.lit(-7.0))
    marked.write_parquet(kept[0])

    seen.clear()
    again = run_experiments(TASKS, tables, tmp_path, lambda *step: seen.append(step))
    assert seen == [("experiments", done, 3) for done in (2, 3)]
    assert again.filter(k=3)["correlation"].unique().to_list() == [-7.0]
    assert again.filter(k=5).equals(first.filter(k=5))
    assert again.filter(pl.col("k").is_null())["method"].n_unique() == 4

    seen.clear()
    assert run_experiments(TASKS, tables, tmp_path, lambda *step: seen.append(step)).equals(again)
    assert seen == [("experiments", 3, 3)]


def test_what_goes_wrong_in_a_process_is_reported(
    tables: dict[str, PaperTable], tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="choose a smaller k"):
        run_experiments([Experiment("Tiny", 61, 1)], tables, tmp_path)
    [directory] = tmp_path.iterdir()
    assert not list(directory.iterdir())
