"""Cosines of all attention heads from the tokens of two sentences.

Ditto's vector of a sentence is v = X' d: the rows of X (token, dim) are its token states, the sum
over a list of layers, and d (token,) is the attention diagonal of one head (Chen et al. 2023,
"Ditto: A Simple and Efficient Approach to Improve Sentence Embeddings"). So for two sentences

    v_a . v_b = d_a' G_ab d_b   with   G_ab = X_a X_b',   (token a, token b)

and G, the costly part, serves every head. Nothing here is divided by sums of weights: no cosine
would change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = NDArray[np.int64]

BLOCK = 1024  # tokens of a block of pairs: its products stay in cache, faster than 4096


def forms(xa: Tensor, da: Tensor, xb: Tensor, db: Tensor) -> Tensor:
    """d_a' X_a X_b' d_b of each pair and head, (pair, head).

    Args:
        xa: states of the first sentences, (pair, token, dim); padding must be finite.
        da: their diagonals, (pair, token, head), zero at padding.
        xb: states of the second sentences, (pair, token, dim).
        db: their diagonals, (pair, token, head).
    """
    gram = xa @ xb.transpose(1, 2)  # (pair, token a, token b)
    return ((gram @ db) * da).sum(1)


def precise(x: Tensor) -> Tensor:
    """In float64, where the device has it."""
    return x.to(torch.float32 if x.device.type == "mps" else torch.float64)


def unique_pairs(pairs: Rows, lengths: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Each pair once whatever its order, so that equal pairs cannot but tie.

    Args:
        pairs: (pair, 2), rows of a table.
        lengths: tokens of each row.

    Returns:
        (unique, 2), the longer sentence first, sorted by both lengths; and (pair,), where each
        pair stands among them.
    """
    a, b = np.sort(pairs, axis=1).T
    key, inverse = np.unique(a * len(lengths) + b, return_inverse=True)
    unique = np.stack(np.divmod(key, max(1, len(lengths))), axis=1)
    swap = lengths[unique[:, 0]] < lengths[unique[:, 1]]
    unique[swap] = unique[swap][:, ::-1]
    order = np.lexsort(lengths[unique].T[::-1])
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return unique[order], place[inverse.reshape(-1)]


def blocks(pairs: Rows, lengths: NDArray[np.int64], tokens: int = BLOCK) -> Iterator[slice]:
    """Slices of sorted pairs with at most so many tokens, padding included (or one pair)."""
    start = 0
    width = np.zeros(2, dtype=np.int64)
    for i, longest in enumerate(lengths[pairs]):
        grown = np.maximum(width, longest)
        if i > start and (i + 1 - start) * grown.sum() > tokens:
            yield slice(start, i)
            start, grown = i, longest
        width = grown
    if start < len(pairs):
        yield slice(start, len(pairs))
