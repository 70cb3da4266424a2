"""Scores of many recipes at once equal the scores of each alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.aggregates import mean_of_defined
from whitepool.analysis.scoring import score_many
from whitepool.data.table import ScoredSet
from whitepool.scores import score

LAYOUTS = {
    "one file": [("stsb", "", 30, False)],
    "sub-tasks": [("sts12", "A", 12, False), ("sts12", "B", 25, False), ("sts12", "C", 1, False)],
    "suite": [("sts13", "A", 9, False), ("sts13", "B", 20, False), ("stsb", "", 14, False)],
    "flattened": [("sts14", "", 25, True), ("sickr", "", 11, False)],
}


def sets_of(layout: str, generator: np.random.Generator) -> list[ScoredSet]:
    return [
        ScoredSet(
            task,
            subset,
            np.zeros((n, 2), np.int64),
            generator.integers(0, 6, n) / 1.0,
            flat,
            "test",
        )
        for task, subset, n, flat in LAYOUTS[layout]
    ]


@given(st.sampled_from(list(LAYOUTS)), st.integers(0, 2**32 - 1), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_many_equal_single_scores(layout: str, seed: int, decimals: int) -> None:
    """Cosines of few decimals tie; recipe 0 is constant on the first set."""
    generator = np.random.default_rng(seed)
    sets = sets_of(layout, generator)
    xs = [np.round(generator.uniform(-1, 1, (4, len(s.gold))), decimals) for s in sets]
    xs[0][0] = 0.5
    for metric in ("spearman", "pearson"):
        cells = score_many(sets, xs, metric)
        for recipe in range(4):
            rows = [
                row
                for row in score(sets, {"raw": [x[recipe] for x in xs]}, samples=0).rows
                if row.metric == metric
            ]
            assert [(c.task, c.subset, c.aggregate, c.n) for c in cells] == [
                (row.task, row.subset, row.aggregate, row.n) for row in rows
            ]
            found = [cell.value[recipe] for cell in cells]
            assert found == pytest.approx([r.value for r in rows], abs=1e-10, nan_ok=True)


def test_undefined_recipes_are_left_out_of_their_own_average_alone() -> None:
    sets = sets_of("suite", np.random.default_rng(3))
    xs = [np.stack([s.gold, s.gold]) for s in sets]
    xs[2][0] = 1.0
    cells = {(c.task, c.aggregate): c.value for c in score_many(sets, xs) if not c.subset}
    assert math.isnan(cells["stsb", "all"][0])
    assert cells["stsb", "all"][1] == pytest.approx(100)
    assert cells["avg", "mean"] == pytest.approx([100, 100])


def test_mean_of_defined_by_hand() -> None:
    parts = [np.array([1.0, np.nan, np.nan]), np.array([4.0, 2.0, np.nan])]
    found = mean_of_defined(parts, np.array([2.0, 1.0]))
    assert found == pytest.approx([2.0, 2.0, math.nan], nan_ok=True)
