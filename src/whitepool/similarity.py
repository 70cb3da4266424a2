"""Cosines of sentence pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whitepool.errors import UserError

DECIMALS = 12
_VALUES = 2**22  # of the first sentences of the pairs taken at a time
_SHIFT = 1.5 * 2.0**52
_SHIFT_BITS = np.float64(_SHIFT).view(np.int64)
_BLOCK = 1024  # pairs whose vectors are laid side by side

Step = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]
"""(n, dim) and the rows that they are, (n,) -> (n, k), a new array."""


def cosine(
    vectors: NDArray[np.floating],
    pairs: NDArray[np.int64],
    chunk: int | None = None,
    through: Step | None = None,
) -> NDArray[np.float64]:
    """Cosine of each pair of rows, (pair,), float64.

    Args:
        vectors: (row, dim).
        pairs: (pair, 2), rows of ``vectors``.
        chunk: distinct pairs taken at a time, which bounds memory; by default as many as have
            4 million values on one side.
        through: a step that vectors go through first.

    The cosine with a zero vector is 0. Values are rounded to 12 decimals, so that pairs of equal
    sentences tie exactly whatever the rounding noise of the dot products. A pair that occurs again,
    in either order, is taken once, so that it ties whatever chunk it would have come in: a matrix
    product may round a row differently in other company.
    """
    rows = len(vectors)
    keys = pairs.min(axis=1) * rows + pairs.max(axis=1)
    keys, place = np.unique(keys, return_inverse=True)
    step = chunk or max(1, _VALUES // max(1, vectors.shape[1]))
    found = np.empty(len(keys))
    for start in range(0, len(keys), step):
        both = np.stack(np.divmod(keys[start : start + step], rows), axis=1)
        some, local = np.unique(both, return_inverse=True)
        found[start : start + step] = _cosine(vectors, some, local.reshape(both.shape), through)
    values: NDArray[np.float64] = found[place]
    return np.round(values, DECIMALS) + 0.0  # + 0.0 turns -0.0 into 0.0


def _cosine(
    vectors: NDArray[np.floating],
    rows: NDArray[np.int64],
    pairs: NDArray[np.int64],
    through: Step | None,
) -> NDArray[np.float64]:
    """Cosines of pairs, (pair, 2), of some rows, before rounding."""
    unit = vectors[rows].astype(np.float64, copy=False)
    if through is not None:
        unit = through(unit, rows)
    norm = np.linalg.norm(unit, axis=1)
    unit /= np.where(norm > 0, norm, 1.0)[:, None]
    result = np.empty(len(pairs))
    for start in range(0, len(pairs), _BLOCK):
        first, second = pairs[start : start + _BLOCK].T
        result[start : start + _BLOCK] = np.einsum("pd,pd->p", unit[first], unit[second])
    return result


def in_units(cosines: NDArray[np.float64]) -> NDArray[np.int64]:
    """Cosines as whole numbers of 1e-12, rounded as `cosine` rounds: what ranks are made of.

    They take the place of the cosines, which are used up. Ranks and correlations do not ask for the
    unit, and whole numbers sort and compare without another look at how they were rounded.
    """
    cosines *= 10.0**DECIMALS
    cosines += _SHIFT  # leaves no bits for what is behind the point: rounds to even, as rint does
    units = cosines.view(np.int64)
    units -= _SHIFT_BITS
    return units


def cosine_matrix(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Cosine of each row of a, (n, dim), with each row of b, (m, dim): (n, m), float64.

    One vector, (dim,), counts as one row. Zero vectors and rounding are as in `cosine`.

    Raises:
        UserError: the rows differ in dimension, or one is not finite.

    Example:
        >>> cosine_matrix([[1.0, 0.0], [3.0, 4.0]], [0.0, 2.0]).tolist()
        [[0.0], [0.8]]
    """
    first, second = _finite_unit(a), _finite_unit(b)
    _check_dims(first, second)
    result: NDArray[np.float64] = first @ second.T
    return np.round(result, DECIMALS) + 0.0


def cosine_rows(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Cosine of each row of a, (n, dim), with the same row of b, (n, dim): (n,), float64.

    Raises:
        UserError: the rows differ in number or dimension, or one is not finite.
    """
    first, second = _finite_unit(a), _finite_unit(b)
    _check_dims(first, second)
    if len(first) != len(second):
        raise UserError(f"{len(first)} vectors cannot be paired with {len(second)}.")
    result: NDArray[np.float64] = np.einsum("nd,nd->n", first, second)
    return np.round(result, DECIMALS) + 0.0


def unit(vectors: ArrayLike) -> NDArray[np.float64]:
    """Rows of length 1, (n, dim), float64; zero rows stay zero. One vector, (dim,), is one row."""
    x = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    size = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    x = x / np.where(size > 0, size, 1.0)  # squares of very large or small numbers have no place
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    result: NDArray[np.float64] = x / np.where(norm > 0, norm, 1.0)
    return result


def _finite_unit(vectors: ArrayLike) -> NDArray[np.float64]:
    """`unit`, of vectors that may come from anywhere."""
    x = np.atleast_2d(np.asarray(vectors, dtype=np.float64))
    bad = np.flatnonzero(~np.isfinite(x).all(axis=1))
    if len(bad):
        raise UserError(
            f"row {bad[0]} of the vectors is not finite ({len(bad)} of {len(x)} rows are not): "
            "leave it out, or look at how it was made."
        )
    return unit(x)


def _check_dims(a: NDArray[np.float64], b: NDArray[np.float64]) -> None:
    if a.shape[1] != b.shape[1]:
        raise UserError(f"vectors of {a.shape[1]} and of {b.shape[1]} dimensions have no cosine.")
