"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO


@dataclass(frozen=True)
class FileRecord:
    """What a manifest says of a file.

    Attributes:
        name: within the folder.
        bytes: its size.
        sha256: its checksum.
    """

    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileRecord:
        """The record of a file as it is; reads all of it."""
        with path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.name, path.stat().st_size, checksum)

    def holds(self, folder: Path) -> bool:
        """Whether the file is there with this content; reads all of it."""
        path = folder / self.name
        try:
            return path.stat().st_size == self.bytes and FileRecord.of(path) == self
        except OSError:
            return False


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which is put in its place, on disk, when the block is left without error."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync(path.parent)
    finally:
        with suppress(OSError):  # what went wrong before is what the user should hear of
            partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have the system write a file or folder to disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
