"""Files that appear under their name only when they are whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Where to write a file that is put in its place, on disk, when the block ends without error.

    Another program's writer may fill it. Whatever is there stays until then.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        settle(partial)
        partial.replace(path)
        sync(path.parent)
    finally:
        with suppress(OSError):  # what went wrong before is what the user should hear of
            partial.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """`beside`, opened to be written."""
    with beside(path) as partial, partial.open("wb") as file:
        yield file


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def settle(path: Path) -> None:
    """Give a file the permissions of new ones, and have the system write it to disk."""
    path.chmod(0o666 & ~umask())  # safetensors leaves what its owner alone can read
    sync(path)


def sync(path: Path) -> None:
    """Have the system write a file or folder to disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def umask() -> int:
    """The permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
