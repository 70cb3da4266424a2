"""PCA whitening, the step of the three papers; the other steps are in `whitepool.maps`.

    z = (x - m) B,  B = U_k diag(lambda_1 … lambda_k)^(-1/2)

with m the mean and lambda, U the eigenvalues and eigenvectors of the covariance, largest first.
Keeping the first k columns is BERT-whitening's dimension reduction (Su et al. 2021), keeping all is
WhiteningBERT (Huang et al. 2021). On the vectors it was fitted on, z has mean 0 and covariance 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from whitepool.maps.affine import Affine, Map, load_maps, save_maps
from whitepool.maps.axes import AlongAxes, Axes, eigh_descending
from whitepool.moments import Moments

__all__ = ["Affine", "Map", "PostProcess", "Whitening", "eigh_descending", "load_maps", "save_maps"]


class PostProcess(Protocol):
    """A step after pooling, fitted on moments alone; the others are in `whitepool.maps`."""

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on ``moments``; ``name`` is what warnings call those vectors."""
        ...


@dataclass(frozen=True)
class Whitening(AlongAxes):
    """PCA whitening onto the first k directions; see `AlongAxes` for k."""

    def basis(self, axes: Axes) -> Tensor:
        """U_k diag(lambda)^(-1/2), (dim, k)."""
        return axes.vectors * axes.values.rsqrt()
