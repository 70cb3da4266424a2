"""A uniform sample of a stream whose length is not known: reservoir sampling.

Every set of k items of the stream is as likely as any other. Algorithm L jumps over the items that
will not enter the reservoir, so that the draws number k log(n / k) and not n. Source: Li 1994,
"Reservoir-Sampling Algorithms of Time Complexity O(n(1 + log(N/n)))".
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


def sample(items: Iterator[T], size: int, seed: int) -> Iterator[T]:
    """A uniform sample without replacement, in the order of the stream.

    Args:
        items: the stream, read to its end before the first item is given out.
        size: how many are taken, at least 1; all, where the stream has no more.
        seed: the same seed takes the same positions of a stream of the same length.

    Memory is that of ``size`` items, however long the stream.
    """
    # random() alone gives the same numbers in every version of Python; what is built on it
    # (randrange, sample) may change.
    draw = random.Random(seed).random
    kept: dict[int, tuple[int, T]] = {}
    weight, enters = 1.0, size
    for position, item in enumerate(items):
        if position < size:
            kept[position] = position, item
            if position == size - 1:
                weight, enters = _jump(weight, position, size, draw(), draw())
        elif position == enters:
            kept[int(draw() * size)] = position, item
            weight, enters = _jump(weight, position, size, draw(), draw())
    for _, item in sorted(kept.values(), key=lambda one: one[0]):
        yield item


def _jump(
    weight: float, position: int, size: int, first: float, second: float
) -> tuple[float, int]:
    """The new threshold, and the next position that enters; draws lie in [0, 1)."""
    weight *= math.exp(math.log(1 - first) / size)
    skipped = math.log(1 - second) / math.log1p(-weight) if weight < 1 else 0.0
    return weight, position + 1 + math.floor(skipped)
