"""Vectors by word, in a temporary file: what is not looked up takes no memory to speak of."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from whitepool.errors import UserError

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


class WordTable:
    """A vocabulary and its vectors.

    Args:
        rows: word -> row.
        vectors: (row, dim), float32, mapped from disk.
        fill: works out the vectors of some rows, (n,) -> (n, dim), where they are not there from
            the start.
    """

    def __init__(
        self, rows: dict[str, int], vectors: Floats, fill: Callable[[Rows], Floats] | None = None
    ) -> None:
        self.rows, self.vectors = rows, vectors
        self._fill = fill
        self._known = np.full(len(rows), fill is None)

    def need(self, rows: Iterable[int]) -> None:
        """Make sure that the vectors of these rows are there."""
        wanted = np.unique(np.fromiter(rows, np.int64))
        missing = wanted[~self._known[wanted]]
        if self._fill is not None and len(missing):
            self.vectors[missing] = self._fill(missing)
            self._known[missing] = True


def scratch() -> IO[bytes]:
    """A file that is gone when nothing uses it any more."""
    return tempfile.TemporaryFile(prefix="whitepool-words-")


def mapped(file: IO[bytes], rows: int, dim: int) -> Floats:
    """The vectors in a file, (row, dim); what was never written is zero and takes no room."""
    with file:  # the mapping outlives it
        file.truncate(rows * dim * 4)
        return np.memmap(file, np.float32, "r+", shape=(rows, dim))


class Gathered:
    """Words and vectors as they come out of a file, the vectors straight to disk.

    Args:
        path: the file, for messages.
        dim: dimensions of a vector.

    Attributes:
        rows: word -> row.
        repeated: words that came again; their first vector counts.
    """

    def __init__(self, path: Path, dim: int) -> None:
        self.path, self.dim = path, dim
        self.rows: dict[str, int] = {}
        self.repeated = 0
        self._file = scratch()
        weakref.finalize(self, self._file.close)

    def add(self, words: list[str], vectors: Floats) -> None:
        """Take in some words, (n,), and their vectors, (n, dim).

        Raises:
            UserError: a vector that is not finite.
        """
        if not np.isfinite(vectors).all():
            bad = words[int((~np.isfinite(vectors).all(1)).argmax())]
            raise UserError(
                f"{self.path}: the vector of {bad!r} is not finite; fetch the file again."
            )
        fresh = []
        for place, word in enumerate(words):
            if word in self.rows:
                self.repeated += 1
            else:
                self.rows[word] = len(self.rows)
                fresh.append(place)
        self._file.write(np.ascontiguousarray(vectors[fresh], np.float32).tobytes())

    def table(self) -> WordTable:
        """All of it.

        Raises:
            UserError: no word at all.
        """
        if not self.rows:
            raise UserError(f"{self.path} holds no word vectors; give a file with at least one.")
        self._file.flush()
        return WordTable(self.rows, mapped(self._file, len(self.rows), self.dim))
