"""Disks that really are full, or may not be written: file systems of their own, in memory."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

PAGE = 4096  # bytes; what such a disk counts in


@contextmanager
def disk(folder: Path, size: int) -> Iterator[Path]:
    """A disk of ``size`` bytes at ``folder``; skips where this process may not mount one."""
    folder.mkdir(parents=True, exist_ok=True)
    options = f"size={max(size, PAGE)}"
    mounted = _run("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder))
    if mounted:
        pytest.skip(f"no file system can be mounted here: {mounted}")
    try:
        yield folder
    finally:
        _run("umount", "--lazy", str(folder))


def resize(folder: Path, size: int) -> None:
    """Make a disk larger."""
    assert not _run("mount", "-o", f"remount,rw,size={size}", str(folder))


def fill(folder: Path, left: int = 0) -> Path:
    """Take all of a disk but so many bytes, in whole pages; returns the file that does."""
    file = folder / "full"
    with file.open("wb", buffering=0) as out, suppress(OSError):
        while out.write(b"x" * PAGE):
            pass
    with file.open("rb+") as out:
        out.truncate(max(file.stat().st_size // PAGE * PAGE - left, 0))
    return file


def seal(folder: Path) -> None:
    """Let nothing on a disk be written any more, whoever asks."""
    fault = _run("mount", "-o", "remount,ro", str(folder))
    assert not fault, fault


def _run(*command: str) -> str:
    """What a command says on failure."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or f"status {done.returncode}" if done.returncode else ""
