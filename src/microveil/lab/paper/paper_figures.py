"""The paper's four figures, with a line for microveil, for print and for colour-blind readers."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from microveil.formats import moved_into_place
from microveil.lab.paper.curves import Curves
from microveil.lab.paper.datasets import CENSUS, DATA_SETS, WINE
from microveil.lab.paper.experiments import ALPHAS, MICROVEIL, PAPER_EPSILONS
from microveil.show.charts.canvas import alt
from microveil.show.charts.palette import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, VERMILION
from microveil.show.charts.panels import Panel, StyledLine, panels
from microveil.show.charts.render import to_png, to_svg
from microveil.types import Reals

# A broad band shows behind curves that lie on it; marks tell lines apart without colour.
_LOOKS = {
    "DP": StyledLine("DP", colour=GREY, width=3.5),
    MICROVEIL: StyledLine("microveil (noise-optimal, penalised isotonic)", colour=PINK, width=3.5),
    "DP-UM": StyledLine("DP-UM", colour=ORANGE, shape="square"),
    "iDP-LS": StyledLine("iDP-LS", colour=BLUE, shape="triangle-up"),
    "iDP-CBLS": StyledLine("iDP-CBLS", colour=VERMILION, shape="circle"),
}
_ORIGINAL = StyledLine("trained on original data", colour=GREEN)
_CONSTANT = StyledLine("always answering this class", colour=BLACK, dash=(1.5, 3.0))
_DASHES = dict(zip(ALPHAS, ((), (4.0, 2.0)), strict=True))
_LEFT_TO_RIGHT = {CENSUS.name: (0, 1), WINE.name: (1, 0)}  # classes, as in the paper
_TICKS = (3, 5, 10, 20, 50, 100, 200, 400)


def draw_figures(results: pl.DataFrame, directory: Path) -> list[Path]:
    """Draw the four figures as SVG and PNG into a directory and return their paths."""
    curves = Curves(results)
    paths = []
    for dataset in curves.datasets:
        name = dataset.lower().replace(" ", "-")
        paths += _save(_draw_sse(curves, dataset), directory / f"sse-{name}")
        paths += _save(_draw_f(curves, dataset), directory / f"f-measure-{name}")
    return paths


def _draw_sse(curves: Curves, dataset: str) -> "alt.VConcatChart":
    rows = [
        [
            Panel(
                f"ε = {epsilon:g}",
                [
                    line
                    for method in _LOOKS
                    for line in _lines(
                        curves.ks(dataset), np.log10(curves.sse(dataset, method, epsilon)), method
                    )
                ],
            )
        ]
        for epsilon in PAPER_EPSILONS
    ]
    return panels(
        rows,
        title=f"{dataset}: mean SSE of the masked data",
        note=f"distances in standard deviations, means over {_runs(curves)}",
        across="k, records in a cluster",
        up="log10 of mean SSE",
        ticks=_TICKS,
        legend=[
            [_LOOKS[name] for name in ("DP", "DP-UM", "iDP-LS", "iDP-CBLS")],
            [_LOOKS[MICROVEIL], *_alpha_lines()],
        ],
        width=400,
    )


def _draw_f(curves: Curves, dataset: str) -> "alt.VConcatChart":
    rows = [
        [_f_panel(curves, dataset, epsilon, class_) for class_ in _LEFT_TO_RIGHT[dataset]]
        for epsilon in PAPER_EPSILONS
    ]
    return panels(
        rows,
        title=f"{dataset}: F-measure of a random forest trained on masked data",
        note=f"tested on original data, means over {_runs(curves)}; each class has its own scale",
        across="k, records in a cluster",
        up="F-measure",
        ticks=_TICKS,
        legend=[
            [_LOOKS["iDP-LS"], _LOOKS["iDP-CBLS"], _ORIGINAL, _CONSTANT],
            [_LOOKS[MICROVEIL], *_alpha_lines()],
        ],
        width=260,
    )


def _f_panel(curves: Curves, dataset: str, epsilon: float, class_: int) -> Panel:
    ks = curves.ks(dataset)
    levels = (
        (_ORIGINAL, curves.f_original(dataset)[class_]),
        (_CONSTANT, curves.f_constant(dataset)[class_]),
    )
    lines = [
        replace(look, points=((ks[0], float(level)), (ks[-1], float(level))))
        for look, level in levels
    ]
    for method in (MICROVEIL, "iDP-LS", "iDP-CBLS"):
        lines += _lines(ks, curves.f(dataset, method, epsilon)[class_], method)
    name = DATA_SETS[dataset].class_names[class_]
    return Panel(f"ε = {epsilon:g}, class “{name}”", lines)


def _lines(ks: Sequence[int], by_alpha: Reals, method: str) -> Iterator[StyledLine]:
    look = _LOOKS[method]
    for alpha, values in zip(ALPHAS, by_alpha, strict=True):
        yield replace(
            look,
            points=tuple((k, float(value)) for k, value in zip(ks, values, strict=True)),
            dash=tuple(length * look.width / 1.3 for length in _DASHES[alpha]),
            hollow=alpha != ALPHAS[0],
        )


def _alpha_lines() -> list[StyledLine]:
    return [
        StyledLine(f"α = {alpha:g}: domain [0, {alpha:g}·max]", dash=dash)
        for alpha, dash in _DASHES.items()
    ]


def _runs(curves: Curves) -> str:
    return f"{curves.runs} runs" if curves.runs > 1 else "1 run"


def _save(chart: "alt.VConcatChart", stem: Path) -> list[Path]:
    paths = [stem.with_suffix(ending) for ending in (".svg", ".png")]
    with moved_into_place(paths) as (svg, png):
        svg.write_text(to_svg(chart), encoding="utf-8")
        png.write_bytes(to_png(chart))
    return paths
