"""Spearman and Pearson correlation in float64, with average ranks for ties, and the bootstrap.

A constant list has no correlation. That is "undefined", NaN here, and never 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whitepool.ranksums import rank_sums, sorted_along

Floats = NDArray[np.float64]
METRICS = ("spearman", "pearson")

_CHUNK = 2**17  # values taken at a time by the *_many functions: a few MB, which caches hold


def rank(x: ArrayLike) -> Floats:
    """Ranks from 1, equal values given their average rank, (pair,)."""
    return _Order(np.asarray(x, dtype=np.float64)).rank(np.ones(np.size(x)))


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's r of x and y, (pair,) each; NaN if either is constant or has under 2 values."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    return float(_weighted_pearson(a, b, np.ones(len(a))))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of x and y, (pair,) each: Pearson's r of their average ranks."""
    return pearson(rank(x), rank(y))


def spearman_many(predictions: ArrayLike, gold: ArrayLike) -> Floats:
    """`spearman` of many recipes' predictions with one gold list, (recipe,).

    Args:
        predictions: (recipe, pair), floating-point or whole numbers (int64). Whole numbers take a
            third of the time, values rounded to 12 decimals, as cosines are, half of it.
        gold: (pair,).

    Returns:
        (recipe,), float64; NaN where a recipe is constant or has a NaN, everywhere if gold is
        constant or there are under 2 pairs.

    Each list is sorted once and ties cost only where there are any. With P and G twice the average
    ranks, P counted from their mean, rho = sum P G / sqrt(sum P^2 sum (G - mean)^2), and all sums
    are whole numbers. Memory beside the arguments is a few MB.
    """
    x, y = np.asarray(predictions), np.asarray(gold, dtype=np.float64)
    n = len(y)
    if n > 2**20:  # the whole numbers would pass 63 bits
        return np.array([spearman(row, y) for row in x], dtype=np.float64)
    double = np.rint(2 * rank(y)).astype(np.int64)
    size = int(((double - (n + 1)) ** 2).sum())
    if not size:
        return np.full(len(x), np.nan)

    def part(rows: NDArray[Any]) -> Floats:
        double_sorted, tied = sorted_along(rows, double)
        product, own = rank_sums(double_sorted, tied)
        with np.errstate(invalid="ignore"):
            rho = product / np.sqrt(own.astype(np.float64)) / np.sqrt(float(size))
        undefined = own == 0
        if rows.dtype.kind == "f":
            undefined |= np.isnan(rows.max(1))
        return np.where(undefined, np.nan, np.clip(rho, -1.0, 1.0))

    return _in_chunks(part, x, n)


def pearson_many(predictions: ArrayLike, gold: ArrayLike) -> Floats:
    """`pearson` of many recipes' predictions, (recipe, pair), with gold, (pair,): (recipe,)."""
    x, y = np.asarray(predictions), np.asarray(gold, dtype=np.float64)
    n = len(y)
    if n < 2 or y.min() == y.max():
        return np.full(len(x), np.nan)
    dy = y - y.mean()
    size = np.sqrt(dy @ dy)

    def part(rows: NDArray[Any]) -> Floats:
        dx = rows - rows.mean(1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            r = np.einsum("rp,p->r", dx, dy) / np.sqrt(np.einsum("rp,rp->r", dx, dx)) / size
        constant = rows.max(1) == rows.min(1)
        return np.where(constant, np.nan, np.clip(r, -1.0, 1.0))

    return _in_chunks(part, x, n)


def bootstrap(
    stages: Sequence[ArrayLike], gold: ArrayLike, *, samples: int, seed: int, memory: int = 2**17
) -> dict[str, Floats]:
    """Correlation with ``gold`` of each stage's scores in resamples of the pairs.

    Args:
        stages: scores of each stage, (pair,) each. All stages see the same resamples, so that
            their differences are paired.
        gold: (pair,).
        samples: number of resamples.
        seed: seed of the resampling.
        memory: floats held per array, which bounds memory; small arrays stay in the cache.

    Returns:
        metric -> (stage, sample); NaN where a resample is constant.

    Drawing pairs again with replacement is giving each pair a count. Ranks of the resample follow
    from cumulated counts along the order of the full list, so that nothing is sorted again.
    """
    y = np.asarray(gold, dtype=np.float64)
    xs = [np.asarray(x, dtype=np.float64) for x in stages]
    n = len(y)
    result = {metric: np.full((len(xs), samples), np.nan) for metric in METRICS}
    if n < 2:
        return result
    generator = np.random.default_rng(seed)
    order_y, orders = _Order(y), [_Order(x) for x in xs]
    step = max(1, memory // n)
    for start in range(0, samples, step):
        some = slice(start, min(samples, start + step))
        drawn = generator.integers(0, n, size=(some.stop - some.start, n))
        drawn += n * np.arange(len(drawn))[:, None]
        counts = np.bincount(drawn.ravel(), minlength=len(drawn) * n).reshape(-1, n).astype(float)
        rank_y = order_y.rank(counts)
        for stage, (x, order) in enumerate(zip(xs, orders, strict=True)):
            result["spearman"][stage, some] = _weighted_pearson(order.rank(counts), rank_y, counts)
            result["pearson"][stage, some] = _weighted_pearson(x, y, counts)
    return result


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Percentile interval of bootstrap values, (sample,), over the defined ones."""
    defined = values[~np.isnan(values)]
    if not len(defined):
        return float("nan"), float("nan")
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class _Order:
    """The order of a list, from which its ranks follow under any counts of its items."""

    def __init__(self, x: Floats) -> None:
        self.order = np.argsort(x, kind="stable")
        ordered = x[self.order]
        self.starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(x)])
        self.sizes = np.diff(np.r_[self.starts, len(x)])

    def rank(self, counts: Floats) -> Floats:
        """Average ranks of the items when item i occurs counts[..., i] times, (..., pair)."""
        if not len(self.order):
            return np.zeros_like(counts)
        tied = np.add.reduceat(counts[..., self.order], self.starts, axis=-1)
        average = np.cumsum(tied, axis=-1) - (tied - 1) / 2
        ranks = np.empty_like(counts)
        ranks[..., self.order] = np.repeat(average, self.sizes, axis=-1)
        return ranks


def _weighted_pearson(x: Floats, y: Floats, counts: Floats) -> Floats:
    """r of x and y where pair i occurs counts[..., i] times, (...)."""
    total = counts.sum(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        dx = x - (counts * x).sum(-1, keepdims=True) / total
        dy = y - (counts * y).sum(-1, keepdims=True) / total
        xx, yy = (counts * dx * dx).sum(-1), (counts * dy * dy).sum(-1)
        r = (counts * dx * dy).sum(-1) / np.sqrt(xx) / np.sqrt(yy)
    return np.where(_constant(x, counts) | _constant(y, counts), np.nan, np.clip(r, -1.0, 1.0))


def _constant(x: Floats, counts: Floats) -> NDArray[np.bool_]:
    """Whether the items that occur all have one value; rounding would hide it in the variance."""
    occurs = counts > 0
    least = np.where(occurs, x, np.inf).min(-1, initial=np.inf)
    most = np.where(occurs, x, -np.inf).max(-1, initial=-np.inf)
    return np.asarray(least >= most)


def _in_chunks(part: Callable[[NDArray[Any]], Floats], x: NDArray[Any], n: int) -> Floats:
    """Values of a function of some recipes' rows, (recipe, pair), for all of them, (recipe,)."""
    if x.dtype.kind != "i":
        x = np.asarray(x, dtype=np.float64)
    step = max(1, _CHUNK // max(1, n))
    found = [part(x[start : start + step]) for start in range(0, len(x), step)]
    return np.concatenate([np.zeros(0), *found])
