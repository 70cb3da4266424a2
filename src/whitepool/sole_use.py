"""Folders that one process at a time works in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from whitepool.errors import UserError

LOCK = ".lock"


@contextmanager
def sole_use(folder: Path, otherwise: str) -> Iterator[None]:
    """Hold a folder that is there; the system lets go with the process.

    Raises:
        UserError: another process holds it; ``otherwise`` is the sentence.
    """
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(otherwise) from error
    try:
        yield
    finally:
        lock.release()
