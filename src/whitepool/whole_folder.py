"""Folders that appear under their name only when they are whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whitepool.errors import UserError


@contextmanager
def whole_folder(folder: Path, what: str) -> Iterator[Path]:
    """A new folder to fill, which takes the place of ``folder`` when the block ends without error.

    Args:
        folder: absolute path; a folder that is there is replaced, and stays if anything fails.
        what: how messages call the content, as ``the recipe``.

    Raises:
        UserError: the system refuses to write.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.new-", dir=folder.parent))
        try:
            yield fresh
            fresh.chmod(0o777 & ~_umask())
            for path in (*fresh.rglob("*"), fresh):
                _sync(path)
            _put(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise UserError(
            f"{what} cannot be written to {folder}: {error.strerror or error}."
        ) from error


def _put(fresh: Path, folder: Path) -> None:
    """Make ``fresh`` be ``folder``, putting an older one back if that fails."""
    old = fresh.with_name(fresh.name.replace(".new-", ".old-"))
    if folder.exists():
        folder.rename(old)
    try:
        fresh.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise
    _sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    """Have the system write a file or folder to disk."""
    if os.name == "nt" and path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
