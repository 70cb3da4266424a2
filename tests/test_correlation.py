"""Correlations against scipy, ties included; the bootstrap against drawing and ranking again."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from whitepool import correlation
from whitepool.correlation import (
    bootstrap,
    interval,
    pearson,
    pearson_many,
    rank,
    spearman,
    spearman_many,
)
from whitepool.similarity import in_units

TIED = st.integers(-3, 3).map(float)
ANY = st.floats(-1e6, 1e6, width=32)


def lists(values: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[float, float]]]:
    return st.lists(st.tuples(values, values), min_size=2, max_size=40)


@given(st.lists(TIED | ANY, max_size=50))
@settings(max_examples=200, deadline=None)
def test_ranks_equal_scipy(x: list[float]) -> None:
    assert np.array_equal(rank(x), stats.rankdata(x))


@given(lists(TIED) | lists(ANY))
@settings(max_examples=300, deadline=None)
def test_correlations_equal_scipy(pairs: list[tuple[float, float]]) -> None:
    x, y = np.array(pairs).T
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(spearman(x, y))
        assert math.isnan(pearson(x, y))
        return
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = stats.pearsonr(x, y).statistic
    # Near-constant lists lose digits in either way of computing, so compare those that are not.
    if np.ptp(x) > 1e-3 * np.abs(x).max() and np.ptp(y) > 1e-3 * np.abs(y).max():
        assert pearson(x, y) == pytest.approx(theirs, abs=1e-10)


def test_real_sizes_equal_scipy() -> None:
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 26, 18_850) / 5
    x = gold + generator.normal(size=len(gold))
    assert spearman(x, gold) == pytest.approx(stats.spearmanr(x, gold).statistic, abs=1e-12)
    assert pearson(x, gold) == pytest.approx(stats.pearsonr(x, gold).statistic, abs=1e-12)


def test_heavy_ties_do_not_overflow() -> None:
    """Rank sums of 99,999 equal values pass 2^31, where 32-bit sums turn negative."""
    x = np.zeros(100_000)
    x[-1] = 1.0
    y = np.arange(100_000.0)
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    assert spearman(x, y) > 0


@given(lists(TIED), st.floats(0.1, 10), st.floats(-5, 5))
@settings(max_examples=100, deadline=None)
def test_spearman_ignores_increasing_maps(
    pairs: list[tuple[float, float]], scale: float, shift: float
) -> None:
    x, y = np.array(pairs).T
    same = spearman(np.exp(x), y * scale + shift)
    assert same == pytest.approx(spearman(x, y), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([1.0], [2.0]), ([1, 1, 1], [1, 2, 3]), ([0.1] * 7, range(7))]
)
def test_undefined_is_nan(x: list[float], y: list[float]) -> None:
    assert math.isnan(spearman(x, y))
    assert math.isnan(pearson(x, y))


@given(
    st.lists(st.tuples(TIED, TIED | ANY, st.integers(-4, 4), ANY), min_size=2, max_size=40),
    st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_many_equal_one_at_a_time_and_scipy(rows: list[tuple[float, ...]], rounds: bool) -> None:
    """Values of few decimals are packed with the gold ranks and sorted, others are not."""
    x = np.array(rows).T / 3
    x = np.round(x, 12) if rounds else x
    gold = np.array([row[2] for row in rows], dtype=float)
    found = spearman_many(x, gold)
    for row, value in zip(x, found, strict=True):
        assert value == pytest.approx(spearman(row, gold), abs=1e-12, nan_ok=True)
        if len(set(row)) > 1 and len(set(gold)) > 1:
            assert value == pytest.approx(stats.spearmanr(row, gold).statistic, abs=1e-12)
        else:
            assert math.isnan(value)
    if rounds and np.abs(x).max() < 1000:
        units = in_units(x.copy())
        assert np.array_equal(spearman_many(units, gold), found, equal_nan=True)
        pearsons = pearson_many(x, gold)
        assert pearson_many(units, gold) == pytest.approx(pearsons, abs=1e-12, nan_ok=True)
    wanted = [pearson(row, gold) for row in x]
    assert pearson_many(x, gold) == pytest.approx(wanted, abs=1e-12, nan_ok=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 200), st.integers(1, 9))
@settings(max_examples=50, deadline=None)
def test_many_do_not_depend_on_chunks_or_order(seed: int, chunk: int, levels: int) -> None:
    generator = np.random.default_rng(seed)
    x = np.round(generator.normal(size=(11, 37)) * levels) / 7
    gold = generator.integers(0, 5, 37).astype(float)
    whole = spearman_many(x, gold)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlation, "_CHUNK", chunk)
        assert np.array_equal(spearman_many(x, gold), whole, equal_nan=True)
        again = pearson_many(x, gold)
    assert np.array_equal(again, pearson_many(x, gold), equal_nan=True)
    order = generator.permutation(37)
    assert np.array_equal(spearman_many(x[:, order], gold[order]), whole, equal_nan=True)
    assert np.array_equal(spearman_many(-x, gold), -whole, equal_nan=True)


@pytest.mark.parametrize("decimals", [2, 12, 16])
def test_many_of_real_size_equal_scipy(decimals: int) -> None:
    generator = np.random.default_rng(5)
    gold = generator.integers(0, 26, 18_850) / 5
    x = np.round(np.tanh(gold / 9 + generator.normal(size=(3, len(gold)))), decimals)
    wanted = [stats.spearmanr(row, gold).statistic for row in x]
    assert spearman_many(x, gold) == pytest.approx(wanted, abs=1e-12)


def test_many_with_heavy_ties_do_not_overflow() -> None:
    x = np.zeros((2, 1_000_000))
    x[0, -1] = x[1, : len(x[0]) // 2] = 1.0
    gold = np.arange(1_000_000.0)
    wanted = [stats.spearmanr(row, gold).statistic for row in x]
    assert spearman_many(x, gold) == pytest.approx(wanted, abs=1e-12)


def test_many_beyond_63_bits_are_taken_one_at_a_time() -> None:
    gold = np.arange(2.0**20 + 1)
    assert spearman_many([-gold, gold], gold) == pytest.approx([-1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("many", [spearman_many, pearson_many])
def test_undefined_among_many_is_nan(many: Callable[..., np.ndarray]) -> None:
    constant = many([[0.1] * 7, range(7), [math.nan, *range(6)]], np.arange(7.0))
    assert np.isnan(constant).tolist() == [True, False, True]
    assert np.isnan(many([range(7)], np.ones(7))).tolist() == [True]
    assert np.isnan(many(np.ones((2, 1)), [1.0])).tolist() == [True, True]
    assert np.isnan(many(np.ones((2, 0)), [])).tolist() == [True, True]
    assert many(np.ones((0, 3)), [1.0, 2.0, 3.0]).shape == (0,)


def test_bootstrap_equals_drawing_and_ranking_again() -> None:
    generator = np.random.default_rng(1)
    gold = generator.integers(0, 6, 60).astype(float)
    stages = [np.round(gold + generator.normal(size=60), 1), generator.normal(size=60)]
    found = bootstrap(stages, gold, samples=50, seed=7)
    drawn = np.random.default_rng(7).integers(0, 60, size=(50, 60))
    for stage, x in enumerate(stages):
        for sample, rows in enumerate(drawn):
            wanted = stats.spearmanr(x[rows], gold[rows]).statistic
            assert found["spearman"][stage, sample] == pytest.approx(wanted, abs=1e-12)
            wanted = stats.pearsonr(x[rows], gold[rows]).statistic
            assert found["pearson"][stage, sample] == pytest.approx(wanted, abs=1e-12)


def test_bootstrap_is_seeded_paired_and_the_same_in_chunks() -> None:
    generator = np.random.default_rng(2)
    gold, x = generator.normal(size=(2, 80))
    whole = bootstrap([x, x], gold, samples=30, seed=3)["spearman"]
    assert np.array_equal(whole[0], whole[1])  # one set of resamples serves all stages
    chunked = bootstrap([x, x], gold, samples=30, seed=3, memory=80 * 7)["spearman"]
    assert np.allclose(whole, chunked, atol=1e-14)
    assert not np.allclose(whole, bootstrap([x, x], gold, samples=30, seed=4)["spearman"])


def test_intervals_cover_the_truth() -> None:
    """95 % intervals of a known correlation of 0.6 cover it about 95 times in 100."""
    generator = np.random.default_rng(4)
    covered = 0
    for trial in range(200):
        x, noise = generator.normal(size=(2, 150))
        y = 0.6 * x + 0.8 * noise
        low, high = interval(bootstrap([x], y, samples=300, seed=trial)["pearson"][0])
        covered += low <= 0.6 <= high
    assert 175 <= covered <= 199


def test_interval_of_nothing_is_undefined() -> None:
    assert all(map(math.isnan, interval(np.array([np.nan, np.nan]))))
    assert all(map(math.isnan, interval(np.array([]))))
