"""The look of all figures: sized for one column of a two-column page, and for every eye.

Colours of categories are those of Okabe and Ito (2008), "Color Universal Design", which stay apart
under the common kinds of colour blindness; colours of numbers are matplotlib's cividis, made for
the same. Series also differ in marker or line, so that a print in grey can be read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec

import matplotlib as mpl
from matplotlib.figure import Figure

COLUMN, PAGE = 3.35, 6.9  # inches: width of one column, of two
DPI = 300
HEAT = "cividis"
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, BLACK, GREY = "#56B4E9", "#CC79A7", "#000000", "#777777"
CYCLE = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY, BLACK)
STAGES = {
    "raw": ("raw", RED, "o"),
    "post": ("whitened", BLUE, "s"),
    "rotated": ("rotated", GREEN, "^"),
}
SPEARMAN = "Spearman x100"

P = ParamSpec("P")

RULES: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.linewidth": 0.4,
    "grid.color": "#DDDDDD",
    "axes.axisbelow": True,
    "svg.hashsalt": "whitepool",  # the same figure is the same file
}


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Let ``draw`` work under `RULES`, which end with it."""

    @functools.wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with mpl.rc_context(RULES):
            return draw(*args, **kwargs)

    return inside
