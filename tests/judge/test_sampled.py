"""Tables that are too large to be looked at as a whole: what is drawn says what the whole says."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest

from microveil import DataError, Plan, evaluate, protect, protect_file
from microveil.attacks.attack_rows import LINKAGE
from microveil.compare.figures import Sample
from microveil.engines import beside_here as beside
from microveil.judge.evaluated import Evaluation
from microveil.judge.evaluation import also_known
from microveil.show.words.grading import notes_on
from tests.conftest import Run


def people(records: int, attributes: int = 4) -> pl.DataFrame:
    random = np.random.default_rng(0)
    common = random.normal(size=records)
    columns = {
        f"a{i}": (100 * (common + random.normal(size=records))).round() for i in range(attributes)
    }
    kinds = np.array(list("abcdef"))[random.integers(0, 6, records)]
    return pl.DataFrame({**columns, "job": kinds, "region": random.integers(0, 50, records)})


def plan(**settings: Any) -> Plan:  # noqa: ANN401 - whatever a plan takes
    roles = dict.fromkeys([f"a{i}" for i in range(4)], "confidential")
    job = {"role": "confidential", "kind": "nominal", "categories": list("abcdef"), "method": "DP"}
    given: dict[str, Any] = {"epsilon": 1.0, "k": 10,
                             "attributes": {**roles, "job": job, "region": "kept"}}  # fmt: skip
    return Plan.published(**{**given, **settings})


class Files(NamedTuple):
    """An original and its release in files, with the detail."""

    original: Path
    protected: Path
    detail: Path | None

    def evaluate(self, **options: Any) -> Evaluation:  # noqa: ANN401 - as evaluate has them
        return evaluate(self.original, self.protected, detail=self.detail, **options)


def files(folder: Path, table: pl.DataFrame, made_by: Plan) -> Files:
    source = folder / "people.parquet"
    table.write_parquet(source)
    written = protect_file(source, made_by, folder / "out.parquet", detail=True, seed=1)
    return Files(source, written.protected, written.detail)


@pytest.fixture
def small_memory(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine for which every file is large, and of which few records are drawn."""
    monkeypatch.setattr("microveil.release.protect_file.available_memory", lambda: 32)
    monkeypatch.setattr("microveil.compare.examined.DRAWN_OF_LARGE", 1_000)
    monkeypatch.setattr(beside, "PART", 1_100)
    monkeypatch.setattr("microveil.attacks.structure._TRIAL", 500)
    return monkeypatch


def whole_and_sampled(found: Files, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    drawn = found.evaluate()
    monkeypatch.undo()
    return found.evaluate(linkage_sample=None), drawn


@pytest.mark.parametrize(("epsilon", "anonymity"), [(0.02, 0), (1.0, 10)])
def test_figures_of_a_sample_hold_those_of_the_whole(
    epsilon: float, anonymity: int, tmp_path: Path, small_memory: pytest.MonkeyPatch
) -> None:
    """Nine in ten hold them; looked for among the drawn ones alone, too many would be found."""
    found = files(tmp_path, people(3_000), plan(epsilon=epsilon, anonymity=anonymity))
    whole, drawn = whole_and_sampled(found, small_memory)
    assert (drawn.records, drawn.released, drawn.drawn, whole.drawn) == (3_000, 3_000, 1_000, None)
    held = {}
    for figure in drawn.figures:
        truth = whole.value(figure.measure, figure.attribute)
        if figure.sample is None:  # of the whole release
            assert figure.value == pytest.approx(truth, rel=0.01)
            continue
        low, high = figure.sample.low, figure.sample.high
        if low is None or high is None:  # of records that are protected anew
            continue
        assert low <= figure.value * 1.001 + 1e-9
        held[figure.measure, figure.attribute] = low * 0.99 - 1e-6 <= truth <= high * 1.01
    of_all = {("linkage.structure", None): drawn.value("linkage.structure") >= 0.9 * whole.value(
        "linkage.structure")}  # fmt: skip
    held |= of_all
    assert len(held) > 40
    assert np.mean(list(held.values())) >= 0.88
    assert sum(held[attack, None] for attack in LINKAGE) >= 2  # an interval misses one in twenty


def test_without_the_detail_tables_are_compared_as_wholes(
    tmp_path: Path, small_memory: pytest.MonkeyPatch
) -> None:
    original, protected, _ = files(tmp_path, people(2_000), plan())
    found = evaluate(original, protected, quasi_identifiers=["region"])
    assert found.drawn == 1_000
    assert not found.scored
    assert abs(found.value("utility.means", "a0")) < 0.2  # of two samples
    classes = (
        protect(people(2_000), plan(), seed=1, keep_order=True)
        .data["region"]
        .value_counts()["count"]
    )
    assert found.value("risk.smallest_class", "region") == classes.min()
    assert any("1,000 of 2,000 records were drawn at random" in note for note in notes_on(found))
    with pytest.raises(DataError, match="evaluate again with known and people"):
        also_known(found, ["region"])
    small_memory.undo()


def test_a_report_of_a_large_file_is_written_from_drawn_records(
    run: Run, tmp_path: Path, small_memory: pytest.MonkeyPatch
) -> None:
    people(2_000).select("a0", "a1", "region").write_csv("people.csv")
    small_memory.delattr("microveil.cli.job.load_table")  # which would read it whole
    code, out, err = run(
        "protect people.csv -o out.csv --epsilon 1 --k 5 --anonymity 10 --keep region --detail "
        "--report before.html --no-verdict"
    )
    assert (code, err) == (0, "")
    assert "before.html (do not publish)" in out
    code, out, err = run("evaluate people.csv out.csv --report after.html")
    assert (code, err) == (0, "")
    assert "from a sample of 1,000 of 2,000 people" in " ".join(out.split())
    for page in ("before.html", "after.html"):
        text = Path(page).read_text(encoding="utf-8")
        assert "2,000 released records" in text
        assert "1,000 of 2,000 records were drawn at random" in text
        assert "How risky is it?" in text
    left = sorted(path.name for path in tmp_path.iterdir())
    assert not [name for name in left if name.startswith(".microveil")]


def test_uses_of_a_sample_are_scaled_to_the_whole(
    tmp_path: Path, small_memory: pytest.MonkeyPatch
) -> None:
    found = files(tmp_path, people(3_000), plan(uses=["table job", "total a0", "mean a0 by job"]))
    whole, drawn = whole_and_sampled(found, small_memory)
    exact = {f.attribute: f for f in whole.figures if f.measure == "use.estimate"}
    sampled = {f.attribute: f for f in drawn.figures if f.measure == "use.estimate"}
    assert exact.keys() == sampled.keys()
    assert len(exact) == 13
    for about, figure in sampled.items():
        assert figure.sample == Sample(1_000, 3_000)
        assert exact[about].sample is None
        low, high, value = (figure.facts[f"original{end}"] for end in ("_low", "_high", ""))
        wide = 2.5 * (float(str(high)) - float(str(low))) / 2  # five standard errors, nearly
        assert abs(float(str(value)) - float(str(exact[about].facts["original"]))) < wide
    counts = [float(str(f.facts["released"])) for about, f in sampled.items() if "table" in about]
    assert sum(counts) == pytest.approx(3_000)
