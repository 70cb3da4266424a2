"""A grid of numbers as a map in colour, each cell with its number where there is room."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from whitepool.figures.colours import RED
from whitepool.figures.style import HEAT

MOST = 26  # columns whose numbers can still be read


def heat(
    axes: Axes,
    values: NDArray[np.float64],
    *,
    rows: Sequence[int],
    columns: Sequence[int],
    scale: Normalize,
) -> AxesImage:
    """Draw ``values``, (row, column), NaN left blank, with the names of rows and columns.

    Args:
        axes: where to.
        values: numbers below 1000.
        rows: name of each row.
        columns: name of each column.
        scale: from numbers to colours.
    """
    image = axes.imshow(values, cmap=HEAT, norm=scale, aspect="auto", interpolation="nearest")
    for axis, names, room in ((axes.xaxis, columns, 14), (axes.yaxis, rows, 22)):
        step = -(-len(names) // room)
        axis.set_ticks(range(0, len(names), step), [str(n) for n in names[::step]])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if len(columns) > MOST:
        return image
    figure = axes.get_figure(root=True)
    assert figure is not None
    narrow = figure.get_figwidth() / max(len(columns), 4)
    decimals, size = (1, 6.0) if narrow > 0.4 else (0, min(6.0, max(4.5, 24 * narrow)))
    colours = mpl.colormaps[HEAT]
    for (y, x), value in np.ndenumerate(values):
        if np.isnan(value):
            continue
        red, green, blue, _ = colours(scale(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
        axes.text(
            x, y, f"{value:.{decimals}f}", ha="center", va="center", fontsize=size,
            color="white" if dark else "black",
        )  # fmt: skip
    return image


def mark(axes: Axes, row: int, column: int, *, style: str = "-") -> None:
    """A frame around a cell."""
    axes.add_patch(
        Rectangle(
            (column - 0.5, row - 0.5),
            1,
            1,
            fill=False,
            edgecolor=RED,
            linewidth=1.6,
            linestyle=style,
            zorder=3,
            clip_on=False,
        )
    )
