"""Cosines of sentence pairs over their first k coordinates, for every k.

    cos_k = sum_j s_j a_j b_j / sqrt(sum_j s_j a_j^2 sum_j s_j b_j^2),  j = 1 … k

The three sums grow by one term from k to k + 1, so that all k cost what the last one costs. Weights
s tell stages apart that differ in the scale of each direction alone: 1 for whitened coordinates,
their variances for the same directions before scaling.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from whitepool.similarity import DECIMALS

Floats = NDArray[np.float64]

_PAIRS = 4096  # pairs of one unit of work, whose arrays fit the cache
_VALUES = 2**22  # cosines held at a time


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of one set and the coordinates of their sentences.

    Attributes:
        coordinates: (dim, row).
        scales: (stage, dim), the weights s of each stage.
        pairs: (pair, 2), rows.
    """

    coordinates: Floats
    scales: Floats
    pairs: NDArray[np.int64]


def prefix_cosines(sets: Sequence[Pairs]) -> Iterator[list[Floats]]:
    """Cosines of every set in blocks of k: from the last k + 1 on, (stage, k, pair) for each set.

    Args:
        sets: with the same number of stages, of any number of dimensions.

    Values are rounded, and zero beside a zero vector, as in `whitepool.similarity.cosine`. A set is
    NaN from where its own dimensions end. Units of pairs run in threads, each in float64.
    """
    stages, dims = len(sets[0].scales), [len(s.coordinates) for s in sets]
    step = max(1, _VALUES // max(1, stages * sum(len(s.pairs) for s in sets)))
    units = [
        (place, slice(start, start + _PAIRS), _Sums(s, s.pairs[start : start + _PAIRS]))
        for place, s in enumerate(sets)
        for start in range(0, len(s.pairs), _PAIRS)
    ]
    sums = [unit[2] for unit in units]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for k in range(0, max(dims), step):
            size = min(step, max(dims) - k)
            blocks = [np.full((stages, size, len(s.pairs)), np.nan) for s in sets]
            parts = [blocks[p][:, : max(0, dims[p] - k), pairs] for p, pairs, _ in units]
            list(pool.map(_Sums.advance, sums, repeat(k), parts))
            yield blocks


class _Sums:
    """The three sums of some pairs, for each stage, up to some k."""

    def __init__(self, source: Pairs, pairs: NDArray[np.int64]) -> None:
        self.coordinates, self.scales = source.coordinates, source.scales
        self.first, self.second = np.ascontiguousarray(pairs.T)
        self.sums = np.zeros((len(self.scales), 3, len(pairs)))  # of ab, aa, bb

    def advance(self, k: int, out: Floats) -> None:
        """Write the cosines over the first k + 1, k + 2 … coordinates, (stage, k, pair)."""
        terms, scaled = np.empty_like(self.sums[0]), np.empty_like(self.sums[0])
        a, b = np.empty_like(terms[0]), np.empty_like(terms[0])
        for j in range(out.shape[1]):
            np.take(self.coordinates[k + j], self.first, out=a, mode="clip")  # faster than "raise"
            np.take(self.coordinates[k + j], self.second, out=b, mode="clip")
            np.multiply(a, b, out=terms[0])
            np.multiply(a, a, out=terms[1])
            np.multiply(b, b, out=terms[2])
            for sums, scales, cosines in zip(self.sums, self.scales, out, strict=True):
                np.multiply(terms, scales[k + j], out=scaled)
                np.add(sums, scaled, out=sums)
                np.multiply(sums[1], sums[2], out=a)
                np.sqrt(a, out=a)
                a += a == 0  # beside a zero vector the sum of products is 0 as well
                value = np.divide(sums[0], a, out=cosines[j])
                value *= 10.0**DECIMALS
                np.rint(value, out=value)
                value /= 10.0**DECIMALS
                value += 0.0  # turns -0.0 into 0.0
