"""Vectors of all sentences of a table, put together from the chunks of a pass."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.data.table import SentenceTable
from whitepool.errors import UserError


class Gathered:
    """Vectors by row of a table, (row, dim); those of blank sentences stay zero.

    A sentence that is in several chunks is gathered with each of them, and is new in the first.

    Args:
        table: the whole.
    """

    def __init__(self, table: SentenceTable) -> None:
        self._table = table
        self._vectors: NDArray[np.float32] | None = None
        self._seen = table.is_blank

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(row, dim), once all chunks have passed."""
        assert self._vectors is not None
        assert self._seen.all(), "the chunks left sentences of the table out"
        return self._vectors

    def start(self, table: SentenceTable) -> None:
        """Find the rows of a chunk in the whole table."""
        row_of = {ids: row for row, ids in enumerate(self._table.ids)}
        self._rows = torch.tensor([row_of[ids] for ids in table.ids])

    def take(self, rows: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Keep some vectors, (batch, dim), of rows of the chunk, (batch,).

        Returns:
            Their rows in the whole table, (batch,), and which of them are new, (batch,).

        Raises:
            UserError: a vector is not finite; the message names its text.
        """
        places = self._rows[rows.cpu()]
        kept = vectors.cpu().numpy()
        if self._vectors is None:
            self._vectors = np.zeros((len(self._table), kept.shape[1]), dtype=np.float32)
        finite = np.isfinite(kept).all(1)
        if not finite.all():
            text = self._table.texts[places[~finite][0]]
            raise UserError(
                f"the vector of {text[:60]!r} is not finite: use trainer.precision=32-true, or "
                "look for a fault in the model's weights."
            )
        fresh = ~torch.from_numpy(self._seen)[places]
        self._vectors[places] = kept
        self._seen[places] = True
        return places, fresh
