"""Cosines of sentence pairs over their first k coordinates, for every k.

    cos_k = sum_j s_j a_j b_j / sqrt(sum_j s_j a_j^2 sum_j s_j b_j^2),  j = 1 … k

The three sums grow by one term from k to k + 1, so that all k cost what the last one costs. Weights
s tell stages apart that differ in the scale of each direction alone: 1 for whitened coordinates,
their variances for the same directions before scaling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.similarity import in_units

Floats = NDArray[np.float64]
Units = NDArray[np.int64]

_PAIRS = 4096  # most pairs of one unit of work
_BLOCK = 2**16  # products of coordinates taken at a time, which fit the cache
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


def prefix_cosines(sets: Sequence[Pairs]) -> Iterator[list[Units]]:
    """Cosines of every set in blocks of k: from the last k + 1 on, (stage, k, pair) for each set.

    Args:
        sets: with the same number of stages, of any number of dimensions. Neighbours with the same
            arrays of coordinates and scales are worked on together.

    Values are whole numbers of 1e-12 (`whitepool.similarity.in_units`), and zero beside a zero
    vector. Where a set's own dimensions end it has zeros alone, which have no correlation. Units of
    pairs run in threads, each in float64.
    """
    stages, dims = len(sets[0].scales), [len(s.coordinates) for s in sets]
    ends = np.cumsum([len(s.pairs) for s in sets])
    step = max(1, _VALUES // max(1, stages * int(ends[-1])))
    sums, places = zip(*_units(sets), strict=True)
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for k in range(0, max(dims), step):
            found = np.zeros((stages, min(step, max(dims) - k), ends[-1]), dtype=np.int64)
            parts = [found[:, : max(0, s.dims - k), at] for s, at in zip(sums, places, strict=True)]
            list(pool.map(_Sums.advance, sums, repeat(k), parts))
            yield np.split(found, ends[:-1], axis=2)


def memory(stages: int, dim: int, pairs: int) -> int:
    """Bytes of cosines held at a time, of a copy where sub-tasks are joined, and of buffers."""
    return 3 * 8 * min(max(_VALUES, stages * pairs), stages * dim * pairs)


def _units(sets: Sequence[Pairs]) -> Iterator[tuple[_Sums, slice]]:
    """Units of work, and where their pairs stand when all sets are laid side by side."""
    together: list[list[Pairs]] = []
    for s in sets:
        last = together[-1][-1] if together else None
        if last and last.coordinates is s.coordinates and last.scales is s.scales:
            together[-1].append(s)
        else:
            together.append([s])
    done = 0
    for some in together:
        pairs = np.concatenate([s.pairs for s in some])
        for start in range(0, max(1, len(pairs)), _PAIRS):
            own = pairs[start : start + _PAIRS]
            yield _Sums(some[0], own), slice(done, done + len(own))
            done += len(own)


class _Sums:
    """The three sums of some pairs, for each stage, up to some k."""

    def __init__(self, source: Pairs, pairs: NDArray[np.int64]) -> None:
        self.coordinates, self.scales = source.coordinates, source.scales
        self.dims = len(self.coordinates)
        self.first, self.second = np.ascontiguousarray(pairs.T)
        self.sums = np.zeros((len(self.scales), 3, len(pairs)))  # of ab, aa, bb

    def advance(self, k: int, out: Units) -> None:
        """Write the cosines over the first k + 1, k + 2 … coordinates, (stage, k, pair)."""
        size, pairs = out.shape[1:]
        step = max(1, min(size, _BLOCK // max(1, pairs)))
        products, scaled = np.empty((3, step, pairs)), np.empty((3, step, pairs))
        for start in range(0, size, step):
            stop = min(size, start + step)
            some, at = slice(k + start, k + stop), slice(0, stop - start)
            ab, a, b = products[:, at]
            coordinates = self.coordinates[some]
            np.take(coordinates, self.first, axis=1, out=a, mode="clip")  # faster than "raise"
            np.take(coordinates, self.second, axis=1, out=b, mode="clip")
            np.multiply(a, b, out=ab)
            np.multiply(a, a, out=a)
            np.multiply(b, b, out=b)
            for stage, scales in enumerate(self.scales):
                terms = np.multiply(products[:, at], scales[some, None], out=scaled[:, at])
                terms[:, 0] += self.sums[stage]
                for j in range(1, stop - start):  # faster than accumulate along that axis
                    np.add(terms[:, j - 1], terms[:, j], out=terms[:, j])
                self.sums[stage] = terms[:, -1]
                dots, norms, others = terms
                norms *= others
                np.sqrt(norms, out=norms)
                if not norms[0].all():  # beside a zero vector the sum of products is 0 as well
                    norms += norms == 0
                dots /= norms
                out[stage, start:stop] = in_units(dots)
