"""Scores of many recipes with the split that they were taken on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whitepool.aggregates import Floats
from whitepool.analysis.scoring import score_many
from whitepool.data.table import ScoredSet


@dataclass(frozen=True, eq=False)
class GridScore:
    """One scored set, or one aggregate, under every recipe.

    Attributes:
        split: ``test``, ``dev`` or ``train``, several joined by ``and``.
        task: name of the task, ``avg`` for the mean over tasks.
        subset: sub-task, empty in an aggregate.
        aggregate: ``all``, ``mean``, ``wmean``, empty for a sub-task.
        values: (recipe,), Spearman x100, NaN where undefined.
        n: number of pairs.
    """

    split: str
    task: str
    subset: str
    aggregate: str
    values: Floats
    n: int


def score_grid(sets: Sequence[ScoredSet], predictions: Sequence[Floats]) -> list[GridScore]:
    """Scores of sets of one split, by the rules of a single run.

    Args:
        sets: the scored sets.
        predictions: (recipe, pair) of each set.
    """
    split = " and ".join(dict.fromkeys(s.split for s in sets))
    return [
        GridScore(split, c.task, c.subset, c.aggregate, c.value, c.n)
        for c in score_many(sets, predictions)
    ]
