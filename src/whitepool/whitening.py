"""Affine maps fitted on moments: PCA whitening, and how maps are kept.

    z = (x - m) B,  B = U_k diag(lambda_1 … lambda_k)^(-1/2)

with m the mean and lambda, U the eigenvalues and eigenvectors of the covariance, largest first.
Keeping the first k columns is BERT-whitening's dimension reduction (Su et al. 2021), keeping all is
WhiteningBERT (Huang et al. 2021). On the vectors it was fitted on, z has mean 0 and covariance 1.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.moments import Moments
from whitepool.spectrum import effective_rank

log = logging.getLogger(__name__)

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Affine:
    """z = (x - mean) basis.

    Attributes:
        mean: (dim,), float64.
        basis: (dim, k), float64.
        count: how many vectors it was fitted on.
        rank: effective rank of those vectors, at least k.
    """

    mean: Tensor
    basis: Tensor
    count: float
    rank: int

    def __call__(self, x: Tensor) -> Tensor:
        """Map x, (dim,) or (n, dim), to (k,) or (n, k); computed in float64, given in x's type."""
        return ((x.to(self.mean) - self.mean) @ self.basis).to(x.dtype)

    def first(self, k: int) -> Affine:
        """The map onto the first k directions."""
        if not 1 <= k <= self.basis.shape[1]:
            raise UserError(f"this map has {self.basis.shape[1]} directions, {k} were asked for.")
        return Affine(self.mean, self.basis[:, :k], self.count, self.rank)


class PostProcess(Protocol):
    """A step after pooling, fitted on moments alone."""

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on ``moments``; ``name`` is what warnings call those vectors."""
        ...


class Whitening:
    """PCA whitening onto the first k directions.

    Args:
        k: number of directions; None keeps every direction above the rank cut.

    The covariance is unbiased (n - 1). An eigenvalue counts as zero below
    ``largest * dim * eps`` of float64: divided by its root, rounding noise would become a
    direction of unit variance, and a new sentence's vector could grow without bound in it.
    """

    def __init__(self, k: int | None = None) -> None:
        if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
            raise UserError(f"whitening.k is {k!r}: give a whole number from 1, or null for all.")
        self.k = k

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The whitening of the vectors seen by ``moments``.

        Warns, through the log, where directions are dropped; ``name`` says of which vectors.

        Raises:
            UserError: fewer than 2 vectors, no variance at all, or k above the effective rank.
        """
        affine = self.solve(moments)
        k = affine.basis.shape[1]
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
            log.warning(
                "%s%.0f vectors are too few for %d directions: whitened, all of them are equally "
                "far apart. Fit on more sentences, or give a whitening.k far below %.0f.",
                f"{name}: " if name else "",
                moments.count,
                k,
                moments.count,
            )
        return affine

    def solve(self, moments: Moments) -> Affine:
        """What `fit` gives, without a word in the log: a grid of recipes sums the words up.

        Raises:
            UserError: see `fit`.
        """
        values, vectors = eigh_descending(moments.covariance())
        n, dim = moments.count, moments.dim
        rank = effective_rank(values)
        if rank == 0:
            raise UserError(f"all {n:g} vectors are equal, so there is nothing to whiten.")
        if self.k is not None and self.k > dim:
            raise UserError(
                f"whitening.k={self.k} is over the {dim} dimensions of the vectors: give k up to "
                f"{rank}, their effective rank, or null to keep all {rank} directions."
            )
        if self.k is not None and rank < self.k < dim:
            raise UserError(
                f"whitening.k={self.k} is over the effective rank {rank} of {n:g} vectors in {dim} "
                f"dimensions: give k up to {rank}, or null to keep all {rank} directions."
            )
        k = rank if self.k is None else min(self.k, rank)
        basis = vectors[:, :k] * values[:k].rsqrt()
        return Affine(moments.mean.cpu(), basis.cpu(), n, rank)


PostKind = Literal["pca"]
POST_PROCESSES: dict[PostKind, type[Whitening]] = {"pca": Whitening}  # names in recipes


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


def save_maps(path: Path, maps: Mapping[str, Affine], provenance: Mapping[str, Any]) -> None:
    """Write maps, by the name of their fit set, as named arrays with their provenance.

    The file is safetensors: ``NAME/mean`` and ``NAME/basis`` for each fit set, and JSON metadata.
    """
    from safetensors.torch import save_file

    arrays = {}
    for name, affine in maps.items():
        arrays[f"{name}/mean"] = affine.mean.contiguous()
        arrays[f"{name}/basis"] = affine.basis.contiguous()
    fits = {name: {"count": a.count, "rank": a.rank} for name, a in maps.items()}
    content = {"schema": SCHEMA, "fit_sets": fits, **provenance}
    save_file(arrays, path, metadata={"whitepool": json.dumps(content)})


def load_maps(path: Path) -> tuple[dict[str, Affine], dict[str, Any]]:
    """Read what `save_maps` wrote, bit for bit: maps by fit set, and the provenance.

    Raises:
        UserError: not a safetensors file (a pickle is never opened), or not one of ours.
    """
    from safetensors import SafetensorError, safe_open

    if Path(path).suffix != ".safetensors":
        raise UserError(f"{path} is not a .safetensors file; pickles and the like are not read.")
    try:
        with safe_open(path, framework="pt") as file:
            content = json.loads((file.metadata() or {})["whitepool"])
            if content["schema"] != SCHEMA:
                raise UserError(
                    f"{path} has schema {content['schema']} and this whitepool reads {SCHEMA}: "
                    "install a newer one, or make the file again."
                )
            maps = {
                name: Affine(
                    file.get_tensor(f"{name}/mean"), file.get_tensor(f"{name}/basis"), **fit
                )
                for name, fit in content["fit_sets"].items()
            }
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError, OSError) as error:
        raise UserError(f"{path} is not a whitening file of whitepool ({error}).") from error
    return maps, content
