"""Scores of many recipes at once against the scores of single runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from whitepool.analysis.grid_scores import score_grid
from whitepool.data.table import ScoredSet
from whitepool.scores import score


def made(task: str, subset: str, n: int, seed: int, flattened: bool = False) -> ScoredSet:
    gold = np.random.default_rng(seed).integers(0, 6, size=n).astype(float)
    return ScoredSet(task, subset, np.zeros((n, 2), dtype=np.int64), gold, flattened, "test")


@pytest.mark.parametrize("flattened", [False, True])
@pytest.mark.parametrize("tasks", [1, 2])
def test_all_recipes_equal_single_runs(flattened: bool, tasks: int) -> None:
    sets = [made("sts12", "A", 9, 0), made("sts12", "B", 14, 1)]
    if tasks == 2:
        sets.append(made("sts13", "", 11, 2, flattened))
    generator = np.random.default_rng(3)
    predictions = [generator.integers(0, 8, size=(5, len(s.gold))) / 7 for s in sets]
    predictions[0][2] = 0.5  # undefined
    found = score_grid(sets, predictions)
    for recipe in range(5):
        rows = score(sets, {"raw": [p[recipe] for p in predictions]}, samples=0).rows
        wanted = [row for row in rows if row.metric == "spearman"]
        assert [(g.task, g.subset, g.aggregate, g.n) for g in found] == [
            (row.task, row.subset, row.aggregate, row.n) for row in wanted
        ]
        for g, row in zip(found, wanted, strict=True):
            assert g.split == "test"
            assert g.values[recipe] == pytest.approx(row.value, abs=1e-10, nan_ok=True)
    assert math.isnan(found[0].values[2])
    assert (tasks == 2) == any(g.task == "avg" for g in found)
