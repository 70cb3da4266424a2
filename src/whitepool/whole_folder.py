"""Folders that appear under their name only when they are whole.

A folder is filled beside its place and moved there; one that is there is moved aside, and removed
once the other stands. What a process that was killed left of that, the next one clears away: a
folder that is being filled is marked by a lock, which the system drops with its process.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whitepool.disks import fault_of, sentence
from whitepool.errors import UserError
from whitepool.whole_file import sync, umask

NEW, OLD = ".new-", ".old-"
TAIL = "?" * 8  # what `tempfile` adds


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
        _clear(folder)
        fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}{NEW}", dir=folder.parent))
        try:
            with _marked(fresh):
                yield fresh
                _open_to_others(fresh)
                for path in (*fresh.rglob("*"), fresh):
                    sync(path)
                _put(fresh, folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except UserError:
        raise
    except Exception as error:
        if (fault := fault_of(error)) is None:
            raise
        raise UserError(sentence(fault, f"{what} in {folder}", "another folder")) from error


def _open_to_others(folder: Path) -> None:
    """Give a folder and its files the permissions of new ones: some writers give fewer."""
    hidden = umask()
    folder.chmod(0o777 & ~hidden)
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(0o666 & ~hidden)


def _put(fresh: Path, folder: Path) -> None:
    """Make ``fresh`` be ``folder``, putting an older one back if that fails."""
    old = fresh.with_name(_aside(fresh))
    if folder.exists():
        folder.rename(old)
    try:
        fresh.rename(folder)
    except BaseException:
        if old.exists():
            old.rename(folder)
        raise
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _clear(folder: Path) -> None:
    """Clear away what killed processes left, and put a folder back that they had moved aside."""
    beside = f".{glob.escape(folder.name)}"
    at_work = set()
    for fresh in folder.parent.glob(f"{beside}{NEW}{TAIL}"):
        with _marked(fresh) as nobody_else:
            if nobody_else:
                shutil.rmtree(fresh, ignore_errors=True)
            else:
                at_work.add(_aside(fresh))
    for old in folder.parent.glob(f"{beside}{OLD}{TAIL}"):
        if old.name in at_work:
            continue
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.rename(folder)


def _aside(fresh: Path) -> str:
    """The name of what ``fresh`` takes the place of, once that is moved aside."""
    return OLD.join(fresh.name.rsplit(NEW, 1))


@contextmanager
def _marked(folder: Path) -> Iterator[bool]:
    """Mark a folder as this process's own; gives whether it could be told that it is.

    It cannot on Windows, nor on file systems without locks.
    """
    if sys.platform == "win32":
        yield False
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:  # whose it was has just moved it
        yield False
        return
    try:
        yield _lock(handle)
    finally:
        os.close(handle)


def _lock(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
