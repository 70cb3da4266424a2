"""Layers combined: Figures 1 and 2 of WhiteningBERT (Huang et al. 2021), for any model.

`pair_map` is the score of every pair of layers, single layers on the diagonal; `best_by_size` the
best score for each number of combined layers, and which layers those are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from whitepool.figures.colours import BLUE, GREY, STAGES, WHITENED, stage_name
from whitepool.figures.heat import heat, mark
from whitepool.figures.rows import Rows, combined
from whitepool.figures.style import COLUMN, SPEARMAN, styled


@styled
def pair_map(rows: Rows, what: str) -> Figure:
    """Score of every pair of layers, the best framed.

    Args:
        rows: of the table `layers`, one task, aggregate and stage; subsets of more than two
            layers do not matter.
        what: what was scored, for the title.
    """
    pairs = {combined(row): row["value"] for row in rows if len(combined(row)) <= 2}
    layers = sorted({layer for pair in pairs for layer in pair})
    place = {layer: i for i, layer in enumerate(layers)}
    values = np.full((len(layers), len(layers)), np.nan)
    for pair, value in pairs.items():
        values[place[pair[-1]], place[pair[0]]] = value
    figure = Figure(figsize=(COLUMN, 0.9 * COLUMN), layout="constrained")
    axes = figure.add_subplot()
    low, high = np.nanpercentile(values, [2, 100]) if not np.isnan(values).all() else (0, 1)
    image = heat(axes, values, rows=layers, columns=layers, scale=Normalize(low, high, clip=True))
    axes.set(xlabel="layer (0: embedding output)", ylabel="combined with layer")
    bar = figure.colorbar(image, ax=axes, shrink=0.8, label=SPEARMAN, extend="min")
    bar.outline.set_visible(False)
    title = what
    if not np.isnan(values).all():
        y, x = np.unravel_index(np.nanargmax(values), values.shape)
        mark(axes, int(y), int(x))
        best = f"{layers[x]}" if x == y else f"{layers[x]}+{layers[y]}"
        title += f"\nbest of these: {best}, {values[y, x]:.2f}"
    axes.set_title(title, parse_math=False)
    return figure


@styled
def best_by_size(rows: Rows, what: str, post: str = WHITENED) -> Figure:
    """Best score against the number of combined layers, and below it the layers of the best.

    Args:
        rows: of the table `layers_best`, one task and aggregate, any stages.
        what: what was scored, for the title.
        post: what the map is called.
    """
    by_stage: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: int(row["size"])):
        if not math.isnan(row["value"]):
            by_stage.setdefault(row["stage"], {})[int(row["size"])] = row
    shown = by_stage.get("raw") or next(iter(by_stage.values()), {})
    depth = max((layer for row in shown.values() for layer in combined(row)), default=0)
    figure = Figure(figsize=(COLUMN, 1.7 + 0.11 * (depth + 1)), layout="constrained")
    top, below = figure.subplots(2, 1, sharex=True, height_ratios=(1.3, 0.11 * (depth + 1)))
    for stage, best in by_stage.items():
        colour, marker = STAGES[stage]
        top.plot(
            list(best), [row["value"] for row in best.values()],
            color=colour, marker=marker, label=stage_name(stage, post),
        )  # fmt: skip
    if len(by_stage) > 1:
        top.legend(loc="best")
    top.grid(axis="y")
    top.set_ylabel(f"best {SPEARMAN}")
    title = what
    if shown:
        size, row = max(shown.items(), key=lambda item: item[1]["value"])
        title += f"\nbest: layers {row['layers']}, {row['value']:.2f}"
        below.axvspan(size - 0.4, size + 0.4, color="#EEEEEE")
        top.axvspan(size - 0.4, size + 0.4, color="#EEEEEE")
    top.set_title(title, parse_math=False, wrap=True)
    sizes = list(shown)
    for layer in range(depth + 1):
        below.plot(sizes, [layer] * len(sizes), ".", color="#DDDDDD", markersize=3)
        taken = [size for size, row in shown.items() if layer in combined(row)]
        below.plot(taken, [layer] * len(taken), "o", color=BLUE, markersize=4)
    below.set(xlabel="number of combined layers", ylabel="layers taken")
    below.set_xticks(sizes if len(sizes) <= 26 else sizes[::2])
    below.set_yticks(range(0, depth + 1, 1 if depth <= 12 else 2))
    below.spines[:].set_visible(False)
    below.tick_params(length=0, colors=GREY, labelcolor="black")
    return figure
