"""Scores of all recipes of a grid at once, by the rules of a single run."""

from __future__ import annotations

from collections.abc import Sequence

from whitepool.aggregates import Cell, Floats, aggregate, concatenated
from whitepool.correlation import pearson_many, spearman_many
from whitepool.data.table import ScoredSet

MANY = {"spearman": spearman_many, "pearson": pearson_many}


def score_many(
    sets: Sequence[ScoredSet], predictions: Sequence[Floats], metric: str = "spearman"
) -> list[Cell]:
    """Correlations x100 of every recipe: subsets, aggregates of each task, mean over tasks.

    Args:
        sets: the scored sets.
        predictions: (recipe, pair) of each set, in the order of ``sets``. Cosines should be
            rounded as `whitepool.similarity.cosine` rounds them, so that equal texts tie.
        metric: ``spearman`` or ``pearson``.

    Returns:
        what `whitepool.scores.score` gives a stage, with values (recipe,), NaN where undefined.
        The pairs of a task of several sets are copied while they are ranked together.
    """
    correlate = MANY[metric]
    own = [100 * correlate(x, s.gold) for s, x in zip(sets, predictions, strict=True)]
    together = {task: 100 * correlate(x, gold) for task, x, gold in concatenated(sets, predictions)}
    return aggregate(sets, own, together)
