"""Score against the number of directions kept, every k: the figures of BERT-whitening (Su et al.
2021), with each k instead of a few.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from whitepool.figures.colours import GREY, STAGES, WHITENED, stage_name
from whitepool.figures.rows import Rows
from whitepool.figures.style import COLUMN, SPEARMAN, styled


@styled
def score_by_k(rows: Rows, what: str) -> Figure:
    """Score against k on a logarithmic axis, the best k of each curve marked.

    The dashed line is the full dimension without any step after pooling.

    Args:
        rows: of the table `dims`, one task, aggregate and metric, all stages.
        what: what was scored, for the title.
    """
    figure = Figure(figsize=(COLUMN, 0.72 * COLUMN), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xscale("log", base=2)
    last, tops, floor = 1, [], []
    for stage in ("post", "rotated"):
        curve = sorted((int(r["k"]), r["value"]) for r in rows if r["stage"] == stage)
        k, value = np.array(curve).reshape(-1, 2).T
        if not len(k) or np.isnan(value).all():
            continue
        colour, marker = STAGES[stage]
        best = int(np.nanargmax(value))
        axes.plot(
            k, value, color=colour, marker=marker, markevery=[best], markersize=5,
            label=f"{stage_name(stage, WHITENED)}: best k = {k[best]:.0f}, {value[best]:.2f}",
        )  # fmt: skip
        last = max(last, int(k[-1]))
        tops.append(float(value[best]))
        floor.append(float(np.nanpercentile(value, 1)))
    for row in rows:
        if row["stage"] == "raw":
            axes.axhline(
                row["value"], color=GREY, linestyle="--", linewidth=1, zorder=1,
                label=f"all {int(row['k'])}, no step after pooling: {row['value']:.2f}",
            )  # fmt: skip
    ticks = [2**i for i in range(int(np.log2(last)) + 1)]
    axes.set_xticks(ticks)
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y")
    axes.set(xlabel="directions kept, k", ylabel=SPEARMAN)
    axes.set_title(what, parse_math=False)
    axes.legend(loc="lower right")
    return figure
