"""How long scoring mixes will take: a few are scored on random numbers of the right sizes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import torch

from whitepool.analysis.grams import Mix
from whitepool.analysis.mixes import Mixes, score_mixes
from whitepool.analysis.whitened import by_cholesky
from whitepool.moments import LayerMoments, Moments
from whitepool.whitening import eigh_descending

TRIED = 8  # mixes, for each thread
ROWS = 512


def raw_seconds(mixes: Mixes) -> float:
    """Seconds that the raw scores of all mixes take."""
    draw = np.random.default_rng(0)
    slots = len(mixes.slots)
    sets = [s.scored for s in mixes.sets.values()]
    kinds = 3, slots * (slots + 1) // 2
    grams = [draw.random((*kinds, len(s.gold))) for s in sets]
    tried = _some(mixes.raw, TRIED * torch.get_num_threads())
    list(score_mixes(sets, grams, tried[:1], slots))  # the first call of a shape is slow
    started = time.perf_counter()
    list(score_mixes(sets, grams, tried, slots))
    return (time.perf_counter() - started) * len(mixes.raw) / len(tried)


def whitened_seconds(mixes: Mixes) -> float:
    """Seconds that moments, maps and mapping take, for all mixes and fit sets.

    The covariance of single layers is taken to be singular, as it is behind a LayerNorm, and so is
    that of too few sentences; the others go by Cholesky.
    """
    if not mixes.whitened:
        return 0.0
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(ROWS, 1, mixes.dim)))
    block = _seconds(lambda: LayerMoments(1, mixes.dim).update(x, torch.ones(ROWS))) / ROWS
    moments = Moments(mixes.dim)
    moments.count, moments.scatter = 2.0, torch.eye(mixes.dim, dtype=torch.float64)
    cholesky = _seconds(lambda: by_cholesky(moments))
    singular = sum(len(mix) == 1 for mix in mixes.whitened)
    few = any(n <= mixes.dim for n in mixes.awaited.values())
    eigen = _seconds(lambda: eigh_descending(moments.covariance())) if singular or few else 0.0
    slots, total = len(mixes.slots), 0.0
    for sentences in mixes.awaited.values():
        by_eigen = len(mixes.whitened) if sentences <= mixes.dim else singular
        total += by_eigen * eigen + (len(mixes.whitened) - by_eigen) * cholesky
        # Mapping a sentence costs about what its share of one block of the moments does.
        blocks = (slots * (slots + 1) // 2 if mixes.crossed else slots) + len(mixes.whitened)
        total += blocks * min(sentences, len(mixes.table)) * block
    return total


def _some(mixes: Sequence[Mix], most: int) -> list[Mix]:
    """Mixes from all over the list."""
    return list(mixes[:: max(1, len(mixes) // most)])[:most]


def _seconds(function: Callable[[], object]) -> float:
    function()
    started = time.perf_counter()
    function()
    return time.perf_counter() - started
