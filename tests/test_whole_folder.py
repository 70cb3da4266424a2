"""Folders written whole or not at all, by processes that fail, are killed, or write at once."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from whitepool.whole_folder import whole_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, and no locks on folders")


def write(folder: Path, text: str) -> None:
    with whole_folder(folder, "the text") as fresh:
        (fresh / "text").write_text(text)


def killed(folder: Path) -> Path:
    """What a process leaves that was killed while it filled a folder."""
    before = set(folder.parent.iterdir())
    child = os.fork()
    if child == 0:
        with whole_folder(folder, "the text") as fresh:
            (fresh / "half").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (left,) = set(folder.parent.iterdir()) - before
    return left


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    folder, other = tmp_path / "mine.new-one", tmp_path / "mine"
    write(folder, "old")
    killed(folder)
    assert (folder / "text").read_text() == "old"
    write(other, "another's, whose name begins alike")
    assert len(list(tmp_path.iterdir())) == 3
    write(folder, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "mine.new-one"]
    assert (folder / "text").read_text() == "new"


def test_a_folder_that_was_moved_aside_comes_back(tmp_path: Path) -> None:
    """Killed between the two moves: a writer that fails leaves it as it was."""
    folder = tmp_path / "mine"
    write(folder, "old")
    left = killed(folder)
    folder.rename(left.with_name(left.name.replace(".new-", ".old-")))
    with pytest.raises(ZeroDivisionError), whole_folder(folder, "the text"):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (folder / "text").read_text() == "old"


def test_what_is_no_longer_needed_goes(tmp_path: Path) -> None:
    """Killed after both moves, before the older folder was removed."""
    folder = tmp_path / "mine"
    write(folder, "new")
    aside = tmp_path / ".mine.old-abcd1234"
    aside.mkdir()
    (aside / "text").write_text("old")
    write(folder, "newer")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert (folder / "text").read_text() == "newer"


def test_a_writer_at_work_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    with whole_folder(folder, "the text") as slow:
        (slow / "text").write_text("slow")
        write(folder, "quick")
        assert (folder / "text").read_text() == "quick"
    assert (folder / "text").read_text() == "slow"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_others_may_read_what_is_left(tmp_path: Path) -> None:
    """As far as the process's umask lets them, whatever the writer of a file gave."""
    from whitepool.whole_file import umask, whole_file

    with whole_folder(tmp_path / "folder", "the folder") as fresh:
        (fresh / "weights").write_bytes(b"x")
        (fresh / "weights").chmod(0o600)
    with whole_file(tmp_path / "alone") as file:
        file.write(b"x")
    for path in (tmp_path / "folder" / "weights", tmp_path / "alone"):
        assert path.stat().st_mode & 0o777 == 0o666 & ~umask()
