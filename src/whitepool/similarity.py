"""Cosines of sentence pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DECIMALS = 12


def cosine(
    vectors: NDArray[np.floating], pairs: NDArray[np.int64], chunk: int = 8192
) -> NDArray[np.float64]:
    """Cosine of each pair of rows, (pair,), float64.

    Args:
        vectors: (row, dim).
        pairs: (pair, 2), rows of ``vectors``.
        chunk: pairs taken at a time, which bounds memory.

    The cosine with a zero vector is 0. Values are rounded to 12 decimals, so that pairs of equal
    sentences tie exactly whatever the rounding noise of the dot products.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    norm = np.linalg.norm(vectors, axis=1)
    unit = vectors / np.where(norm > 0, norm, 1.0)[:, None]
    result = np.empty(len(pairs))
    for start in range(0, len(pairs), chunk):
        first, second = pairs[start : start + chunk].T
        result[start : start + chunk] = np.einsum("pd,pd->p", unit[first], unit[second])
    return np.round(result, DECIMALS) + 0.0  # + 0.0 turns -0.0 into 0.0
