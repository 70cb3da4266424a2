"""What a manifest says of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whitepool.checksum import sha256_of


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
        return cls(path.name, path.stat().st_size, sha256_of(path))

    def holds(self, folder: Path) -> bool:
        """Whether the file is there with this content; reads all of it."""
        path = folder / self.name
        try:
            return path.stat().st_size == self.bytes and FileRecord.of(path) == self
        except OSError:
            return False
