"""The paper's four figures, with a line for microveil, for print and for colour-blind readers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from microveil.core.grid import Reals
from microveil.formats import moved_into_place
from microveil.paper.curves import Curves
from microveil.paper.datasets import CENSUS, DATA_SETS, WINE
from microveil.paper.experiments import ALPHAS, EPSILONS, MICROVEIL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


class _Look(NamedTuple):
    colour: str
    marker: str
    width: float = 1.3
    label: str | None = None


# Colours of Okabe and Ito, told apart with any colour vision; markers do without colour.
_LOOKS = {
    "DP": _Look("#A0A0A0", "", 3.0),  # a broad band, which shows behind curves that lie on it
    "DP-UM": _Look("#E69F00", "s"),
    "iDP-LS": _Look("#0072B2", "^"),
    "iDP-CBLS": _Look("#D55E00", "o"),
    MICROVEIL: _Look("#CC79A7", "", 3.0, "microveil (noise-optimal, penalised isotonic)"),
}
_ORIGINAL, _CONSTANT = "#009E73", "#000000"
_LEFT_TO_RIGHT = {CENSUS.name: (0, 1), WINE.name: (1, 0)}  # classes, as in the paper
_DASHES: dict[float, Any] = dict(zip(ALPHAS, ("solid", (0, (4, 2))), strict=True))
_TICKS = (3, 5, 10, 20, 50, 100, 200, 400)
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.markersize": 3.5,
    "svg.hashsalt": "microveil",
}


def draw(results: pl.DataFrame, directory: Path) -> list[Path]:
    """Draw the four figures as SVG and PNG into a directory and return their paths."""
    import matplotlib as mpl

    curves = Curves(results)
    paths = []
    with mpl.rc_context(_STYLE):
        for dataset in curves.datasets:
            name = dataset.lower().replace(" ", "-")
            paths += _save(_draw_sse(curves, dataset), directory / f"sse-{name}")
            paths += _save(_draw_f(curves, dataset), directory / f"f-measure-{name}")
    return paths


def _draw_sse(curves: Curves, dataset: str) -> "Figure":
    figure, axes = _panels(columns=1, width=5.4)
    for axis, epsilon in zip(axes[:, 0], EPSILONS, strict=True):
        for method in _LOOKS:
            _plot(axis, curves.ks(dataset), np.log10(curves.sse(dataset, method, epsilon)), method)
        axis.set_title(f"ε = {epsilon:g}", loc="left", fontweight="bold")
        axis.set_ylabel("log₁₀ mean SSE")
        _number_ks(axis, curves.ks(dataset))
    axes[-1, 0].set_xlabel("k, records in a cluster")
    _finish(
        figure,
        f"{dataset}: mean SSE of the masked data",
        f"distances in standard deviations, means over {_runs(curves)}",
        [*_method_lines(tuple(_LOOKS)), *_alpha_lines()],
    )
    return figure


def _draw_f(curves: Curves, dataset: str) -> "Figure":
    figure, axes = _panels(columns=2, width=7.2)
    for row, epsilon in zip(axes, EPSILONS, strict=True):
        for axis, class_ in zip(row, _LEFT_TO_RIGHT[dataset], strict=True):
            axis.axhline(curves.f_original(dataset)[class_], color=_ORIGINAL)
            axis.axhline(curves.f_constant(dataset)[class_], color=_CONSTANT, linestyle="dotted")
            for method in ("iDP-LS", "iDP-CBLS", MICROVEIL):
                f = curves.f(dataset, method, epsilon)[class_]
                _plot(axis, curves.ks(dataset), f, method)
            name = DATA_SETS[dataset].class_names[class_]
            axis.set_title(f"ε = {epsilon:g}, class “{name}”", loc="left", fontweight="bold")
            _number_ks(axis, curves.ks(dataset))
        row[0].set_ylabel("F-measure")
    for axis in axes[-1]:
        axis.set_xlabel("k, records in a cluster")
    _finish(
        figure,
        f"{dataset}: F-measure of a random forest trained on masked data",
        f"tested on original data, means over {_runs(curves)}; each class has its own scale",
        [
            *_method_lines(("iDP-LS", "iDP-CBLS")),
            *_reference_lines(),
            *_method_lines((MICROVEIL,)),
            *_alpha_lines(),
        ],
    )
    return figure


def _panels(columns: int, width: float) -> tuple["Figure", "np.typing.NDArray[np.object_]"]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 8.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(EPSILONS), columns, sharex=True, sharey="col", squeeze=False)
    return figure, axes


def _plot(axis: "Axes", ks: Sequence[int], by_alpha: Reals, method: str) -> None:
    look = _LOOKS[method]
    for alpha, values in zip(ALPHAS, by_alpha, strict=True):
        hollow = "white" if alpha != ALPHAS[0] else look.colour
        axis.plot(
            ks, values, color=look.colour, marker=look.marker, linestyle=_DASHES[alpha],
            markerfacecolor=hollow, linewidth=look.width, zorder=2 if look.marker else 1.9,
        )  # fmt: skip


def _number_ks(axis: "Axes", ks: Sequence[int]) -> None:
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log")
    ticks = [k for k in _TICKS if k <= ks[-1]]
    axis.set_xticks(ticks, [str(k) for k in ticks])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.tick_params(labelbottom=True, labelleft=True)


def _method_lines(methods: Sequence[str]) -> list["Line2D"]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=colour, marker=marker, linewidth=width, label=label or method)
        for method in methods
        for colour, marker, width, label in [_LOOKS[method]]
    ]


def _alpha_lines() -> list["Line2D"]:
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [],
            [],
            color="#444444",
            linestyle=dashes,
            label=f"α = {alpha:g}: domain [0, {alpha:g}·max]",
        )
        for alpha, dashes in _DASHES.items()
    ]


def _reference_lines() -> list["Line2D"]:
    from matplotlib.lines import Line2D

    return [
        Line2D([], [], color=_ORIGINAL, label="trained on original data"),
        Line2D([], [], color=_CONSTANT, linestyle="dotted", label="always answering this class"),
    ]


def _finish(figure: "Figure", title: str, note: str, entries: list["Line2D"]) -> None:
    figure.suptitle(f"{title}\n", x=0.01, ha="left", fontsize=11, fontweight="bold")
    figure.text(0.01, 0.965, note, ha="left", va="top", color="#444444")
    figure.legend(handles=entries, loc="outside lower center", ncols=2, frameon=False)


def _runs(curves: Curves) -> str:
    return f"{curves.runs} runs" if curves.runs > 1 else "1 run"


def _save(figure: "Figure", stem: Path) -> list[Path]:
    paths = [stem.with_suffix(ending) for ending in (".svg", ".png")]
    with moved_into_place(paths) as (svg, png):
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=200)
    return paths
