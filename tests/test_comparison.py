"""Comparison of two runs against a loop over resamples with scipy, and what is kept for it."""

from __future__ import annotations

import json
import pickle
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from scipy.stats import spearmanr

from whitepool.comparison import compare, p_value
from whitepool.data.table import ScoredSet
from whitepool.errors import UserError
from whitepool.predictions import FILE, Predictions, load_predictions, save_predictions

NO_PAIRS = np.zeros((0, 2), np.int64)


def made(seed: int, names: list[tuple[str, str]], n: int = 40) -> Predictions:
    """Sets with gold scores, and cosines that follow them more closely in stage `post`."""
    draw = np.random.default_rng(seed)
    gold = [np.round(np.random.default_rng(7 + i).uniform(0, 5, n), 1) for i in range(len(names))]
    sets = tuple(
        ScoredSet(task, subset, NO_PAIRS, y, False, "test")
        for (task, subset), y in zip(names, gold, strict=True)
    )
    by_stage = {
        stage: [np.round(y + noise * draw.normal(size=n), 2) for y in gold]
        for stage, noise in (("raw", 2.0), ("post", 1.0))
    }
    return Predictions(sets, by_stage, "all")


def test_interval_and_p_are_those_of_a_loop_over_resamples() -> None:
    one, other = made(0, [("a", "")]), made(1, [("a", "")])
    x, y, gold = one.by_stage["raw"][0], other.by_stage["post"][0], one.sets[0].gold
    (found,) = compare(one, other, ("raw", "post"), samples=300, seed=5)
    drawn = np.random.default_rng(zlib.crc32(b"a") ^ 5).integers(0, len(gold), (300, len(gold)))
    gaps = np.array([spearmanr(y[d], gold[d])[0] - spearmanr(x[d], gold[d])[0] for d in drawn])
    assert found.first == pytest.approx(100 * spearmanr(x, gold)[0], abs=1e-9)
    assert found.second == pytest.approx(100 * spearmanr(y, gold)[0], abs=1e-9)
    assert [found.low, found.high] == pytest.approx(100 * np.quantile(gaps, [0.025, 0.975]))
    tail = min((gaps <= 0).sum(), (gaps >= 0).sum())
    assert found.p == pytest.approx(min(1, 2 * (1 + tail) / 301))
    assert (found.task, found.metric, found.n) == ("a", "spearman", 40)


def test_tasks_of_several_sets_and_their_mean() -> None:
    names = [("a", "x"), ("a", "y"), ("b", "")]
    rows = compare(made(0, names), made(1, names), ("post", "post"), samples=50)
    assert [row.task for row in rows] == ["a", "b", "avg"]
    assert rows[2].value == pytest.approx((rows[0].value + rows[1].value) / 2)
    mean = [replace(run, aggregate="mean") for run in (made(0, names), made(1, names))]
    assert compare(*mean, ("post", "post"), samples=50)[0].value != rows[0].value


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 10**6))
def test_runs_the_other_way_round_and_a_run_beside_itself(seed: int) -> None:
    one, other = made(seed, [("a", "")]), made(seed + 1, [("a", "")])
    (there,) = compare(one, other, ("raw", "raw"), samples=60)
    (back,) = compare(other, one, ("raw", "raw"), samples=60)
    assert (there.value, there.low, there.high) == pytest.approx(
        (-back.value, -back.high, -back.low), abs=1e-9
    )
    assert there.p == back.p
    (same,) = compare(one, one, ("post", "post"), samples=60)
    assert (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)


def test_p_of_differences() -> None:
    assert p_value(np.ones(999)) == pytest.approx(2 / 1000)
    assert p_value(-np.ones(999)) == pytest.approx(2 / 1000)
    assert p_value(np.r_[np.ones(98), np.nan, -1.0]) == pytest.approx(2 * 2 / 100)
    assert np.isnan(p_value(np.full(3, np.nan)))


def test_runs_that_cannot_be_compared_are_refused() -> None:
    one = made(0, [("a", "")])
    with pytest.raises(UserError, match="different sets, a and b: evaluate both on the same data"):
        compare(one, made(0, [("b", "")]), ("raw", "raw"))
    with pytest.raises(UserError, match=r"different pairs of a \(40 and 41, or other gold"):
        compare(one, made(0, [("a", "")], n=41), ("raw", "raw"))
    with pytest.raises(UserError, match="all and mean: evaluate both under the same protocol="):
        compare(one, replace(one, aggregate="mean"), ("raw", "raw"))


def test_predictions_come_back_bit_for_bit(tmp_path: Path) -> None:
    run = made(3, [("a", "x"), ("a", "y")])
    answers = np.random.default_rng(0).uniform(size=(3, 40))
    sets = (*run.sets, replace(run.sets[0], task="r", subset="", kind="retrieval"))
    by_stage = {stage: [*x, answers] for stage, x in run.by_stage.items()}
    save_predictions(tmp_path, sets, by_stage, "wmean")
    found = load_predictions(tmp_path)
    assert (found.aggregate, list(found.by_stage)) == ("wmean", ["raw", "post"])
    for a, b in zip(sets, found.sets, strict=True):
        assert (a.name, a.kind, a.split, a.flattened) == (b.name, b.kind, b.split, b.flattened)
        assert a.gold.tobytes() == b.gold.tobytes()
    for stage, values in by_stage.items():
        for a, b in zip(values, found.by_stage[stage], strict=True):
            assert a.tobytes() == b.tobytes()
    rows = compare(found, found, ("raw", "post"), samples=20)
    assert [(row.task, row.metric) for row in rows] == [("a", "spearman"), ("r", "ndcg@10")]


def test_other_files_are_refused_and_nothing_is_unpickled(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no run folder"):
        load_predictions(tmp_path / "absent")
    with pytest.raises(UserError, match=r"has no predictions\.safetensors"):
        load_predictions(tmp_path)
    hostile = tmp_path / FILE
    hostile.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(UserError, match="not a predictions file"):
        load_predictions(tmp_path)
    for content, message in (
        ({"kind": "moments", "schema": 1}, "not a predictions file"),
        ({"kind": "predictions", "schema": 2}, "has schema 2 and this whitepool reads 1"),
        ({"kind": "predictions", "schema": 1, "sets": [{"task": "a"}]}, "not a predictions file"),
    ):
        save_file({"0.gold": np.zeros(2)}, hostile, metadata={"whitepool": json.dumps(content)})
        with pytest.raises(UserError, match=message) as refused:
            load_predictions(tmp_path)
        assert str(refused.value).count(str(hostile)) == 1  # one reason, not one within another
