"""Relatives of whitening: other ways to rescale the principal axes of vectors.

    zca        (x - m) U lambda^(-1/2) U'            whitened, and as near to x as that can be
    tempered   (x - m) U lambda^(-gamma/2)           gamma 0: rotated only; 1: whitened
    soft       (x - m) U (lambda + eps)^(-1/2)       small directions grow by eps^(-1/2) at most
    shrinkage  (x - m) U ((1 - r) lambda + r mu)^(-1/2)

with m, lambda, U the mean, eigenvalues and eigenvectors of the vectors (`whitepool.maps.axes`), mu
the mean eigenvalue and r the shrinkage that suits n vectors of a normal distribution (OAS). The
last two keep directions without variance, since they divide none by zero.

Sources: Kessy, Lewin and Strimmer 2018 (ZCA); Diera, Galke and Scherp 2024, "Isotropy Matters:
Soft-ZCA Whitening" (whose last rotation, U', no cosine shows, and which is left out so that k
directions can be kept); Chen, Wiesel, Eldar and Hero 2010 (OAS, equation 23).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from whitepool.errors import UserError
from whitepool.maps.affine import Affine
from whitepool.maps.axes import AlongAxes, Axes, check_k, principal_axes
from whitepool.moments import Moments


@dataclass(frozen=True)
class Zca(AlongAxes):
    """Whitening without a rotation: vectors keep their coordinates, k directions or not."""

    def basis(self, axes: Axes) -> Tensor:
        """U_k diag(lambda)^(-1/2) U_k', (dim, dim)."""
        return (axes.vectors * axes.values.rsqrt()) @ axes.vectors.T


@dataclass(frozen=True)
class Tempered(AlongAxes):
    """Whitening in part.

    Args:
        k: see `AlongAxes`.
        gamma: 0 rotates only, 1 whitens.

    Raises:
        UserError: gamma is outside 0 to 1.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _is_number(self.gamma) or not 0 <= self.gamma <= 1:
            raise UserError(
                f"whitening.gamma is {self.gamma!r}: give a number from 0, which rotates only, to "
                "1, which whitens."
            )

    def basis(self, axes: Axes) -> Tensor:
        """U_k diag(lambda)^(-gamma/2), (dim, k)."""
        return axes.vectors * axes.values ** (-self.gamma / 2)


@dataclass(frozen=True)
class Soft:
    """Whitening with eps added to every variance.

    Args:
        k: number of directions; None keeps all, those without variance too.
        eps: in the units of the variances, so it does not suit all models alike.

    Raises:
        UserError: k is no whole number from 1, or eps is not above 0.
    """

    k: int | None = None
    eps: float = 0.1

    def __post_init__(self) -> None:
        check_k(self.k)
        if not _is_number(self.eps) or not 0 < self.eps < math.inf:
            raise UserError(f"whitening.eps is {self.eps!r}: give a number above 0.")

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on the vectors seen by ``moments``, with (dim, k) as its basis.

        Raises:
            UserError: fewer than 2 vectors, no variance at all, or k above the effective rank.
        """
        axes = principal_axes(moments, self.k, flat=True)
        return axes.affine(axes.vectors * (axes.values + self.eps).rsqrt())


@dataclass(frozen=True)
class Shrinkage:
    """Whitening by a covariance shrunk towards a multiple of 1, for few vectors.

    Args:
        k: number of directions; None keeps all, those without variance too.

    A vector counts as often as it occurs, though a repeat tells the estimate nothing new.

    Raises:
        UserError: k is no whole number from 1.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        check_k(self.k)

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on the vectors seen by ``moments``, with (dim, k) as its basis.

        Raises:
            UserError: fewer than 2 vectors, no variance at all, or k above the effective rank.
        """
        axes = principal_axes(moments, self.k, flat=True)
        covariance = moments.covariance()
        share, mean = oas(covariance, moments.count)
        return axes.affine(axes.vectors * ((1 - share) * axes.values + share * mean).rsqrt())


def oas(covariance: Tensor, count: float) -> tuple[float, float]:
    """How far to shrink a covariance, (dim, dim), of ``count`` vectors, and the mean variance.

    r = min(1, ((1 - 2/d) a + mu^2) / ((n + 1 - 2/d) (a - mu^2 / d)))

    with a the mean square of the d^2 entries and mu the mean variance. scikit-learn leaves 2/d out.
    """
    dim = len(covariance)
    mean = float(covariance.trace()) / dim
    square = float(covariance.square().mean())
    known = 1 - 2 / dim
    spread = (count + known) * (square - mean**2 / dim)  # 0 where all variances are equal
    return min(1.0, (known * square + mean**2) / spread) if spread > 0 else 1.0, mean


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
