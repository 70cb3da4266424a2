"""How the parts after encoding grow: moments, eigendecomposition, every k; on made-up vectors.

Each row has what its formula says is done, in floating-point operations, so that a formula that
holds shows as a rate that stays: a wrong power of n or d would show as one that falls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from whitepool.analysis.prefixes import Pairs, prefix_cosines
from whitepool.correlation import spearman_many
from whitepool.maps.axes import eigh_descending
from whitepool.moments import LayerMoments, Moments

CHUNK = 4096  # vectors of an update
PARTS: dict[str, str] = {  # part -> formula
    "moments": "2 n d^2",
    "moments of layers": "n d^2 l (l + 1)",
    "eigendecomposition": "9 d^3",
    "every k": "n d log2(n)",
}


@dataclass(frozen=True)
class Cost:
    """What one size of a part took.

    Attributes:
        part: of `PARTS`.
        count: vectors, or pairs; 0 where they do not matter.
        dim: of a vector.
        layers: of a sentence.
        operations: what the formula says, in 1e9.
        seconds: best of the rounds.
    """

    part: str
    count: int
    dim: int
    layers: int
    operations: float
    seconds: float


def measure(counts: Sequence[int], dims: Sequence[int], rounds: int) -> Iterator[Cost]:
    """All parts: every count at the first dimension, every dimension at the first count.

    Args:
        counts: numbers of vectors.
        dims: numbers of dimensions.
        rounds: how often each is timed.
    """
    few, many = min(counts), sorted(counts)
    for count, dim in [(n, dims[0]) for n in many] + [(few, d) for d in dims[1:]]:
        seconds = _best(rounds if count == few else 1, partial(_moments, count, dim))
        yield Cost("moments", count, dim, 1, 2e-9 * count * dim**2, seconds)
    for layers in (1, 2, 4, 13):
        seconds = _best(1, partial(_layer_moments, few, dims[0], layers))
        work = 1e-9 * few * dims[0] ** 2 * layers * (layers + 1)
        yield Cost("moments of layers", few, dims[0], layers, work, seconds)
    for dim in dims:
        covariance = Moments(dim).update(_vectors(4 * dim, dim)).covariance()
        seconds = _best(rounds, partial(eigh_descending, covariance))
        yield Cost("eigendecomposition", 0, dim, 1, 9e-9 * dim**3, seconds)
    dim = min(dims)
    for count in many:
        pairs = count // 2
        work = 1e-9 * pairs * dim * np.log2(pairs)
        yield Cost("every k", pairs, dim, 1, work, _every_k(count, dim))


def rows(found: Sequence[Cost]) -> list[dict[str, str]]:
    """The table."""
    return [
        {
            "part": cost.part,
            "formula": PARTS[cost.part],
            "n": f"{cost.count:,}" if cost.count else "",
            "d": f"{cost.dim:,}",
            "l": str(cost.layers),
            "s": f"{cost.seconds:.3g}",
            "1e9 a second": f"{cost.operations / cost.seconds:.3g}",
        }
        for cost in found
    ]


def _vectors(count: int, dim: int) -> torch.Tensor:
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(0))


def _best(rounds: int, run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(rounds):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _moments(count: int, dim: int) -> None:
    chunk, moments = _vectors(CHUNK, dim), Moments(dim)
    for start in range(0, count, CHUNK):
        moments.update(chunk[: count - start])


def _layer_moments(count: int, dim: int, layers: int) -> None:
    chunk = _vectors(CHUNK * layers, dim).view(CHUNK, layers, dim)
    moments, weight = LayerMoments(layers, dim), torch.ones(CHUNK)
    for start in range(0, count, CHUNK):
        moments.update(chunk[: count - start], weight[: count - start])


def _every_k(count: int, dim: int) -> float:
    """Seconds of Spearman at every k, of as many pairs as ``count`` vectors make."""
    draw = np.random.default_rng(0)
    pairs = np.arange(count // 2 * 2).reshape(-1, 2)
    coordinates = draw.standard_normal((dim, count))
    gold = draw.integers(0, 51, len(pairs)) / 10
    started = time.perf_counter()
    for (units,) in prefix_cosines([Pairs(coordinates, np.ones((1, dim)), pairs)]):
        spearman_many(units[0], gold)
    return time.perf_counter() - started
