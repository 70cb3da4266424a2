"""Maps that take directions out of vectors and leave the others as they are.

    remove_top     (x - m) (1 - U_D U_D')           the first D principal axes, all-but-the-top
    remove_common  x (1 - sum_i s_i c_i c_i')       common components of vectors not centred

with c_1 … c_D the first eigenvectors of the second moment E[xx'] (the singular vectors of the
matrix of vectors) and s_i their share of the D eigenvalues' sum. One component, whose share is 1,
is the second step of SIF; five are the piecewise removal of uSIF.

Sources: Mu and Viswanath 2018, "All-but-the-Top"; Arora, Liang and Ma 2017, "A Simple but
Tough-to-Beat Baseline for Sentence Embeddings"; Ethayarajh 2018, "Unsupervised Random Walk Sentence
Embeddings".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from whitepool.errors import UserError
from whitepool.maps.affine import Affine
from whitepool.maps.axes import eigh_descending, principal_axes
from whitepool.moments import Moments
from whitepool.spectrum import effective_rank


@dataclass(frozen=True)
class RemoveTop:
    """All-but-the-top: centred, without the first principal axes.

    Args:
        remove: how many axes; None for a hundredth of the dimensions, as the paper advises.

    Raises:
        UserError: remove is no whole number from 1.
    """

    remove: int | None = None

    def __post_init__(self) -> None:
        if self.remove is not None:
            _check(self.remove)

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on the vectors seen by ``moments``.

        Raises:
            UserError: fewer than 2 vectors, or nothing would be left of them.
        """
        axes = principal_axes(moments)
        remove = self.remove or max(1, round(moments.dim / 100))
        _check_rest(remove, axes.rank, moments)
        top = axes.vectors[:, :remove]
        return axes.affine(torch.eye(moments.dim).to(top) - top @ top.T)


@dataclass(frozen=True)
class RemoveCommon:
    """Without the common components of vectors that are not centred.

    Args:
        remove: how many components, weighted by their share of the second moment.

    Raises:
        UserError: remove is no whole number from 1.
    """

    remove: int = 1

    def __post_init__(self) -> None:
        _check(self.remove)

    def fit(self, moments: Moments, name: str = "") -> Affine:
        """The map fitted on the vectors seen by ``moments``; its mean is 0.

        Raises:
            UserError: fewer than 2 vectors, or nothing would be left of them.
        """
        axes = principal_axes(moments)  # also sees that there is some variance
        second = moments.scatter / moments.count + torch.outer(moments.mean, moments.mean)
        values, vectors = eigh_descending((second + second.T) / 2)
        _check_rest(self.remove, effective_rank(values), moments)
        share = values[: self.remove] / values[: self.remove].sum()
        top = vectors[:, : self.remove]
        basis = torch.eye(moments.dim).to(top) - (top * share) @ top.T
        return replace(axes, mean=torch.zeros_like(axes.mean)).affine(basis)


def _check(remove: object) -> None:
    if isinstance(remove, bool) or not isinstance(remove, int) or remove < 1:
        raise UserError(f"whitening.remove is {remove!r}: give a whole number from 1.")


def _check_rest(remove: int, rank: int, moments: Moments) -> None:
    if remove >= rank:
        raise UserError(
            f"whitening.remove={remove} leaves nothing of {moments.count:g} vectors of effective "
            f"rank {rank}: remove fewer directions, or fit on more sentences."
        )
