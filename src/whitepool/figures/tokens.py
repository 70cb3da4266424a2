"""Token weights of sentences as strips of heat: what a head looks at."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from whitepool.figures.style import COLUMN, HEAT, styled
from whitepool.token_weights import Weighed

LINE, GAP, BETWEEN = 0.19, 0.03, 0.1  # inches: a line of tokens, between tokens, between sentences


@styled
def strips(sentences: Sequence[Weighed], what: str, width: float = COLUMN) -> Figure:
    """Each sentence's tokens in boxes, coloured by their share of the sentence's weight.

    Args:
        sentences: a few.
        what: which weights, for the title.
        width: inches.
    """
    shares = [np.asarray(s.weights) / (np.sum(s.weights) or 1.0) for s in sentences]
    scale = Normalize(0, 100 * max((float(s.max()) for s in shares if len(s)), default=1.0))
    boxes, height = _layout(sentences, width - 0.1)
    tall = height + 0.62
    figure = Figure(figsize=(width, tall))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(tall, 0))
    axes.set_axis_off()
    colours = mpl.colormaps[HEAT]
    for sentence, token, x, y, wide in boxes:
        share = 100 * float(shares[sentence][token])
        colour = colours(scale(share))
        dark = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] < 0.5
        top = y + 0.27
        axes.add_patch(Rectangle((x + 0.05, top), wide, LINE - 0.02, color=colour, linewidth=0))
        axes.text(
            x + 0.05 + wide / 2, top + (LINE - 0.02) / 2, sentences[sentence].tokens[token],
            ha="center", va="center_baseline", fontsize=7, color="white" if dark else "black",
            parse_math=False,
        )  # fmt: skip
    axes.text(0.05, 0.06, what, va="top", fontsize=8, parse_math=False)
    low = figure.add_axes((0.1, 0.3 / tall, 0.8, 0.08 / tall))
    bar = figure.colorbar(ScalarMappable(scale, HEAT), cax=low, orientation="horizontal")
    bar.set_label("% of the sentence's weight", labelpad=1)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2, pad=1)
    return figure


def _layout(
    sentences: Sequence[Weighed], width: float
) -> tuple[list[tuple[int, int, float, float, float]], float]:
    """Place and width of every box in inches, lines broken at ``width``; and the height of all."""
    ruler = Figure(figsize=(1, 1), dpi=100)
    FigureCanvasAgg(ruler)
    text = ruler.text(0, 0, "", fontsize=7, parse_math=False)
    boxes, y = [], 0.0
    for i, sentence in enumerate(sentences):
        x = 0.0
        for j, token in enumerate(sentence.tokens):
            text.set_text(token)
            wide = text.get_window_extent().width / 100 + 0.06
            if x and x + wide > width:
                x, y = 0.0, y + LINE
            boxes.append((i, j, x, y, wide))
            x += wide + GAP
        y += LINE + BETWEEN
    return boxes, y
