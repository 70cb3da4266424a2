"""Ditto's map: the score of every attention head, block by head (Chen et al. 2023)."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from whitepool.figures.heat import heat, mark
from whitepool.figures.rows import Rows
from whitepool.figures.style import COLUMN, SPEARMAN, styled


@styled
def head_map(rows: Rows, chosen: Rows, what: str) -> Figure:
    """Score of every head, one map for each list of layers, the chosen head framed.

    Args:
        rows: of the table `heads`: the set that chooses, all blocks, heads and lists of layers.
        chosen: of the table `heads_best`, one task; a head that was published instead of chosen
            is framed with a dashed line.
        what: the set that the scores are of, for the title.
    """
    lists = list(dict.fromkeys(str(row["layers"]) for row in rows))
    blocks = sorted({int(row["block"]) for row in rows})
    heads = sorted({int(row["head"]) for row in rows})
    maps: dict[str, NDArray[np.float64]] = {}
    for layers in lists:
        maps[layers] = np.full((len(blocks), len(heads)), np.nan)
        for row in rows:
            if str(row["layers"]) == layers:
                place = blocks.index(int(row["block"])), heads.index(int(row["head"]))
                maps[layers][place] = row["value"]
    every = np.stack(list(maps.values()))
    low, high = np.nanpercentile(every, [10, 100]) if not np.isnan(every).all() else (0, 1)
    scale = Normalize(low, high, clip=True)
    tall = 0.5 + 0.14 * max(len(blocks), 5)
    figure = Figure(figsize=(COLUMN, 0.5 + tall * len(lists)), layout="constrained")
    panels = figure.subplots(len(lists), 1, squeeze=False, sharex=True)[:, 0]
    for axes, layers in zip(panels, lists, strict=True):
        image = heat(axes, maps[layers], rows=blocks, columns=heads, scale=scale)
        named = []
        for row in chosen:
            if str(row["layers"]) != layers or int(row["block"]) not in blocks:
                continue
            place = blocks.index(int(row["block"])), heads.index(int(row["head"]))
            published = row["choice"] == "published"
            mark(axes, *place, style=":" if published else "-")
            named.append(
                f"{'published (dotted)' if published else 'chosen'}: block {row['block']}, head "
                f"{row['head']}, {maps[layers][place]:.2f}"
            )
        axes.set_title("\n".join([f"layers {layers}", *named]), parse_math=False)
        axes.set_ylabel("block")
    panels[-1].set_xlabel("head")
    figure.suptitle(what, x=0.01, ha="left", fontsize=8, parse_math=False)
    bar = figure.colorbar(
        image, ax=list(panels), shrink=0.8 if len(lists) == 1 else 0.5, extend="min", label=SPEARMAN
    )
    bar.outline.set_visible(False)
    return figure
