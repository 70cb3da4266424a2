"""Streamed mean and scatter of vectors, in float64, merged exactly.

    n = sum w_i,  m = sum w_i x_i / n,  S = sum w_i (x_i - m)(x_i - m)'

Chunks are centred on their own mean and merged pairwise (Chan, Golub and LeVeque 1983), since
E[xx'] - mm' loses every digit once the mean is large. A weight says how many times a vector
counts, so that the moments over unique sentences equal those over the repeated rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from whitepool.errors import UserError


class Moments:
    """Count, mean and scatter of the vectors seen so far.

    Attributes:
        count: total weight; the number of vectors where weights are absent.
        mean: (dim,), float64.
        scatter: (dim, dim), float64, sum of the outer products of deviations.

    Cost: O(n dim^2) time, O(dim^2) memory however many vectors are seen.
    """

    def __init__(self, dim: int, device: torch.device | str = "cpu") -> None:
        self.count = 0.0
        self.mean = torch.zeros(dim, dtype=torch.float64, device=device)
        self.scatter = torch.zeros(dim, dim, dtype=torch.float64, device=device)

    @property
    def dim(self) -> int:
        """Number of dimensions of the vectors."""
        return len(self.mean)

    def update(self, x: Tensor, weight: Tensor | None = None) -> Moments:
        """Add vectors x, (n, dim), each counted ``weight`` (n,) times (once if None).

        Raises:
            UserError: a vector is not finite; the message names the rows of x.
        """
        bad = (~torch.isfinite(x).all(dim=1)).nonzero().flatten().tolist()
        if bad:
            raise UserError(
                f"{len(bad)} of {len(x)} vectors are not finite (rows {_some(bad)}): look at those "
                "texts, and at the model in float32 rather than a shorter type."
            )
        x = x.to(self.mean)
        w = torch.ones(len(x), 1, dtype=x.dtype, device=x.device)
        if weight is not None:
            w = weight.to(x).unsqueeze(1)
        chunk = Moments(self.dim, self.mean.device)
        chunk.count = float(w.sum())
        if chunk.count > 0:
            chunk.mean = (w * x).sum(0) / chunk.count
            deviation = x - chunk.mean
            chunk.scatter = deviation.T @ (w * deviation)
        return self.merge(chunk)

    def merge(self, other: Moments) -> Moments:
        """Add what ``other`` has seen; the result does not depend on how data were divided."""
        total = self.count + other.count
        if other.count > 0:
            # Tensors are rebound, not written in place: inside inference mode they are frozen.
            gap = other.mean.to(self.mean) - self.mean
            share = other.count / total
            self.mean = self.mean + share * gap
            between = torch.outer(gap, gap) * (self.count * share)
            self.scatter = self.scatter + other.scatter.to(self.scatter) + between
            self.count = total
        return self

    def covariance(self) -> Tensor:
        """Unbiased covariance S / (n - 1), (dim, dim), exactly symmetric.

        Raises:
            UserError: fewer than 2 vectors were seen.
        """
        if self.count < 2:
            raise UserError(
                f"a covariance needs at least 2 vectors and {self.count:g} was given: fit on more "
                "sentences (whitening.fit_on=task or suite)."
            )
        return (self.scatter + self.scatter.T) / (2 * (self.count - 1))


class LayerMoments:
    """Moments of several vectors per sentence together, from which those of any mix follow.

        v = sum_l a_l x_l:   m = sum_l a_l m_l,   S = sum_l sum_m a_l a_m S_lm

    with S_lm = sum w (x_l - m_l)(x_m - m_m)' over the sentences: one pass over them serves every
    weighting of the layers.

    Args:
        layers: number of vectors per sentence.
        dim: their dimensions.
        crossed: whether blocks of two different layers are kept, which mixes need.

    Attributes:
        count: total weight.
        mean: (layer, dim), float64.
        blocks: (l, m) with l <= m -> S_lm, (dim, dim), float64.

    Cost: O(n dim^2) time and O(dim^2) memory for each block.
    """

    def __init__(self, layers: int, dim: int, *, crossed: bool = True) -> None:
        self.count = 0.0
        self.mean = torch.zeros(layers, dim, dtype=torch.float64)
        self.blocks = {
            (one, other): torch.zeros(dim, dim, dtype=torch.float64)
            for one in range(layers)
            for other in range(one, layers if crossed else one + 1)
        }

    def update(self, x: Tensor, weight: Tensor) -> LayerMoments:
        """Add vectors x, (n, layer, dim), each sentence counted ``weight`` (n,) times."""
        count = float(weight.sum())
        if count > 0:
            x = x.to(self.mean).transpose(0, 1)  # (layer, n, dim)
            w = weight.to(self.mean).unsqueeze(1)
            mean = (w * x).sum(1) / count
            deviation = (x - mean.unsqueeze(1)).contiguous()
            weighted = w * deviation
            gap, share = mean - self.mean, count / (self.count + count)
            for (one, other), block in self.blocks.items():
                block.addmm_(deviation[one].T, weighted[other])
                block.addr_(gap[one], gap[other], alpha=self.count * share)
            self.mean += share * gap
            self.count += count
        return self

    def mix(self, weights: Sequence[float]) -> Moments:
        """Moments of sum_l a_l x_l with ``weights`` a, one for each layer.

        Raises:
            KeyError: two layers are mixed and their block was not kept.
        """
        used = [layer for layer, a in enumerate(weights) if a]
        result = Moments(self.mean.shape[1])
        result.count = self.count
        for i, one in enumerate(used):
            result.mean = result.mean + weights[one] * self.mean[one]
            result.scatter.add_(self.blocks[one, one], alpha=weights[one] ** 2)
            for other in used[i + 1 :]:
                block, a = self.blocks[one, other], weights[one] * weights[other]
                result.scatter.add_(block, alpha=a).add_(block.T, alpha=a)
        return result


def _some(rows: list[int], most: int = 5) -> str:
    return ", ".join(map(str, rows[:most])) + (", …" if len(rows) > most else "")
