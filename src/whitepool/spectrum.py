"""The spectrum of a covariance in a few numbers: how many directions the vectors really use."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from whitepool.moments import Moments

SHARES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Spectrum:
    """What the eigenvalues of a covariance say.

    Attributes:
        count: vectors, with their weights.
        dim: dimensions.
        rank: effective rank: eigenvalues that are more than rounding noise.
        condition: largest eigenvalue over the smallest within the rank; NaN without variance.
        directions: how many leading directions hold 50, 90 and 99 % of the variance.
    """

    count: float
    dim: int
    rank: int
    condition: float
    directions: tuple[int, ...]

    @classmethod
    def of(cls, moments: Moments) -> Spectrum:
        """The spectrum of the covariance of ``moments``; costs O(dim^3).

        Raises:
            UserError: fewer than 2 vectors.
        """
        values = eigenvalues(moments)
        rank = effective_rank(values)
        if rank == 0:
            return cls(moments.count, moments.dim, 0, float("nan"), (0,) * len(SHARES))
        held = values.cumsum(0) / values.sum()
        # A share of 1 in exact arithmetic may fall short of it by rounding, so the last value is 1.
        held[-1] = 1.0
        points = tuple(int((held < share).sum()) + 1 for share in SHARES)
        return cls(moments.count, moments.dim, rank, float(values[0] / values[rank - 1]), points)


def eigenvalues(moments: Moments) -> Tensor:
    """Eigenvalues of the covariance, (dim,), largest first, none of them negative."""
    values: Tensor = torch.linalg.eigvalsh(moments.covariance())
    return values.flip(0).clamp(min=0)


def effective_rank(values: Tensor) -> int:
    """How many eigenvalues, (dim,), largest first, are more than rounding noise.

    An eigenvalue counts as zero below ``largest * dim * eps`` of its type.
    """
    cut = values[0] * len(values) * torch.finfo(values.dtype).eps
    return int((values > cut).sum()) if values[0] > 0 else 0
