"""Cosines before and after whitening: how far apart the vectors of unrelated sentences are.

In a raw model all vectors share a few large directions, so that any two sentences have a high
cosine (Ethayarajh 2019 calls it anisotropy); whitening spreads them around zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from whitepool.figures.colours import GREY, STAGES, WHITENED, stage_name
from whitepool.figures.style import COLUMN, shorten, styled

BINS = np.linspace(-1, 1, 101)


class Cosines(NamedTuple):
    """Cosines of one stage.

    Attributes:
        scored: (pair,), of the pairs that are scored.
        unrelated: (pair,), of sentences put together at random.
    """

    scored: NDArray[np.float64]
    unrelated: NDArray[np.float64]


@styled
def histograms(by_stage: Mapping[str, Cosines], what: str, post: str = WHITENED) -> Figure:
    """Shares of pairs by cosine, one panel for each stage, on the same axis.

    Args:
        by_stage: stage -> its cosines.
        what: what was encoded, for the title.
        post: what the map is called.
    """
    figure = Figure(figsize=(COLUMN, 0.5 + 1.05 * len(by_stage)), layout="constrained")
    panels = figure.subplots(len(by_stage), 1, squeeze=False, sharex=True)[:, 0]
    for axes, (stage, (scored, unrelated)) in zip(panels, by_stage.items(), strict=True):
        colour = STAGES[stage].colour
        axes.stairs(
            _shares(scored), BINS, fill=True, color=colour, alpha=0.5,
            label=f"scored, mean {_mean(scored)}",
        )  # fmt: skip
        axes.stairs(
            _shares(unrelated), BINS, color="black", linewidth=0.9,
            label=f"random, mean {_mean(unrelated)}",
        )  # fmt: skip
        axes.axvline(0, color=GREY, linewidth=0.6)
        axes.set_title(stage_name(stage, post), parse_math=False)
        axes.set_ylabel("% of pairs")
        axes.legend(
            loc="lower right", bbox_to_anchor=(1.01, 0.97), ncols=2, handlelength=1,
            columnspacing=1, borderaxespad=0, borderpad=0.2,
        )  # fmt: skip
    panels[-1].set(xlabel="cosine", xlim=(-1, 1), xticks=np.linspace(-1, 1, 9))
    panels[-1].set_xticklabels([f"{x:g}" for x in panels[-1].get_xticks()])
    figure.suptitle(shorten(what, 46), x=0.01, ha="left", fontsize=8, parse_math=False)
    return figure


def _shares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Percent of values in each bin, (bin,)."""
    return 100 * np.histogram(values, BINS)[0] / max(len(values), 1)


def _mean(values: NDArray[np.float64]) -> str:
    return f"{round(float(values.mean()), 2) + 0.0:.2f}" if len(values) else "-"
