"""Cosines of every mix of slots from one small Gram array per pair.

    v = sum_l s_l x_l        cos(v_a, v_b) = s'G_ab s / sqrt(s'G_aa s * s'G_bb s),  G_ab = X_a X_b'

A slot is one of several vectors of a sentence, its layers for instance; s is 1 in the slots of a
mix and 0 elsewhere, since a cosine does not ask whether a mix is the sum or the mean. A quadratic
form is linear in the products of s with itself, so that all mixes of all pairs are one matrix
product: (mix, product) with (product, pair), a product being an unordered pair of slots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.similarity import in_units

Floats = NDArray[np.float64]
Units = NDArray[np.int64]
Mix = tuple[int, ...]

_PAIRS = 4096  # of a product; what follows each product then finds it in the cache


def products(first: Tensor, second: Tensor) -> Floats:
    """What the quadratic forms s'G s of some pairs are made of, (product, pair).

    Args:
        first: (pair, slot, dim), float64.
        second: (pair, slot, dim), float64.

    Of two different slots both entries of G are added, in the order of `np.triu_indices`.
    """
    gram = torch.bmm(first, second.transpose(1, 2))  # (pair, slot, slot)
    one, other = np.triu_indices(gram.shape[1])
    halves = torch.from_numpy(np.where(one == other, 0.5, 1.0))
    return ((gram[:, one, other] + gram[:, other, one]) * halves).T.contiguous().numpy()


def design(mixes: Sequence[Mix], slots: int) -> Floats:
    """Which products each mix is made of: 1 or 0, (mix, product)."""
    chosen = np.zeros((len(mixes), slots))
    for row, mix in zip(chosen, mixes, strict=True):
        row[list(mix)] = 1.0
    one, other = np.triu_indices(slots)
    return chosen[:, one] * chosen[:, other]


def mix_cosines(chosen: Floats, both: Floats, first: Floats, second: Floats) -> Units:
    """Cosines of some mixes, (mix, pair), in units (`whitepool.similarity.in_units`).

    Args:
        chosen: the mixes' `design`, (mix, product).
        both: `products` of each pair's first and second sentence, (product, pair).
        first: of the first sentence with itself, (product, pair).
        second: of the second sentence with itself, (product, pair).

    The cosine with a zero vector is 0.
    """
    result = np.empty((len(chosen), both.shape[1]), dtype=np.int64)
    for start in range(0, both.shape[1], _PAIRS):
        some = slice(start, start + _PAIRS)
        dots, scale = chosen @ both[:, some], chosen @ first[:, some]
        scale *= chosen @ second[:, some]
        zero = scale <= 0
        if zero.any():
            scale[zero] = np.inf
        np.sqrt(scale, out=scale)
        dots /= scale
        result[:, some] = in_units(dots)
    return result
