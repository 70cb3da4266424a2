"""Principal axes of vectors, and the steps that stretch them.

    C = U diag(lambda) U'

with lambda, U the eigenvalues and eigenvectors of the covariance, largest first.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.maps.affine import Affine
from whitepool.moments import Moments
from whitepool.spectrum import effective_rank

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal axes of vectors.

    Attributes:
        mean: (dim,), float64.
        values: (k,), variances (n - 1) along the axes, largest first.
        vectors: (dim, k), the axes as columns.
        count: how many vectors.
        rank: effective rank of the vectors.
    """

    mean: Tensor
    values: Tensor
    vectors: Tensor
    count: float
    rank: int

    def affine(self, basis: Tensor) -> Affine:
        """The map with these vectors' mean and ``basis``, on the CPU."""
        # Laid out as files are, since the order of summation in a product depends on that.
        return Affine(self.mean.cpu(), basis.cpu().contiguous(), self.count, self.rank)


def principal_axes(moments: Moments, k: int | None = None, *, flat: bool = False) -> Axes:
    """The first k principal axes, with the signs of `eigh_descending`.

    Args:
        moments: of the vectors.
        k: number of axes; None, or one for each dimension, for every axis above the rank cut.
        flat: keep the axes without variance too, with a variance of 0, where all are asked for.

    Raises:
        UserError: fewer than 2 vectors, no variance at all, or k above the effective rank.
    """
    values, vectors = eigh_descending(moments.covariance())
    n, dim = moments.count, moments.dim
    rank = effective_rank(values)
    if rank == 0:
        raise UserError(
            f"all {n:g} vectors are equal, so there is nothing to whiten: give whitening=off."
        )
    if k is not None and k > dim:
        raise UserError(
            f"whitening.k={k} is over the {dim} dimensions of the vectors: give k up to "
            f"{rank}, their effective rank, or null to keep all {dim if flat else rank} directions."
        )
    if k is not None and rank < k < dim:
        raise UserError(
            f"whitening.k={k} is over the effective rank {rank} of {n:g} vectors in {dim} "
            f"dimensions: give k up to {rank}, or null to keep all {dim if flat else rank} "
            "directions."
        )
    values = torch.cat([values[:rank], torch.zeros_like(values[rank:])])
    kept = (dim if flat else rank) if k is None or k == dim else k
    return Axes(moments.mean, values[:kept], vectors[:, :kept], n, rank)


@dataclass(frozen=True)
class AlongAxes(ABC):
    """A step that stretches the principal axes above the rank cut.

    Args:
        k: number of directions; None keeps every direction above the rank cut.

    The covariance is unbiased (n - 1). An eigenvalue counts as zero below
    ``largest * dim * eps`` of float64: divided by its root, rounding noise would become a
    direction of unit variance, and a new sentence's vector could grow without bound in it.

    Raises:
        UserError: k is no whole number from 1.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        check_k(self.k)

    @abstractmethod
    def basis(self, axes: Axes) -> Tensor:
        """The basis, (dim, k) or (dim, dim), made of the axes kept."""

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on the vectors seen by ``moments``.

        Warns, through the log, where directions are dropped; ``name`` says of which vectors.

        Raises:
            UserError: fewer than 2 vectors, no variance at all, or k above the effective rank.
        """
        affine = self.solve(moments)
        k = min(self.k or affine.rank, affine.rank)
        if affine.rank < moments.dim:
            log.warning(
                "%sthe %.0f vectors span %d of %d dimensions (effective rank): %s",
                f"{name}: " if name else "",
                moments.count,
                affine.rank,
                moments.dim,
                f"{moments.dim - k} without variance dropped."
                if k == affine.rank
                else f"the first {k} are kept.",
            )
        if affine.rank >= moments.count - 1:
            warn_of_few(moments.count, k, name)
        return affine

    def solve(self, moments: Moments) -> Affine:
        """What `fit` gives, without a word in the log: a grid of recipes sums the words up.

        Raises:
            UserError: see `fit`.
        """
        axes = principal_axes(moments, self.k)
        return axes.affine(self.basis(axes))


def warn_of_few(count: float, k: int, name: str) -> None:
    """Say that fully whitened, so few vectors would be as far apart as any others are."""
    log.warning(
        "%s%.0f vectors are too few for %d directions: fully whitened, all of them would be "
        "equally far apart. Fit on more sentences, give a whitening.k far below %.0f, or choose "
        "whitening=shrinkage.",
        f"{name}: " if name else "",
        count,
        k,
        count,
    )


def check_k(k: object) -> None:
    """See that k is a number of directions, or None.

    Raises:
        UserError: it is not.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise UserError(f"whitening.k is {k!r}: give a whole number from 1, or null for all.")


def eigh_descending(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues, (dim,), largest first, and eigenvectors, (dim, dim), as columns.

    Signs are fixed: the entry of largest size in each eigenvector is positive. A solver that fails
    on the GPU is retried on the CPU, with a word in the log.
    """
    try:
        values, vectors = torch.linalg.eigh(symmetric)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        if symmetric.device.type == "cpu":
            raise
        log.warning("eigh failed on %s and runs on the CPU instead.", symmetric.device)
        values, vectors = torch.linalg.eigh(symmetric.cpu())
    values, vectors = values.flip(0), vectors.flip(1)
    largest = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
    return values, vectors * torch.where(largest < 0, -1.0, 1.0)
