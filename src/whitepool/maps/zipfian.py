"""Zipfian whitening: word vectors whitened under the frequencies of words, not of sentences.

    m = sum_w p(w) x_w,   C = sum_w p(w) (x_w - m)(x_w - m)'

with x_w the static vector of word w and p(w) its share of all words; a sentence is the mean of its
whitened words. The map is affine, so a mean whose weights add up to 1 may be mapped in place of
its words, and this step is PCA whitening of the moments of words (`whitepool.word_moments`).
Source: Yokoi, Bao, Kurita and Shimodaira 2024, "Zipfian Whitening", algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from whitepool.maps.axes import AlongAxes, Axes


@dataclass(frozen=True)
class Zipfian(AlongAxes):
    """PCA whitening to be fitted on the moments of words; see `AlongAxes` for k."""

    def basis(self, axes: Axes) -> Tensor:
        """U_k diag(lambda)^(-1/2), (dim, k)."""
        return axes.vectors * axes.values.rsqrt()
