"""Moments of every fit set from batches of rows, and a map fitted on each.

The batches may come from a pass or from vectors that were kept: the same batches give the same
moments to the last bit, in whatever order the rows of one batch stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.errors import UserError
from whitepool.maps.axes import AlongAxes, warn_of_few
from whitepool.moments import Moments
from whitepool.whitening import Affine, PostProcess

CHUNK = 2048  # vectors


class FitSets:
    """Accumulates the moments of each fit set.

    Args:
        counts: how often each row occurs in each fit set, (row,), as `SentenceTable.fit_sets` says.
        chunk: vectors gathered before the moments are updated, which costs O(dim^2) a time.
    """

    def __init__(self, counts: Mapping[str, NDArray[np.int64]], chunk: int = CHUNK) -> None:
        self._weights = {name: torch.from_numpy(count) for name, count in counts.items()}
        self._moments: dict[str, Moments] = {}
        self._waiting: list[tuple[Tensor, Tensor]] = []
        self._chunk = chunk

    def update(self, rows: Tensor, vectors: Tensor) -> None:
        """Take in the vectors, (n, dim), of some rows, (n,)."""
        self._waiting.append((rows, vectors))
        if sum(len(rows) for rows, _ in self._waiting) >= self._chunk:
            self._flush()

    def finish(self) -> dict[str, Moments]:
        """The moments of each fit set of which any vector was seen."""
        self._flush()
        return self._moments

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = torch.cat([rows for rows, _ in self._waiting]).cpu()
        vectors = torch.cat([vectors for _, vectors in self._waiting])
        order = rows.argsort()
        rows, vectors = rows[order], vectors[order.to(vectors.device)]
        if vectors.device.type == "mps":  # has no float64
            vectors = vectors.cpu()
        self._waiting = []
        for name, weights in self._weights.items():
            weight = weights[rows]
            used = weight > 0
            if used.any():
                moments = self._moments.setdefault(name, Moments(vectors.shape[1], vectors.device))
                moments.update(vectors[used.to(vectors.device)], weight[used])


def moments_of_kept(
    counts: Mapping[str, NDArray[np.int64]],
    batches: Iterable[Sequence[int]],
    vectors: NDArray[np.float32],
    device: torch.device,
    chunk: int = CHUNK,
) -> dict[str, Moments]:
    """Moments of each fit set, to the last bit those of a pass that gave these vectors.

    Args:
        counts: fit set -> how often each row occurs in it, (row,).
        batches: rows of each batch of the pass, in its order.
        vectors: (row, dim).
        device: where the pass ran.
        chunk: see `FitSets`.
    """
    fit_sets = FitSets(counts, chunk)
    for rows in batches:
        fit_sets.update(torch.tensor(rows), torch.from_numpy(vectors[rows]).to(device))
    return fit_sets.finish()


def fit_each(
    post: PostProcess,
    moments: Mapping[str, Moments],
    names: Iterable[str] | Mapping[str, NDArray[np.int64]],
) -> dict[str, Affine]:
    """A map for each fit set in ``names``.

    Args:
        post: the step.
        moments: of the fit sets, by name.
        names: of the fit sets; with how often each row of the table occurs in it, sentences that
            are repeated do not pass for many.

    Raises:
        UserError: a fit set cannot be fitted on; the message names it.
    """
    maps = {}
    for name in names:
        try:
            if name not in moments:
                raise UserError("no sentence of it has any text.")
            maps[name] = post.fit(moments[name], name)
        except UserError as error:
            raise UserError(f"fit set {name}: {error}") from error
        if isinstance(names, Mapping) and isinstance(post, AlongAxes):
            distinct = int(np.count_nonzero(names[name]))
            rank = maps[name].rank
            if moments[name].count - 1 > rank >= distinct - 1:  # else `fit` has said so
                warn_of_few(distinct, min(post.k or rank, rank), name)
    return maps
