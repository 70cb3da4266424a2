"""How a set of sentence vectors lies in its space: is it a narrow cone, or spread evenly?

    anisotropy   mean cosine of two different vectors           Ethayarajh 2019
    uniformity   ln mean exp(-2 |u - v|^2), u and v of length 1 Wang and Isola 2020
    alignment    mean |u - v|^2 of pairs that mean the same     Wang and Isola 2020
    IsoScore     1 where the covariance is a multiple of the    Rudman et al. 2022
                 identity, 0 where all variance is in one direction
    entropy rank exp of the entropy of the shares of variance   Roy and Vetterli 2007

Anisotropy is exact for any number of vectors, since the cosines sum to the squared length of the
sum of all unit vectors. Uniformity and alignment are the better the lower they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whitepool.errors import UserError
from whitepool.similarity import unit

Floats = NDArray[np.float64]

_BLOCK = 1024  # rows of distances at a time


def anisotropy(x: Floats) -> float:
    """Mean cosine over all pairs of different rows of x, (n, dim); NaN for fewer than 2.

    Example:
        >>> round(anisotropy(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])), 4)
        0.3333
    """
    u = unit(x)
    n = len(u)
    if n < 2:
        return float("nan")
    total = u.sum(0)
    return float((total @ total - (u * u).sum()) / (n * (n - 1)))


def uniformity(x: Floats) -> float:
    """ln of the mean of exp(-2 |u_i - u_j|^2) over pairs of different rows, (n, dim).

    Costs O(n^2 dim) time and O(n) memory; NaN for fewer than 2 rows.
    """
    u = unit(x)
    n, total = len(u), 0.0
    if n < 2:
        return float("nan")
    squares = (u * u).sum(1)
    for start in range(0, n, _BLOCK):
        rows = slice(start, start + _BLOCK)
        distance = squares[rows, None] + squares - 2 * (u[rows] @ u.T)
        near = np.exp(-2 * np.clip(distance, 0.0, None))
        total += float(near.sum()) - float(np.trace(near[:, start : start + len(near)]))
    return float(np.log(total / (n * (n - 1))))


def alignment(x: Floats, pairs: NDArray[np.int64]) -> float:
    """Mean squared distance of the unit vectors of pairs, (pair, 2), rows of x, (n, dim).

    NaN without a pair.
    """
    if not len(pairs):
        return float("nan")
    u = unit(x)
    gap = u[pairs[:, 0]] - u[pairs[:, 1]]
    return float((gap * gap).sum(1).mean())


def isoscore(covariance: Floats) -> float:
    """IsoScore of vectors with this covariance, (dim, dim): in [0, 1].

    With eigenvalues scaled to length sqrt(dim), their distance from (1, …, 1) is the defect. It
    needs no eigenvalues: their sum is the trace, and their length is the Frobenius norm.

    Raises:
        UserError: the covariance is zero, or has one dimension.
    """
    dim, size = len(covariance), float(np.linalg.norm(covariance))
    if dim < 2 or size == 0:
        raise UserError("IsoScore needs vectors of at least 2 dimensions that are not all equal.")
    defect = 2 * dim - 2 * np.sqrt(dim) * float(np.trace(covariance)) / size  # squared
    # delta^2 = defect / (2 (dim - sqrt dim)); phi = (dim - delta^2 (dim - sqrt dim))^2 / dim^2
    used = (dim - defect / 2) ** 2 / dim**2
    return float(np.clip((dim * used - 1) / (dim - 1), 0.0, 1.0))


def entropy_rank(variances: Floats) -> float:
    """exp of the entropy of eigenvalues, (dim,), as shares of their sum; from 1 to dim.

    Raises:
        UserError: no eigenvalue is positive.
    """
    kept = variances[variances > 0]
    if not len(kept):
        raise UserError("an effective rank needs vectors that are not all equal.")
    share = kept / kept.sum()
    return float(np.exp(-(share * np.log(share)).sum()))
