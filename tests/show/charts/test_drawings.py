"""Charts by themselves: what data they hold, and that names are data only."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from microveil import evaluate, protect
from microveil.compare.pairing import pair_tables
from microveil.plan.sample import people, people_plan
from microveil.show.charts.distributions import bars, histogram
from microveil.show.charts.overviews import amounts, heat_map, spans
from microveil.show.charts.render import to_svg
from microveil.show.charts.use_chart import use_chart
from microveil.show.shapes import correlation_matrices, shapes, widths
from microveil.show.words.use_words import UseRow
from tests.show.report.hostile import KINDS, NAMES


def test_names_are_data_under_fixed_field_names() -> None:
    share = [0.5] * len(NAMES)
    drawn = [
        bars(NAMES, share, share, title=NAMES[0], description=NAMES[1]),
        amounts(NAMES, share, title=NAMES[0], description=NAMES[1]),
        spans(NAMES, share, share, share, title=NAMES[0], description=NAMES[1]),
        heat_map(NAMES, [share] * len(NAMES), limit=1, description=NAMES[1]),
        histogram([0, 1], [1], [1], title=NAMES[0], description=NAMES[1]),
    ]
    for chart in drawn:
        spec = chart.to_dict()
        assert spec["description"] == NAMES[1]
        spec.pop("datasets", None)
        layers = spec["layer"]
        for layer in layers:
            for channel in layer["encoding"].values():
                for part in channel if isinstance(channel, list) else [channel]:
                    assert part.get("field", "label") in {
                        "label", "series", "amount", "low", "middle", "high", "row", "column",
                        "value", "start", "end", "share", "none",
                    }  # fmt: skip
        assert "expr" not in json.dumps(layers)
        assert "signal" not in json.dumps(layers)


@pytest.mark.parametrize("name", ["a\nb", "\\", '\\" + (1 / 0) + "', *NAMES])
def test_a_use_of_any_name_is_drawn(name: str) -> None:
    use = f'mean x by "{name}"'
    row = UseRow(use, "", 40.0, 39.0, 41.0, 40.5, 39.4, 41.6, 0.0125)
    assert to_svg(use_chart(use, [row])).count("<path") > 2


def test_names_of_what_every_object_has_are_drawn_as_others_are() -> None:
    own = ["constructor", "__proto__", "toString", "valueOf", "hasOwn", "isPrototypeOf"]
    plain = [f"name {place}" for place in range(len(own))]
    share = [0.1 * place for place in range(1, len(own) + 1)]
    for names, others in ((own, plain), ([own[0]], [plain[0]])):
        for chart, other in zip(_all_of(names, share), _all_of(others, share), strict=True):
            svg = to_svg(chart)
            assert all(f">{name}</text>" in svg for name in names)
            assert svg.count("<path") == to_svg(other).count("<path") > len(names)


def _all_of(names: list[str], share: list[float]) -> list[Any]:
    values = share[: len(names)]
    charts = (
        bars(names, values, values, title="share", description=""),
        amounts(names, values, title="share", description=""),
        spans(names, values, values, values, title="share", description=""),
        heat_map(names, [values] * len(names), limit=1, description=""),
    )
    return [chart.properties(width=400) for chart in charts]


def test_numbers_are_counted_in_bins_that_hold_them_all() -> None:
    table = people(400)
    release = protect(table, people_plan(), seed=1, keep_order=True)
    pair = pair_tables(table, release.data, release.detail, release.plan)
    found = list(shapes(pair))
    described = {shape.shares.name: shape.shares for shape in found}
    assert list(described) == list(people_plan().confidential)
    for name, shape in described.items():
        outside = [n / int(table[name].count()) for n in shape.outside]
        assert sum(shape.before) + outside[0] == pytest.approx(1)
        assert sum(shape.after) + outside[1] == pytest.approx(1)
        assert len(shape.before) <= 60
    children = described["children"]
    counts = np.bincount(table["children"].to_numpy()) / 400
    assert np.allclose(children.before, counts[: len(children.before)])
    education = described["education"]
    assert education.labels == ("primary", "secondary", "tertiary")
    assert education.before[0] == (table["education"] == "primary").mean()
    since = described["since"]
    assert since.clock == "date"
    day = 86_400_000
    assert (
        since.edges[0] >= table["since"].cast(pl.Int32).cast(pl.Int64).to_numpy().min() * day - day
    )
    assert (
        since.edges[-1]
        <= (table["since"].cast(pl.Int32).cast(pl.Int64).to_numpy().max() + 3650) * day
    )
    rows = {shape.shares.name: shape.rows for shape in found}
    other = {what: (before, after) for what, before, after in rows["other"]}
    missing = f"{table['other'].null_count():,}"
    assert other["missing"] == (missing, missing)


def test_correlations_and_widths_agree_with_the_evaluation() -> None:
    table = people(400)
    release = protect(table, people_plan(), seed=1, keep_order=True)
    found = evaluate(table, release)
    pair = pair_tables(table, release.data, release.detail, release.plan)
    names, before, after = correlation_matrices(pair)
    i, j = names.index("age"), names.index("hours")
    change = found.value("utility.pearson", "age × hours")
    assert after[i, j] - before[i, j] == pytest.approx(change)
    for name, _, median, high in widths(pair).iter_rows():
        assert median == pytest.approx(found.value("risk.width_median", name))
        assert high == pytest.approx(found.value("risk.width_90", name))


def test_many_categories_are_put_together() -> None:
    table = pl.DataFrame({"c": [f"kind {i % 50}" for i in range(500)], "x": range(500)})
    pair = pair_tables(table, table, positions=np.arange(500), attributes=["c"])
    ((shares, _),) = shapes(pair)
    assert len(shares.labels) == 21
    assert shares.labels[-1] == "… 30 more categories"
    assert shares.before[-1] == pytest.approx(0.6)
    assert KINDS[0] not in shares.labels
