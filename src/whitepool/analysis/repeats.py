"""Pairs of sentences that come again in a later chunk get the values that they had before.

A chunk's batches are not those of another, so that the same sentence has another vector there in
the last bits of float32, and two equal pairs would no longer tie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from whitepool.data.table import SentenceTable

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Repeats:
    """Remembers the values of pairs, whatever the order of their sentences.

    Args:
        table: all sentences.
    """

    def __init__(self, table: SentenceTable) -> None:
        self._row = {ids: row for row, ids in enumerate(table.ids)}
        self._seen: list[tuple[Rows, Rows, Floats]] = []  # pairs, sorted; their places; values

    def settle(self, chunk: SentenceTable, pairs: Rows, values: Floats) -> None:
        """Put what is known of a chunk's pairs in the place of their ``values``, and keep the rest.

        Args:
            chunk: a part of the table.
            pairs: (pair, 2), rows of the chunk.
            values: (recipe, pair), kept as they are: not copied.
        """
        rows = np.array([self._row[ids] for ids in chunk.ids])
        one, other = np.sort(rows[pairs], axis=1).T
        keys = one * len(self._row) + other
        for known, places, earlier in self._seen:
            found = np.searchsorted(known, keys).clip(max=len(known) - 1)
            again = known[found] == keys
            values[:, again] = earlier[:, places[found[again]]]
        if len(keys):
            known, places = np.unique(keys, return_index=True)
            self._seen.append((known, places, values))
