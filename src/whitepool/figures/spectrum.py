"""The eigenvalues of the vectors' covariance: how many directions the vectors really use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from whitepool.figures.colours import CYCLE, GREY
from whitepool.figures.style import COLUMN, shorten, styled


class Eigenvalues(NamedTuple):
    """The spectrum of one fit set.

    Attributes:
        values: (dim,), largest first.
        rank: effective rank: so many of them are more than rounding noise.
    """

    values: NDArray[np.float64]
    rank: int


@styled
def spectrum(of: Mapping[str, Eigenvalues], what: str) -> Figure:
    """Variance in each direction on logarithmic axes, as far as the effective rank.

    Beside it, where 90 % of the variance is reached.

    Args:
        of: name of fit set -> its spectrum.
        what: what the vectors are, for the title.
    """
    figure = Figure(figsize=(COLUMN, 0.72 * COLUMN), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    many = len(of) > len(CYCLE)
    lines: list[Line2D] = []
    labels: list[str] = []
    for i, (name, (values, rank)) in enumerate(of.items()):
        colour = GREY if many else CYCLE[i]
        kept = values[:rank]
        if not rank:
            continue
        held = int(np.searchsorted(kept.cumsum() / kept.sum(), 0.9)) + 1
        label = f"{shorten(name, 30)}:\nrank {rank:,} of {len(values):,}; 90 % in {held}"
        index = np.arange(1, rank + 1)
        lines += axes.plot(index, kept, color=colour)
        labels.append(label)
        axes.plot(held, kept[held - 1], "o", color=colour)
        axes.plot(rank, kept[-1], "|", color=colour, markersize=12, markeredgewidth=1.5)
    axes.grid(axis="y")
    axes.set(xlabel="direction, by variance", ylabel="variance (eigenvalue)")
    title = shorten(what, 34)
    if many:
        ranks = [e.rank for e in of.values()]
        title += f"\n{len(of)} fit sets, effective ranks {min(ranks)} to {max(ranks)}"
    else:
        legend = axes.legend(
            lines, labels, loc="lower left", title="bar: effective rank; dot: 90 % of variance",
            title_fontsize=7, alignment="left",
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
    axes.set_title(title, parse_math=False)
    return figure
