"""Maps that leave the axes as they are: centring, and each dimension scaled to variance 1."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from whitepool.maps.affine import Affine
from whitepool.maps.axes import principal_axes
from whitepool.moments import Moments


@dataclass(frozen=True)
class Center:
    """z = x - m."""

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on the vectors seen by ``moments``.

        Raises:
            UserError: fewer than 2 vectors, or all of them are equal, so that all would be 0.
        """
        axes = principal_axes(moments)
        return axes.affine(torch.eye(moments.dim, dtype=torch.float64))


@dataclass(frozen=True)
class Standardize:
    """z = (x - m) / s with s the standard deviation (n - 1) of each dimension.

    A dimension without variance, by the cut that eigenvalues have, becomes 0.
    """

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on the vectors seen by ``moments``.

        Raises:
            UserError: fewer than 2 vectors, or all of them are equal.
        """
        axes = principal_axes(moments)
        variances = moments.covariance().diagonal()
        cut = variances.max() * moments.dim * torch.finfo(variances.dtype).eps
        scales = torch.where(variances > cut, variances.rsqrt(), 0.0)
        return axes.affine(scales.diag())
