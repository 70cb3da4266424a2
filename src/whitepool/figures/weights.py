"""How closely each attention diagonal follows tf-idf, block by head (Chen et al. 2023, Table 3)."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from whitepool.figures.heat import heat, mark
from whitepool.figures.rows import Rows
from whitepool.figures.style import COLUMN, styled


@styled
def weight_map(rows: Rows, what: str) -> Figure:
    """Spearman x100 of tf-idf and the attention that tokens pay themselves, the highest framed.

    Args:
        rows: of the table `weights`; those of attention diagonals are drawn.
        what: model and data, for the title.
    """
    diagonals = [row for row in rows if row["weights"] == "diagonal"]
    blocks = sorted({int(row["block"]) for row in diagonals})
    heads = sorted({int(row["head"]) for row in diagonals})
    values = np.full((len(blocks), len(heads)), np.nan)
    for row in diagonals:
        place = blocks.index(int(row["block"])), heads.index(int(row["head"]))
        values[place] = row["spearman_tfidf"]
    figure = Figure(figsize=(COLUMN, 1.0 + 0.14 * max(len(blocks), 5)), layout="constrained")
    axes = figure.subplots()
    known = not np.isnan(values).all()
    low, high = (np.nanmin(values), np.nanmax(values)) if known else (0, 1)
    image = heat(axes, values, rows=blocks, columns=heads, scale=Normalize(low, high))
    if known:
        block, head = np.unravel_index(np.nanargmax(values), values.shape)
        mark(axes, int(block), int(head))
        top = f"highest: block {blocks[block]}, head {heads[head]}, {values[block, head]:.2f}"
        axes.set_title(top, parse_math=False)
    axes.set_xlabel("head")
    axes.set_ylabel("block")
    figure.suptitle(what, x=0.01, ha="left", fontsize=8, parse_math=False)
    bar = figure.colorbar(image, ax=axes, label="Spearman with tf-idf (x100)")
    bar.outline.set_visible(False)
    return figure
