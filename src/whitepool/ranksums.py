"""Sums of products of ranks, of many lists with one: what Spearman's rho is made of.

Each list is sorted once with the ranks of the other beside it. Along that order its own ranks are
1 … n, except that runs of equal values share their mean. All arithmetic is in whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

_DECIMALS = 1e12  # of cosines, see `whitepool.similarity`


def sorted_along(
    x: NDArray[Any], double: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """``double``, (pair,), in the order of each row of x, (recipe, pair), and where x ties.

    Returns:
        (recipe, pair), and (recipe, pair - 1): whether an item's x equals the next one's.

    Whole numbers, as multiples of 1e-12 are, leave room for ``double`` in the same 64 bits, and
    sorting those takes a third of the time of finding an order and following it.
    """
    bits = int(double.max()).bit_length()
    whole = _whole(x)
    if whole is not None and max(whole.max(), -whole.min()) < 2.0 ** (62 - bits):
        keys = whole.astype(np.int64)
        keys <<= bits
        keys |= double
        keys.sort(axis=1)
        tied = (keys[:, 1:] ^ keys[:, :-1]).view(np.uint64) < 1 << bits
        keys &= (1 << bits) - 1
        return keys, tied
    order = np.argsort(x, axis=1)
    ordered = np.take_along_axis(x, order, 1)
    return double[order], ordered[:, 1:] == ordered[:, :-1]


def _whole(x: NDArray[Any]) -> NDArray[Any] | None:
    """Numbers as multiples of 1e-12, whole ones as they are; None if they are not multiples."""
    if x.dtype.kind == "i":
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        whole = np.rint(x * _DECIMALS)
        return whole if (whole / _DECIMALS == x).all() else None


def rank_sums(
    double: NDArray[np.int64], tied: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """sum P G and sum P^2 of each recipe, see `spearman_many`, from what `sorted_along` gives."""
    recipes, n = double.shape
    product = np.einsum("rp,p->r", double, 2 * np.arange(n) - (n - 1))
    own = np.full(recipes, (n**3 - n) // 3)
    links = np.flatnonzero(tied)
    if len(links):
        links += links // (n - 1)  # places in the flat array, where rows are longer by one
        breaks = np.flatnonzero(np.diff(links) > 1)
        first = links[np.r_[0, breaks + 1]]  # of each run of equal values, in the flat array
        length = links[np.r_[breaks, len(links) - 1]] - first + 2
        ends = np.cumsum(length)
        place = np.arange(ends[-1]) - np.repeat(ends - length, length)  # within its run
        shift = np.repeat(length - 1, length) - 2 * place  # to twice the run's mean rank
        moved = shift * double.ravel()[np.repeat(first, length) + place]
        np.add.at(product, first // n, np.add.reduceat(moved, ends - length))
        np.add.at(own, first // n, -(length**3 - length) // 3)
    return product, own
