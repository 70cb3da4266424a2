"""The folder of a bulk run: locked, checked against what it was begun with, filled shard by shard.

A shard counts once the manifest names it. A run that finds a folder begun in the same way keeps the
shards whose checksums hold and makes the others.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from whitepool.bulk.files import FileRecord
from whitepool.bulk.manifest import NAME, Manifest, ShardRecord, Total, differences
from whitepool.bulk.shards import PATTERN
from whitepool.disks import FULL
from whitepool.errors import UserError
from whitepool.sole_use import LOCK, sole_use

log = logging.getLogger(__name__)

BAD_ROWS = "bad_rows.csv"
OURS = re.compile(rf"{PATTERN}|{re.escape(BAD_ROWS)}|\..+\.partial")


@dataclass
class Shards:
    """Shards that a process makes, and those that are there.

    Attributes:
        path: the folder.
        kept: finished shards whose files are whole, by number.
        bad_rows: where bad rows are listed.
        commit: told of each shard whose files are in place.
        rank: which of the processes this is; it makes every so manyth shard.
        ranks: how many there are.
    """

    path: Path
    kept: Mapping[int, ShardRecord]
    bad_rows: Path
    commit: Callable[[int, ShardRecord], None]
    rank: int = 0
    ranks: int = 1

    def is_mine(self, number: int) -> bool:
        """Whether this process makes a shard, if it is not there."""
        return number % self.ranks == self.rank

    def check_input(self, number: int, rows: int, read: int, sha256: str) -> None:
        """See that a kept shard was made from the rows that were just read.

        Raises:
            UserError: they are others.
        """
        shard = self.kept[number]
        if (rows, read, sha256) != (shard.rows, shard.read, shard.input_sha256):
            raise UserError(
                f"the input is not the one that {self.path} was begun with, it differs before row "
                f"{max(read, shard.read):,}: give that input, or overwrite=true to begin anew, or "
                "another output=."
            )


class OutputFolder:
    """A folder of vectors that this command alone writes to; made by `open_folder`.

    Args:
        path: the folder.
        manifest: its state.

    Attributes:
        kept: finished shards whose files are whole, by number.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self._manifest = manifest
        if manifest.shards:
            log.info("checking %s finished shards of %s", f"{len(manifest.shards):,}", path)
        self.kept = {
            number: shard
            for number, shard in manifest.shards.items()
            if all(file.holds(path) for file in shard.files)
        }
        for number in sorted(set(manifest.shards) - set(self.kept)):
            log.warning("Shard %d is missing or damaged: it is made again.", number)

    @property
    def bad_rows(self) -> Path:
        """Where bad rows are listed."""
        return self.path / BAD_ROWS

    def to_make(self) -> Shards:
        """What one process has to do."""
        return Shards(self.path, self.kept, self.bad_rows, self.commit)

    def commit(self, number: int, record: ShardRecord) -> None:
        """Name a shard, whose files are in place, in the manifest."""
        shards = {**self._manifest.shards, number: record}
        self._manifest = replace(self._manifest, shards=shards, total=None, bad_rows=None)
        self._manifest.write(self.path)

    def finish(self, total: Total, bad_rows: Path | None) -> None:
        """Say in the manifest that the input was read to its end."""
        listed = None if bad_rows is None else FileRecord.of(bad_rows)
        self._manifest = replace(self._manifest, total=total, bad_rows=listed)
        self._manifest.write(self.path)

    @property
    def shards(self) -> Mapping[int, ShardRecord]:
        """Finished shards by number, those of this run too."""
        return self._manifest.shards


@contextmanager
def open_folder(
    path: Path, made_from: Mapping[str, Any], on_bad: str, *, overwrite: bool
) -> Iterator[OutputFolder]:
    """A folder to fill, new or begun earlier; no other run may write to it in the meantime.

    Args:
        path: made if it is not there.
        made_from: see `Manifest`.
        on_bad: what is done with bad rows.
        overwrite: remove vectors that are there and begin anew.

    Raises:
        UserError: another run writes to it, it holds other things, it was begun with something
            else, or it cannot be written.
    """
    made_from = json.loads(json.dumps(made_from))  # tuples become lists, as in the file
    with ExitStack() as stack:
        with telling_of_disks(path):
            if path.exists() and not path.is_dir():
                raise UserError(f"output={path} is a file: give a folder.")
            path.mkdir(parents=True, exist_ok=True)
            otherwise = "wait for its end, or give another folder."
            stack.enter_context(sole_use(path, f"another run writes to output={path}: {otherwise}"))
            manifest = _begin(path, made_from, on_bad, overwrite=overwrite)
            folder = OutputFolder(path, manifest)
        yield folder


def _begin(path: Path, made_from: Mapping[str, Any], on_bad: str, *, overwrite: bool) -> Manifest:
    """The manifest to go on from, which is in its place when this returns."""
    names = sorted(entry.name for entry in path.iterdir() if entry.name not in (NAME, LOCK))
    manifest = Manifest.load(path)
    if manifest is None and (others := [x for x in names if not x.endswith(".partial")]):
        raise UserError(
            f"output={path} holds other things than vectors ({others[0]}): give a new or empty "
            "folder."
        )
    fresh = Manifest(made_from, on_bad, {})
    if manifest is not None and manifest.shards and not overwrite:
        _check_same(path, manifest, fresh)
        begun = replace(manifest, on_bad=on_bad)
    else:
        begun = fresh
        for name in filter(OURS.fullmatch, names):
            (path / name).unlink()
    if begun != manifest:
        begun.write(path)
    return begun


def _check_same(path: Path, old: Manifest, new: Manifest) -> None:
    found = [*differences(old.made_from, new.made_from)]
    if any(shard.bad for shard in old.shards.values()):
        found += [*differences(old.on_bad, new.on_bad, "on_bad")]
    if found:
        where, before, now = found[0]
        raise UserError(
            f"output={path} was begun with {where} {_show(before)} and this run has {_show(now)}: "
            "give the same again, or overwrite=true to begin anew, or another output=."
        )


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


@contextmanager
def telling_of_disks(path: Path, finished: int | None = None) -> Iterator[None]:
    """Put what the disk refuses in words for the user.

    Args:
        path: the folder that is written to.
        finished: shards that are whole, if there may be any.
    """
    try:
        yield
    except OSError as error:
        remedy = "make room there" if error.errno in FULL else "give a folder that can be written"
        whole = "" if finished is None else f" {finished:,} finished shards are whole:"
        goes_on = "" if finished is None else " and give the same command again"
        reason = error.strerror or str(error)
        raise UserError(
            f"output={path} cannot be written ({reason}):{whole} {remedy}{goes_on}."
        ) from error
