from pathlib import Path

import polars as pl
import pytest

from microveil.lab.paper.experiments import ALPHAS
from microveil.lab.paper.paper_figures import draw_figures


@pytest.fixture(scope="module")
def paths(as_published: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return draw_figures(as_published, tmp_path_factory.mktemp("figures"))


def test_four_figures_as_svg_and_png(paths: list[Path]) -> None:
    assert sorted(path.name for path in paths) == sorted(
        f"{figure}-{dataset}.{ending}"
        for figure in ("sse", "f-measure")
        for dataset in ("census", "wine-quality")
        for ending in ("svg", "png")
    )
    assert sorted(paths[0].parent.iterdir()) == sorted(paths)
    for path in paths:
        start = path.read_bytes()[:8]
        assert start.startswith(b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else b"<svg")


def test_every_figure_has_a_line_for_microveil(paths: list[Path]) -> None:
    for path in paths:
        if path.suffix == ".svg":
            drawing = path.read_text(encoding="utf-8")
            panels = 3 if path.name.startswith("sse") else 6
            in_legend = 1
            lines = [line for line in drawing.lower().split("<path ") if 'stroke="#cc79a7"' in line]
            assert len(lines) == len(ALPHAS) * panels + in_legend


def test_the_same_results_give_the_same_drawing(
    as_published: pl.DataFrame, paths: list[Path], tmp_path: Path
) -> None:
    for again in draw_figures(as_published.filter(dataset="Census"), tmp_path):
        assert again.read_bytes() == (paths[0].parent / again.name).read_bytes()
