"""Rows of an input in windows, counted, checksummed, the bad ones sorted out."""

from __future__ import annotations

import csv
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from whitepool.data.row_sources import RowSource
from whitepool.data.rows import Row
from whitepool.errors import UserError
from whitepool.whole_file import sync

WINDOW = 8192  # rows in memory at a time


@dataclass(frozen=True)
class Window:
    """Some rows that get a vector each.

    Attributes:
        ids: from the column of ids, or the row's number in the input, from 0.
        texts: None for a bad row, which gets a vector of zeros.
    """

    ids: Sequence[int] | Sequence[str | None]
    texts: Sequence[str | None]


class BadRows:
    """The list of bad rows, `bad_rows.csv`: file, line, reason.

    Args:
        path: where it is put once the input has been read to its end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._partial = path.with_name(f".{path.name}.partial")
        self._file: IO[str] | None = None
        self._writer: Any = None

    def add(self, row: Row) -> None:
        """List a row."""
        if self._file is None:
            self._file = self._partial.open(
                "w", newline="", encoding="utf-8", errors="backslashreplace"
            )
            self._writer = csv.writer(self._file, lineterminator="\n")
            self._writer.writerow(["file", "line", "reason"])
        self._writer.writerow([row.file, row.line, row.fault])

    def publish(self) -> Path | None:
        """Put the list in its place; None without a bad row."""
        if self._file is None:
            self._path.unlink(missing_ok=True)
            return None
        self._file.flush()
        sync(self._partial)
        self._file.close()
        self._partial.replace(self._path)
        return self._path

    def close(self) -> None:
        """Remove what is not published."""
        with suppress(OSError):  # of what could not be written, on a full disk
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            self._partial.unlink(missing_ok=True)


class Reading:
    """One reading of an input.

    Args:
        sources: read one after the other.
        on_bad: ``error``, ``skip`` or ``zero``.
        has_ids: the input has a column of ids.
        bad_rows: where bad rows are listed.

    Attributes:
        read: rows read so far.
        bad: bad rows among them.
    """

    def __init__(
        self, sources: Sequence[RowSource], on_bad: str, *, has_ids: bool, bad_rows: BadRows
    ) -> None:
        self.read = self.bad = 0
        self._on_bad = on_bad
        self._has_ids = has_ids
        self._bad_rows = bad_rows
        self._digest = hashlib.sha256()
        self._rows = itertools.chain.from_iterable(source.read() for source in sources)

    @property
    def sha256(self) -> str:
        """Checksum of the rows read so far: their ids, texts and faults."""
        return self._digest.hexdigest()

    def windows(self, limit: int) -> Iterator[Window]:
        """The next rows that get a vector, up to ``limit`` of them, a window at a time.

        Raises:
            UserError: a bad row, for ``error``; the input is broken.
        """
        while limit > 0:
            ids: list[Any] = []
            texts: list[str | None] = []
            for number, row in self._take(min(limit, WINDOW)):
                ids.append(row.id if self._has_ids else number)
                texts.append(None if row.fault else row.text)
            if not ids:
                return
            limit -= len(ids)
            yield Window(ids, texts)

    def _take(self, limit: int) -> Iterator[tuple[int, Row]]:
        """Number and content of the next rows that get a vector."""
        while limit > 0 and (row := next(self._rows, None)) is not None:
            number = self.read
            self.read += 1
            parts = ("" if row.id is None else f"={row.id}", row.text, row.fault)
            self._digest.update("".join(f"{len(x)}:{x}" for x in parts).encode())
            if row.fault:
                self.bad += 1
                if self._on_bad == "error":
                    raise UserError(
                        f"{row.file}, line {row.line}: {row.fault}; correct it, or go on with "
                        "on_bad=skip (leave such rows out) or on_bad=zero (vectors of zeros)."
                    )
                self._bad_rows.add(row)
                if self._on_bad == "skip":
                    continue
            limit -= 1
            yield number, row
