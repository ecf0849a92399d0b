"""What people read of an audit of synthetic releases."""

from typing import TYPE_CHECKING

from microveil.lab.audit.replayed import Replay
from microveil.show.screens import ResultScreen

if TYPE_CHECKING:
    import altair as alt

_PERCENTS = (0, 5, 50, 95, 100)


def replay_screen(replay: Replay) -> ResultScreen:
    """Say whether losses are within what the plan promises."""
    import numpy as np

    title = (
        f"Audit of {len(replay.losses):,} synthetic releases, replayed on neighbours "
        "(private: computed from the original data)"
    )
    losses = np.percentile(replay.losses, _PERCENTS)
    rows = [(f"{p}%", f"{loss:.3g}") for p, loss in zip(_PERCENTS, losses, strict=True)]
    head = ("share of runs below", "loss")
    return ResultScreen(title, replay_sentences(replay), head, rows, lambda: _chart(replay))


def replay_sentences(replay: Replay) -> list[str]:
    """Say what was found, and what it should be."""
    largest = f"The largest loss is {replay.largest:.3g}"
    if replay.rho is None:
        bound = f"{largest}; no run may lose more than {replay.epsilon:g}."
    else:
        bound = (
            f"The mean loss is {replay.mean:.3g}, where at most {replay.rho:.3g} is allowed, and "
            f"its variance {replay.variance:.3g}, where at most {2 * replay.rho:.3g} is allowed. "
            f"{largest}."
        )
    found = "The mechanism is BROKEN: losses are larger than they may be."
    return [found if replay.broken else "No loss is larger than it may be.", bound]


def _chart(replay: Replay) -> "alt.LayerChart":
    from microveil.show.charts.overviews import amounts

    losses = sorted(replay.losses)[-12:]
    return amounts(
        [f"run {place}" for place in range(len(losses))], losses, title="loss",
        description="The largest losses",
    )  # fmt: skip
