"""What a disk refuses, in words for the user: which folder, why, and what to do about it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from whitepool.errors import UserError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
SEALED = (errno.EROFS, errno.EACCES, errno.EPERM)
RUST = re.compile(r"os error (\d+)\)")  # of safetensors, whose errors are no OSError
TORCH = ("PytorchStreamWriter failed", "file write failed")


def fault_of(error: BaseException | None) -> OSError | None:
    """What the system said that an error came from; None where it did not come from the system."""
    while error is not None:
        if isinstance(error, OSError):
            return error
        said = RUST.search(str(error)) if type(error).__name__ == "SafetensorError" else None
        if said:
            return OSError(int(said[1]), os.strerror(int(said[1])))
        if isinstance(error, RuntimeError) and any(said in str(error) for said in TORCH):
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        error = error.__cause__
    return None


def is_refusal(fault: OSError | None, folder: Path | None = None) -> bool:
    """Whether a disk is full or may not be written, that of ``folder`` where one is given."""
    if fault is None or fault.errno not in (*FULL, *SEALED):
        return False
    if folder is None or not isinstance(fault.filename, str):
        return True
    return Path(fault.filename).absolute().is_relative_to(folder.absolute())


def sentence(fault: OSError, what: str, elsewhere: str) -> str:
    """The one sentence: ``what`` cannot be written, why, and the remedy.

    Args:
        fault: what the system said.
        what: names the folder.
        elsewhere: what to give for another one, as ``output=FOLDER``.
    """
    room = "make room there, or " if fault.errno in FULL else ""
    reason = fault.strerror or str(fault)
    return f"{what} cannot be written ({reason}): {room}give {elsewhere} on another disk."


@contextmanager
def telling_of_disk(folder: Path, elsewhere: str) -> Iterator[None]:
    """Put what the disk of a folder refuses in one sentence.

    Args:
        folder: what is written to.
        elsewhere: see `sentence`.

    Raises:
        UserError: the disk is full, or may not be written. Other errors go on as they are.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        fault = fault_of(error)
        if fault is None or not is_refusal(fault, folder):
            raise
        raise UserError(sentence(fault, str(folder), elsewhere)) from error
