"""Scores of all recipes of a grid at once, by the rules of a single run."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.aggregates import Cell, Floats, aggregate, members
from whitepool.correlation import pearson_many, spearman_many
from whitepool.data.table import ScoredSet

MANY = {"spearman": spearman_many, "pearson": pearson_many}

_JOB = 2**18  # values correlated at a time by a thread


def score_many(
    sets: Sequence[ScoredSet], predictions: Sequence[NDArray[Any]], metric: str = "spearman"
) -> list[Cell]:
    """Correlations x100 of every recipe: subsets, aggregates of each task, mean over tasks.

    Args:
        sets: the scored sets.
        predictions: (recipe, pair) of each set, in the order of ``sets``. Cosines should be
            rounded as `whitepool.similarity.cosine` rounds them, so that equal texts tie, or be
            whole numbers (`whitepool.similarity.in_units`), which is faster.
        metric: ``spearman`` or ``pearson``.

    Returns:
        what `whitepool.scores.score` gives a stage, with values (recipe,), NaN where undefined.
        The pairs of a task of several sets are copied, some recipes at a time, while they are
        ranked together. Sets and recipes are shared among threads.
    """
    correlate, recipes = MANY[metric], len(predictions[0])
    tasks = {task: places for task, places in members(sets).items() if len(places) > 1}
    joined = [(place,) for place in range(len(sets))] + [tuple(p) for p in tasks.values()]
    golds = [np.concatenate([sets[place].gold for place in places]) for places in joined]

    def part(job: tuple[int, int, int]) -> Floats:
        which, start, stop = job
        some = [predictions[place][start:stop] for place in joined[which]]
        together = some[0] if len(some) == 1 else np.concatenate(some, axis=1)
        return 100 * correlate(together, golds[which])

    found = [np.zeros(recipes) for _ in joined]
    steps = [max(1, _JOB // max(1, len(gold))) for gold in golds]
    jobs = [
        (which, start, min(start + step, recipes))
        for which, step in enumerate(steps)
        for start in range(0, recipes, step)
    ]
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for (which, start, stop), values in zip(jobs, pool.map(part, jobs), strict=True):
            found[which][start:stop] = values
    together = dict(zip(tasks, found[len(sets) :], strict=True))
    return aggregate(sets, found[: len(sets)], together)
