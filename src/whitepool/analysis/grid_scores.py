"""Scores of many recipes at once: sub-tasks, the three aggregates, the mean over tasks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whitepool.correlation import spearman_many
from whitepool.data.table import ScoredSet

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GridScore:
    """One scored set, or one aggregate, under every recipe.

    Attributes:
        split: ``test``, ``dev`` or ``train``.
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
    """Score all recipes on all sets, in the order and by the rules of `whitepool.scores.score`.

    Args:
        sets: the scored sets.
        predictions: (recipe, pair) of each set.
    """
    result: list[GridScore] = []
    tasks: list[tuple[GridScore, ...]] = []
    columns = zip(sets, predictions, strict=True)
    for (task, split), group in itertools.groupby(columns, lambda c: (c[0].task, c[0].split)):
        members = list(group)
        parts = [
            GridScore(split, task, s.subset, "", 100 * spearman_many(p, s.gold), len(s.gold))
            for s, p in members
        ]
        result += [part for part in parts if part.subset]
        together = parts[0].values
        if len(members) > 1:
            gold = np.concatenate([s.gold for s, _ in members])
            together = 100 * spearman_many(np.concatenate([p for _, p in members], axis=1), gold)
        mean, wmean = average(parts), average(parts, weighted=True)
        if any(s.flattened for s, _ in members):
            mean, wmean = np.full_like(mean, np.nan), np.full_like(wmean, np.nan)
        n = sum(part.n for part in parts)
        tasks.append(
            tuple(
                GridScore(split, task, "", aggregate, values, n)
                for aggregate, values in (("all", together), ("mean", mean), ("wmean", wmean))
            )
        )
        result += tasks[-1]
    if len(tasks) > 1:
        for column in zip(*tasks, strict=True):
            first, n = column[0], sum(part.n for part in column)
            result.append(GridScore(first.split, "avg", "", first.aggregate, average(column), n))
    return result


def average(parts: Sequence[GridScore], *, weighted: bool = False) -> Floats:
    """Mean over parts, by their number of pairs if ``weighted``, undefined ones left out."""
    values = np.stack([part.values for part in parts])  # (part, recipe)
    weights = np.array([[part.n if weighted else 1.0] for part in parts]) * ~np.isnan(values)
    total = weights.sum(0)
    mean = (np.nan_to_num(values) * weights).sum(0) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, np.nan)
