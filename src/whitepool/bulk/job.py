"""The work of a bulk run: a folder filled shard by shard from an input and an encoder."""

from __future__ import annotations

import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.bulk.files import FileRecord
from whitepool.bulk.folder import OutputFolder, Shards, telling_of_disks
from whitepool.bulk.manifest import ShardRecord, Total
from whitepool.bulk.pace import Pace
from whitepool.bulk.reading import BadRows, Reading, Window
from whitepool.bulk.settings import Settings
from whitepool.bulk.shards import open_shard, shard_files
from whitepool.data.row_sources import RowSource
from whitepool.encoder import Encoder
from whitepool.errors import UserError

log = logging.getLogger(__name__)


class End(NamedTuple):
    """What was read when the input had come to its end.

    Attributes:
        read: rows.
        bad: bad rows among them.
        input_sha256: checksum of all rows.
        bad_rows: the list of bad rows; None without any.
    """

    read: int
    bad: int
    input_sha256: str
    bad_rows: Path | None


class Job:
    """What is to be encoded, and how.

    Args:
        encoder: texts to vectors.
        settings: everything else that was asked for.
        sources: the input.
        has_ids: the input has a column of ids.

    Attributes:
        dim: dimensions of the vectors on disk.

    Raises:
        UserError: the encoder does not take the settings.
    """

    def __init__(
        self, encoder: Encoder, settings: Settings, sources: Sequence[RowSource], *, has_ids: bool
    ) -> None:
        self._encoder = encoder
        self._settings = settings
        self._sources = sources
        self._has_ids = has_ids
        self.dim = encoder.vectors_of(["a"], **settings.of_vectors()).shape[1]

    def to(self, device: torch.device) -> None:
        """Have the model run on ``device``."""
        self._encoder.pooled.plm.to(device)

    def fill(self, folder: OutputFolder, *, show: bool) -> Total:
        """Make the shards that are not there; returns what was read.

        Args:
            folder: where.
            show: a bar in a terminal; without one, a line in the log for each shard.

        Raises:
            UserError: a bad row, for ``on_bad=error``; an input without a row that can be encoded,
                or with other rows than kept shards were made from; a disk that is full.
        """
        with telling_of_interrupts(folder):
            end = self.make(folder.to_make(), self.pace(folder.kept, show=show))
            return self.finish(folder, end)

    def pace(self, kept: Mapping[int, ShardRecord], *, show: bool) -> Pace:
        """The pace of a run that goes on after the shards that are ``kept``."""
        counts = [source.count() for source in self._sources]
        known = [count for count in counts if count is not None]
        rows = sum(known) if len(known) == len(counts) else None
        there = sum(shard.rows for shard in kept.values())
        if there:
            log.info("going on after %s vectors that are there", f"{there:,}")
        return Pace(None if rows is None else max(rows - there, 0), show=show)

    def make(self, shards: Shards, pace: Pace) -> End:
        """Read the input to its end, and make the shards that are this process's.

        Raises:
            UserError: see `fill`.
        """
        bad_rows = BadRows(shards.bad_rows)
        reading = Reading(
            self._sources, self._settings.on_bad, has_ids=self._has_ids, bad_rows=bad_rows
        )
        done = set(shards.kept)
        with closing(bad_rows), pace:
            for number in itertools.count():
                with telling_of_disks(shards.path, len(done)):
                    if not self._shard(shards, number, reading, pace):
                        break
                done.add(number)
            if reading.read == reading.bad:
                names = ", ".join(source.name for source in self._sources)
                what = (
                    f"all {reading.bad:,} rows of {names} are bad" if reading.bad else "it is empty"
                )
                raise UserError(f"there is nothing to encode in input={names}: {what}.")
            with telling_of_disks(shards.path, len(done)):
                listed = bad_rows.publish() if shards.rank == 0 else None
        return End(reading.read, reading.bad, reading.sha256, listed)

    def _shard(self, shards: Shards, number: int, reading: Reading, pace: Pace) -> bool:
        """Keep, make or leave to others one shard; whether there was a row for it."""
        bad = reading.bad
        windows = reading.windows(self._settings.shard_rows)
        if number in shards.kept:
            rows = sum(len(window.ids) for window in windows)
            shards.check_input(number, rows, reading.read, reading.sha256)
            return True
        first = next(windows, None)
        if first is None:
            return False
        if not shards.is_mine(number):
            deque(windows, maxlen=0)
            return True
        rows, cut = self._write(shards.path, number, itertools.chain([first], windows), pace)
        names = shard_files(self._settings, number)
        files = tuple(FileRecord.of(shards.path / name) for name in names)
        shards.commit(
            number,
            ShardRecord(files, rows, reading.bad - bad, cut, reading.read, reading.sha256),
        )
        pace.tell(number)
        return True

    def _write(
        self, folder: Path, number: int, windows: Iterator[Window], pace: Pace
    ) -> tuple[int, int]:
        """Encode windows into the files of a shard; returns rows, and texts that were cut."""
        rows = cut = 0

        def shortened(texts: int) -> None:
            nonlocal cut
            cut += texts

        opened = open_shard(folder, number, self._settings, dim=self.dim, has_ids=self._has_ids)
        with opened as write:
            for window in windows:
                rows += len(window.ids)
                with pace.window(len(window.ids)) as done:
                    write(window, self._vectors(window, done, shortened))
        return rows, cut

    def _vectors(
        self,
        window: Window,
        done: Callable[[int], None],
        shortened: Callable[[int], None],
    ) -> NDArray[np.float32]:
        """Vectors of a window, (row, dim)."""
        texts = [text or "" for text in window.texts]
        return self._encoder.vectors_of(
            texts, **self._settings.of_vectors(), done=done, shortened=shortened
        )

    def finish(self, folder: OutputFolder, end: End) -> Total:
        """Say in the manifest and the log that all shards are there."""
        shards = folder.shards.values()
        total = Total(
            end.read,
            sum(shard.rows for shard in shards),
            end.bad,
            sum(shard.cut for shard in shards),
            end.input_sha256,
        )
        with telling_of_disks(folder.path, len(folder.shards)):
            folder.finish(total, end.bad_rows)
        log.info(
            "%s vectors of %d dimensions in %s shards: %s",
            f"{total.vectors:,}",
            self.dim,
            f"{len(folder.shards):,}",
            folder.path,
        )
        if total.cut:
            log.warning(
                "%s texts are cut to %d tokens.", f"{total.cut:,}", self._encoder.max_length
            )
        if total.bad:
            log.warning(
                "%s of %s rows are bad, on_bad=%s: they are listed in %s.",
                f"{total.bad:,}",
                f"{total.read:,}",
                self._settings.on_bad,
                folder.bad_rows,
            )
        return total


@contextmanager
def telling_of_interrupts(folder: OutputFolder) -> Iterator[None]:
    """Say what is there when the user has had enough."""
    try:
        yield
    except KeyboardInterrupt:
        log.warning(
            "%s shards in %s are whole: the same command goes on from there.",
            f"{len(folder.shards):,}",
            folder.path,
        )
        raise
