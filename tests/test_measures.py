"""Accuracy at thresholds against plain loops, and binary tasks through the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from whitepool.data import Task
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.measures import Accuracy, best_threshold, measure_of
from whitepool.protocol import EvalProtocol
from whitepool.scores import DIFFERENCE, headline, score, score_table
from whitepool.whitening import Affine

from tiny_suite import pair_set

COSINES = st.integers(1, 30).flatmap(
    lambda n: st.tuples(
        hnp.arrays(np.float64, n, elements=st.sampled_from([-0.5, 0.1, 0.4999, 0.5, 0.7, 0.9])),
        hnp.arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0])),
    )
)


def accuracy(x: np.ndarray, gold: np.ndarray, threshold: float) -> float:
    right = 0
    for cosine, label in zip(x, gold, strict=True):
        right += (1 if cosine > threshold else 0) == label
    return right / len(x)


@settings(deadline=None)
@given(COSINES)
def test_the_best_threshold_is_as_good_as_any(pairs: tuple[np.ndarray, np.ndarray]) -> None:
    x, gold = pairs
    tried = [accuracy(x, gold, t) for t in [-2.0, *x, 2.0]]
    assert accuracy(x, gold, best_threshold(x, gold)) == max(tried)


@settings(deadline=None)
@given(COSINES)
def test_accuracy_is_that_of_a_loop(pairs: tuple[np.ndarray, np.ndarray]) -> None:
    x, gold = pairs
    thresholds = {"accuracy_0.5": np.array([0.5, 0.5]), "accuracy_train": np.array([0.1, 0.6])}
    values = Accuracy(thresholds)(np.stack([x, -x]), gold, samples=3, seed=0)
    assert values.shape == (2, 2, 4)
    for m, name in enumerate(thresholds):
        for stage, cosines in enumerate((x, -x)):
            assert values[m, stage, 0] == accuracy(cosines, gold, thresholds[name][stage])


def test_resamples_are_paired_and_seeded() -> None:
    generator = np.random.default_rng(1)
    x, gold = generator.normal(size=(1, 50)), generator.integers(0, 2, 50).astype(float)
    measure = measure_of("binary", 2, None)
    values = measure(np.concatenate([x, x]), gold, samples=20, seed=5)
    assert np.array_equal(values[:, 0], values[:, 1])
    assert np.array_equal(values, measure(np.concatenate([x, x]), gold, samples=20, seed=5))
    assert len(set(values[0, 0, 1:])) > 5
    assert abs(values[0, 0, 1:].mean() - values[0, 0, 0]) < 0.1


def scored(task: str, gold: np.ndarray, kind: str) -> ScoredSet:
    pairs = np.zeros((len(gold), 2), dtype=np.int64)
    return ScoredSet(task, "", pairs, gold, False, "dev", kind)  # type: ignore[arg-type]


def test_kinds_do_not_mix() -> None:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 2, 40).astype(float)
    x = [generator.uniform(size=40) for _ in range(3)]
    sets = [scored("a", gold, "graded"), scored("rte", gold, "binary"), scored("b", gold, "graded")]
    train = (np.stack([gold, gold]), gold)  # any threshold from 0 to 1 separates it
    by_stage = {"raw": x, "post": x}
    found = score(sets, by_stage, {"rte": train}, samples=0)
    assert found.metrics == {
        "a": ("spearman",),
        "b": ("spearman",),
        "avg": ("spearman",),
        "rte": ("accuracy_0.5", "accuracy_train"),
    }
    mean = (found.get("a").value + found.get("b").value) / 2
    assert found.get("avg").value == pytest.approx(mean)
    assert found.get("rte").value == pytest.approx(100 * accuracy(x[1], gold, 0.5))
    assert found.thresholds == {
        "rte": {
            "accuracy_0.5": {"raw": 0.5, "post": 0.5},
            "accuracy_train": {"raw": 0.5, "post": 0.5},
        }
    }
    protocol = EvalProtocol("p", "all", "task")
    assert headline(found, protocol).metric == "spearman"
    alone = score([sets[1]], {"raw": [x[1]]}, samples=0)
    assert headline(alone, protocol).metric == "accuracy_0.5"
    assert {row.metric for row in alone.rows} == {"accuracy_0.5"}
    assert alone.undefined == []


def test_thresholds_come_from_train_alone_for_each_stage() -> None:
    dev, train = (
        replace(s, gold=(s.gold > s.gold.mean()).astype(float))
        for s in (pair_set("rte", "", 40, "dev"), pair_set("rte", "", 60, "train"))
    )
    task = Task("rte", (dev,), (train,), kind="binary", calibration=(train,))
    table = SentenceTable.build(
        [task], lambda texts: ([tuple(map(ord, t)) for t in texts], [False] * len(texts))
    )
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(len(table), 6)).astype(np.float32)
    import torch

    affine = Affine(torch.full((6,), 0.3, dtype=torch.float64), torch.eye(6).double(), 1.0, 6)
    protocol = EvalProtocol("p", "all", "task")
    found = score_table(table, vectors, {"rte": affine}, protocol, samples=10)
    (calibration,) = table.calibration
    for stage, shift in (("raw", 0.0), ("post", 0.3)):
        unit = vectors.astype(np.float64) - shift
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        on_train = (unit[calibration.pairs[:, 0]] * unit[calibration.pairs[:, 1]]).sum(1)
        on_dev = (unit[table.scored[0].pairs[:, 0]] * unit[table.scored[0].pairs[:, 1]]).sum(1)
        threshold = found.thresholds["rte"]["accuracy_train"][stage]
        best = max(accuracy(on_train, train.gold, t) for t in [-2.0, *on_train])
        assert accuracy(on_train, train.gold, threshold) == best
        row = found.get("rte", stage=stage, metric="accuracy_train")
        assert row.value == pytest.approx(100 * accuracy(on_dev, dev.gold, threshold))
        assert row.low <= row.value <= row.high
    assert found.get("rte", stage=DIFFERENCE, metric="accuracy_train").n == 40
