"""The tables of `whitepool.analysis.dims`: every k, and the best k beside the published one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from whitepool.aggregates import AVERAGE, Cell, Floats
from whitepool.analysis.base import Rows
from whitepool.data.table import FitOn, SentenceTable
from whitepool.whitening import Affine

log = logging.getLogger(__name__)

PUBLISHED_K = 256  # of BERT-whitening (Su et al. 2021) for base models

Ends = Mapping[tuple[str, str], int]


def ends(table: SentenceTable, maps: Mapping[str, Affine], fit_on: FitOn) -> Ends:
    """The last k of each (task, subset), the lowest effective rank of what it is made of."""
    found: dict[tuple[str, str], int] = {}
    ranks: dict[str, int] = {}
    for scored in table.scored:
        name = table.fit_set_of(scored, fit_on)
        rank = ranks[name] = maps[name].basis.shape[1]
        for key in ((scored.task, scored.subset), (scored.task, ""), (AVERAGE, "")):
            found[key] = min(rank, found.get(key, rank))
    cut = [f"{name} {rank}" for name, rank in ranks.items() if rank < len(maps[name].mean)]
    if cut:
        log.info("k ends at the effective rank: %s.", ", ".join(cut))
    return found


def tables(
    raw: Mapping[str, Sequence[Cell]],
    curves: Mapping[tuple[str, str], Sequence[Cell]],
    *,
    ends: Ends,
    dim: int,
) -> dict[str, Rows]:
    """Tidy rows.

    Args:
        raw: scores without a step after pooling, (1,) in each cell, by metric.
        curves: scores of k = 1, 2 …, (k,) in each cell, by stage and metric; the same cells.
        ends: the last k of each (task, subset).
        dim: dimensions of the vectors, the k of ``raw``.

    Returns:
        `dims`, a row for each k; `dims_best`, a row for each aggregate of a task, whose
        ``published_`` columns are empty where k = 256 is over the rank.
    """
    every: Rows = []
    best: Rows = []
    for metric, cells in raw.items():
        for cell in cells:
            every.append({"k": dim, **cell.row(0, "raw", metric)})
    for (stage, metric), cells in curves.items():
        for cell, before in zip(cells, raw[metric], strict=True):
            values = cell.value[: ends[cell.task, cell.subset]]
            every += [{"k": k + 1, **cell.row(k, stage, metric)} for k in range(len(values))]
            if not cell.subset:
                best.append(_best(stage, metric, cell, values, float(before.value[0])))
    return {"dims": every, "dims_best": best}


def _best(stage: str, metric: str, cell: Cell, values: Floats, raw: float) -> dict[str, Any]:
    """The best k, the smallest of equals, beside the published k, all k and no step at all."""
    defined = not np.isnan(values).all()
    at = int(np.nanargmax(values)) if defined else len(values) - 1
    published = len(values) >= PUBLISHED_K
    return {
        "task": cell.task,
        "aggregate": cell.aggregate,
        "stage": stage,
        "metric": metric,
        "k": at + 1 if defined else None,
        "value": float(values[at]),
        "published_k": PUBLISHED_K if published else None,
        "published_value": float(values[PUBLISHED_K - 1]) if published else None,
        "full_k": len(values),
        "full_value": float(values[-1]),
        "raw_value": raw,
        "n": cell.n,
    }
