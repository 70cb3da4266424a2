"""The look of all figures: sized for one column of a two-column page, and for every eye.

Colours of categories are in `whitepool.figures.colours`; colours of numbers are matplotlib's
cividis, which stays in order under the common kinds of colour blindness.
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
SPEARMAN = "Spearman x100"

LONGEST = 60  # letters of a name

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


def shorten(name: str, longest: int = LONGEST) -> str:
    """A name that leaves room for the figure, its middle left out if it is long."""
    half = longest // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[-half:]}"
