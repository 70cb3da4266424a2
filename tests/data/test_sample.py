from __future__ import annotations

import itertools
from collections import Counter

import pytest
from scipy import stats

from whitepool.data.sample import sample


@pytest.mark.parametrize(("n", "size"), [(0, 3), (2, 3), (3, 3), (50, 1), (50, 49), (1000, 20)])
def test_size_order_and_no_repeats(n: int, size: int) -> None:
    got = list(sample(iter(range(n)), size, 0))
    assert len(got) == min(n, size)
    assert got == sorted(set(got))
    assert set(got) <= set(range(n))


def test_the_seed_alone_decides() -> None:
    first = list(sample(iter(range(10_000)), 30, 7))
    assert list(sample(iter(range(10_000)), 30, 7)) == first
    assert list(sample(iter(map(str, range(10_000))), 30, 7)) == [str(i) for i in first]
    assert list(sample(iter(range(10_000)), 30, 8)) != first


def test_positions_are_the_same_in_every_version_of_python() -> None:
    pinned = [20401, 31195, 49250, 55268, 66689]
    assert list(sample(iter(range(100_000)), 5, 0)) == pinned


@pytest.mark.parametrize(("n", "size"), [(6, 2), (6, 4), (8, 1)])
def test_every_subset_is_as_likely(n: int, size: int) -> None:
    """Chi-squared over all subsets, 20,000 seeds."""
    drawn = Counter(tuple(sample(iter(range(n)), size, seed)) for seed in range(20_000))
    subsets = list(itertools.combinations(range(n), size))
    assert set(drawn) <= set(subsets)
    assert stats.chisquare([drawn[s] for s in subsets]).pvalue > 1e-4


def test_late_items_of_a_long_stream_are_as_likely() -> None:
    """Which tenth of 3,000 items is drawn from, 300 samples of 30."""
    tenth = Counter(i // 300 for seed in range(300) for i in sample(iter(range(3000)), 30, seed))
    assert stats.chisquare([tenth[i] for i in range(10)]).pvalue > 1e-4
