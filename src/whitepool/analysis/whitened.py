"""Whitened cosines of many mixes of slots, their covariances mixed from blocks.

    cos(x, y) = (x - m)' C^-1 (y - m) / sqrt((x - m)' C^-1 (x - m) * (y - m)' C^-1 (y - m))

Whitening onto every direction is the Mahalanobis cosine, whatever the rotation: C = K K' (Cholesky)
and z = K^-1 (x - m) serve as well as the principal axes, at a fraction of their cost. That holds
while C has full rank by the cut of `whitepool.whitening.Whitening`; otherwise, as for fewer
directions, the map is the very one that a single run fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.analysis.grams import Mix
from whitepool.errors import UserError
from whitepool.maps.axes import AlongAxes
from whitepool.moments import LayerMoments, Moments
from whitepool.similarity import cosine
from whitepool.whitening import Affine, PostProcess, Whitening

Floats = NDArray[np.float64]
STEP = 1024  # sentences taken at a time


@dataclass(frozen=True, eq=False)
class Part:
    """Sentences of a fit set that were encoded together.

    Attributes:
        vectors: (row, slot, dim), zero for blank sentences.
        counts: how often each row occurs in the fit set, (row,); 0 for blank ones.
        pairs: name of scored set -> (pair, 2), rows of ``vectors``.
    """

    vectors: NDArray[np.float32]
    counts: NDArray[np.int64]
    pairs: dict[str, NDArray[np.int64]]

    def mixed(self, mix: Mix) -> Tensor:
        """Mean over the slots of a mix, (row, dim), float64."""
        result = self.vectors[:, mix[0]].astype(np.float64)
        for slot in mix[1:]:
            result += self.vectors[:, slot]
        return torch.from_numpy(result).div_(len(mix))


def gather(parts: Sequence[Part], *, crossed: bool) -> LayerMoments:
    """Moments of all slots over the sentences of a fit set.

    Raises:
        UserError: none of them has any text.
    """
    _, slots, dim = parts[0].vectors.shape
    moments = LayerMoments(slots, dim, crossed=crossed)
    for part in parts:
        used = np.flatnonzero(part.counts)
        for start in range(0, len(used), STEP):
            rows = used[start : start + STEP]
            weight = torch.from_numpy(part.counts[rows])
            moments.update(torch.from_numpy(part.vectors[rows]), weight)
    if not moments.count:
        raise UserError("no sentence of it has any text.")
    return moments


def whitened_cosines(
    parts: Sequence[Part], moments: LayerMoments, mixes: Sequence[Mix], post: PostProcess
) -> Iterator[tuple[Affine, dict[str, Floats]]]:
    """The map of each mix in turn, and the cosines, (pair,), of each scored set through it.

    Raises:
        UserError: a map cannot be fitted.
    """
    slots = len(moments.mean)
    for mix in mixes:
        weights = [1 / len(mix) if slot in mix else 0.0 for slot in range(slots)]
        affine = fit(post, moments.mix(weights))
        found: dict[str, list[Floats]] = {}
        for part in parts:
            z = affine(part.mixed(mix)).numpy()
            z[part.counts == 0] = 0.0
            for name, pairs in part.pairs.items():
                found.setdefault(name, []).append(cosine(z, pairs))
        yield affine, {name: np.concatenate(values) for name, values in found.items()}


def fit(post: PostProcess, moments: Moments) -> Affine:
    """The map of ``post``, or one that gives the same cosines and is quicker to find.

    Raises:
        UserError: it cannot be fitted.
    """
    if isinstance(post, Whitening) and post.k is None and (quick := by_cholesky(moments)):
        return quick
    return post.solve(moments) if isinstance(post, AlongAxes) else post.fit(moments)


def by_cholesky(moments: Moments) -> Affine | None:
    """z = K^-1 (x - m) with C = K K'; None unless C has full rank beyond doubt.

    The least eigenvalue of C is at least 1 / trace(C^-1) = 1 / |K^-1|^2 and the largest at most
    |C| (Frobenius norms), so the cut of `Whitening` is passed where these bounds pass it.
    """
    covariance = moments.covariance()
    factor, failed = torch.linalg.cholesky_ex(covariance)
    if int(failed):
        return None
    unit = torch.eye(moments.dim, dtype=factor.dtype)
    inverse = torch.linalg.solve_triangular(factor, unit, upper=False)
    cut = torch.linalg.matrix_norm(covariance) * moments.dim * torch.finfo(factor.dtype).eps
    if not 1 / inverse.square().sum() > cut:
        return None
    return Affine(moments.mean, inverse.T, moments.count, moments.dim)
