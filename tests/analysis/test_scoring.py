"""Many recipes scored at once against the scores of each alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from whitepool.analysis.scoring import score_many
from whitepool.correlation import spearman, spearman_many
from whitepool.data.table import ScoredSet
from whitepool.scores import score


def scored(task: str, subset: str, n: int, *, flattened: bool = False) -> ScoredSet:
    draw = np.random.default_rng(n)
    pairs = np.zeros((n, 2), dtype=np.int64)
    return ScoredSet(task, subset, pairs, draw.integers(0, 6, n).astype(float), flattened, "test")


@pytest.mark.parametrize(
    "sets",
    [
        [scored("mine", "", 40)],
        [scored("a", "x", 30), scored("a", "y", 9), scored("b", "", 25)],
        [scored("a", "", 30, flattened=True), scored("b", "", 25)],
    ],
    ids=["one", "sub-tasks", "flattened"],
)
def test_every_number_is_that_of_the_recipe_alone(sets: list[ScoredSet]) -> None:
    draw = np.random.default_rng(0)
    predictions = [draw.normal(size=(5, len(s.gold))).round(1) for s in sets]
    predictions[0][2] = 0.25  # undefined
    found = score_many(sets, predictions)
    for recipe in range(5):
        alone = score(sets, {"raw": [x[recipe] for x in predictions]}, samples=0)
        wanted = [row for row in alone.rows if row.metric == "spearman"]
        assert len(found) == len(wanted)
        for many, row in zip(found, wanted, strict=True):
            got = many.row(recipe, "raw")
            assert {k: got[k] for k in ("task", "subset", "aggregate", "stage", "n")} == {
                k: getattr(row, k) for k in ("task", "subset", "aggregate", "stage", "n")
            }
            assert got["value"] == pytest.approx(row.value, abs=1e-10, nan_ok=True)


@pytest.mark.parametrize("decimals", [0, 1, 12, 17])
@pytest.mark.parametrize("n", [2, 3, 50, 700])
@pytest.mark.parametrize("scale", [1.0, 50.0])
def test_spearman_many_against_scipy(n: int, decimals: int, scale: float) -> None:
    draw = np.random.default_rng(n)
    x = (scale * draw.uniform(-1, 1, (6, n))).round(decimals)
    x[0] = x[0, 0]
    gold = draw.integers(0, 4, n)
    gold[0] = 9
    found = spearman_many(x, gold)
    assert np.isnan(found[0])
    for row, value in zip(x, found, strict=True):
        assert value == pytest.approx(spearman(row, gold), abs=1e-13, nan_ok=True)
        if len(set(row)) > 1:
            assert value == pytest.approx(stats.spearmanr(row, gold).statistic, abs=1e-12)


def test_spearman_many_of_a_constant_gold_or_one_pair_is_undefined() -> None:
    assert np.isnan(spearman_many([[0.1, 0.2]], [3, 3])).all()
    assert np.isnan(spearman_many([[0.1], [0.2]], [3])).all()
