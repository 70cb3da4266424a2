"""Cosines of sentence pairs under every attention head and list of layers.

Tokens are kept as they come, norms computed at once, and pairs taken in blocks of similar lengths.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.analysis.bilinear import BLOCK, blocks, forms, precise, unique_pairs
from whitepool.analysis.tokens import KeptTokens
from whitepool.similarity import DECIMALS
from whitepool.states import BlockHead, Layer, States

Floats = NDArray[np.float64]


class HeadCosines:
    """Sentences come in with `put`; then `of` gives the cosines of pairs of them.

    A recipe is a head within a list of layers, lists outermost. Sums are in float64, so that a
    cosine is that of a single run but for the float32 rounding of the latter's vectors.

    Args:
        lengths: tokens of each sentence.
        lists: lists of resolved layers.
        heads: (block, head) pairs.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        lists: Sequence[tuple[Layer, ...]],
        heads: Sequence[BlockHead],
    ) -> None:
        self.lists = tuple(lists)
        layers = tuple(dict.fromkeys(layer for some in lists for layer in some))
        self.lengths = np.asarray(lengths, dtype=np.int64)
        self.tokens = KeptTokens(lengths, layers, heads)
        # NaN: not encoded yet; a blank sentence has the norm of the zero vector.
        self._norms = np.full((len(lists) * len(heads), len(lengths)), np.nan)
        self._norms[:, self.lengths == 0] = 0.0

    @torch.inference_mode()
    def put(self, rows: Tensor, states: States) -> None:
        """Keep the tokens of some sentences, (batch,), and compute their norms."""
        diagonals = self.tokens.put(rows, states)
        step = max(1, BLOCK // diagonals.shape[1])
        for start in range(0, len(rows), step):
            some = slice(start, start + step)
            d = precise(diagonals[some])
            hidden = {layer: states.hidden[layer][some] for layer in self.tokens.layers}
            squares = torch.cat([forms(x, d, x, d) for x in self._sums(hidden)], dim=1)
            self._norms[:, rows[some].cpu().numpy()] = squares.clamp(min=0).sqrt().T.cpu().numpy()

    def unusable(self) -> NDArray[np.int64]:
        """Sentences whose states are not finite, or that never came."""
        return np.flatnonzero(~np.isfinite(self._norms).all(0))

    @torch.inference_mode()
    def of(self, pairs: NDArray[np.int64]) -> Floats:
        """Cosines, (recipe, pair), of pairs of sentences, (pair, 2).

        A pair that occurs twice, in whatever order, is computed once; a sentence with itself has
        1, and anything with a zero vector 0. Rounded as `whitepool.similarity.cosine` does.
        """
        unique, place = unique_pairs(pairs, self.lengths)
        first, second = unique.T
        norms = self._norms[:, first] * self._norms[:, second]
        result = np.zeros_like(norms)
        same = first == second
        result[:, same] = norms[:, same] > 0
        different = np.flatnonzero(~same & (self.lengths[second] > 0))
        self.tokens.seal()
        for block in blocks(unique[different], self.lengths):
            some = different[block]
            dots = torch.cat(list(self._dots(first[some], second[some])), dim=1).T.cpu().numpy()
            result[:, some] = dots / np.where(norms[:, some] > 0, norms[:, some], 1.0)
        return np.asarray(np.round(result, DECIMALS) + 0.0)[:, place]  # + 0.0: no -0.0

    def _dots(self, first: NDArray[np.int64], second: NDArray[np.int64]) -> Iterator[Tensor]:
        """Dot products of a block, (pair, head) for each list of layers."""
        xa, da = self.tokens.block(torch.from_numpy(first))
        xb, db = self.tokens.block(torch.from_numpy(second))
        da, db = precise(da), precise(db)
        for a, b in zip(self._sums(xa), self._sums(xb), strict=True):
            yield forms(a, da, b, db)

    def _sums(self, hidden: dict[Layer, Tensor]) -> Iterator[Tensor]:
        """The sum over each list's layers, (batch, token, dim), in float64.

        Ditto takes the mean, which has the same cosines.
        """
        for layers in self.lists:
            total = precise(hidden[layers[0]])
            for layer in layers[1:]:
                total = total + hidden[layer]
            yield total


def seconds(lengths: Sequence[int], pairs: int, dim: int, lists: int, heads: int) -> float:
    """About how long norms and pairs will take, from the time that a few of mean length take."""
    some, length = 64, max(1, round(float(np.mean(lengths))))
    x, d = torch.ones(some, length, dim), torch.ones(some, length, heads)
    took = []
    for _ in range(2):  # the first call of a shape is slow
        started = time.perf_counter()
        forms(precise(x), precise(d), precise(x), precise(d))
        took.append(time.perf_counter() - started)
    return min(took) / some * lists * (pairs + len(lengths))
