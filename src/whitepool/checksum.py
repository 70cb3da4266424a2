"""The checksum by which files are known."""

from __future__ import annotations

import hashlib
from pathlib import Path


def sha256_of(path: Path) -> str:
    """The sha256 of a file, as 64 hex digits; reads all of it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
