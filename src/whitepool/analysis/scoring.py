"""Scores of many recipes at once: sub-tasks, the three aggregates, the mean over tasks.

What `whitepool.scores.score` makes of one recipe's cosines, for a whole axis of recipes and without
bootstrap.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whitepool.correlation import spearman_many
from whitepool.data.table import ScoredSet
from whitepool.protocol import AGGREGATES
from whitepool.scores import mean_of_defined

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ManyScores:
    """Spearman x100 of every recipe on one sub-task or aggregate.

    Attributes:
        task: as in `whitepool.scores.Row`.
        subset: likewise.
        aggregate: likewise.
        value: (recipe,), NaN where undefined.
        n: number of pairs.
    """

    task: str
    subset: str
    aggregate: str
    value: Floats
    n: int

    def row(self, recipe: int, stage: str) -> dict[str, Any]:
        """The tidy row of one recipe, columns as in scores.csv but for the intervals."""
        return {
            "task": self.task,
            "subset": self.subset,
            "aggregate": self.aggregate,
            "stage": stage,
            "metric": "spearman",
            "value": float(self.value[recipe]),
            "n": self.n,
        }


def score_many(sets: Sequence[ScoredSet], predictions: Sequence[Floats]) -> list[ManyScores]:
    """Spearman x100 of many recipes.

    Args:
        sets: the scored sets, those of a task side by side.
        predictions: of each set, (recipe, pair).
    """
    result: list[ManyScores] = []
    tasks: list[dict[str, ManyScores]] = []
    columns = list(zip(sets, predictions, strict=True))
    for task, group in itertools.groupby(columns, key=lambda column: column[0].task):
        members = list(group)
        parts = [
            ManyScores(task, s.subset, "", 100 * spearman_many(x, s.gold), len(s.gold))
            for s, x in members
        ]
        result += [part for part in parts if part.subset]
        together = parts[0].value
        if len(members) > 1:
            gold = np.concatenate([s.gold for s, _ in members])
            together = 100 * spearman_many(np.concatenate([x for _, x in members], axis=1), gold)
        values = {
            "all": together,
            "mean": _average(parts, weighted=False),
            "wmean": _average(parts, weighted=True),
        }
        if any(s.flattened for s, _ in members):
            for name in ("mean", "wmean"):
                values[name] = np.full_like(together, np.nan)
        n = sum(part.n for part in parts)
        tasks.append({a: ManyScores(task, "", a, values[a], n) for a in AGGREGATES})
        result += tasks[-1].values()
    if len(tasks) > 1:
        for aggregate in AGGREGATES:
            parts = [task[aggregate] for task in tasks]
            value = _average(parts, weighted=False)
            result.append(ManyScores("avg", "", aggregate, value, sum(part.n for part in parts)))
    return result


def _average(parts: Sequence[ManyScores], *, weighted: bool) -> Floats:
    """Mean over parts, (recipe,), by their number of pairs if ``weighted``."""
    weight = np.array([part.n if weighted else 1.0 for part in parts])
    return mean_of_defined(np.stack([part.value for part in parts]), weight)
