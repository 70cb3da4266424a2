"""Folders of the cache with a manifest: what they were made from, and the sha256 of every file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from whitepool.checksum import sha256_of

MANIFEST = ".manifest.json"


def seal(folder: Path, kind: str, made_from: Sequence[str]) -> None:
    """Write the manifest of a folder that is whole; ``kind`` calls what it was made from."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}
    text = json.dumps({kind: list(made_from), "files": sums}, indent=1)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def damage_of(
    folder: Path, kind: str, made_from: Sequence[str], otherwise: str, size: int | None = None
) -> str:
    """What is wrong with a folder, in words; empty if every file is as it was when it was sealed.

    Reads all of it, about a second per gigabyte.

    Args:
        folder: of the cache.
        kind: see `seal`.
        made_from: see `seal`.
        otherwise: what is said of a folder that was made from something else.
        size: bytes of all files together, where that is known.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest[kind] != list(made_from):
            return otherwise
        for name, sha256 in manifest["files"].items():
            if sha256_of(folder / name) != sha256:
                return f"{name} has changed"
        found = sum((folder / name).stat().st_size for name in manifest["files"])
    except OSError as error:
        return str(error)
    # A damaged manifest can hold any JSON, or none.
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "its manifest cannot be read"
    if size is not None and found != size:
        return f"its files have {found} bytes instead of {size}"
    return ""


def note_use(folder: Path) -> None:
    """Leave the time of the last use, which `whitepool.kept` reads, if the cache can be written."""
    with suppress(OSError):
        os.utime(folder / MANIFEST)
