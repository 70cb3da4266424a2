"""job.json of a job's folder: what the job was begun with, and whether it came to its end.

It is written when a job begins, and again as the last thing that a job does. A job is the same as
an earlier one where the settings and the checksums of all that it reads are: see `depends`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from whitepool.errors import UserError
from whitepool.whole_file import write_text

FILE = "job.json"
LOCK = ".lock"
SCHEMA = 1

Sources = Mapping[str, str | None]


@dataclass(frozen=True)
class Marker:
    """The state of a job.

    Attributes:
        settings: hash of its configuration, see `depends.settings`.
        sources: checksum of each thing that it reads, None where there is none to be had.
        versions: of the packages that results depend on; they are no part of what a job is.
        finished: whether it came to its end.
    """

    settings: str
    sources: Sources = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False

    def write(self, folder: Path) -> None:
        """Write it into the job's folder, whole or not at all."""
        text = json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1)
        write_text(folder / FILE, text + "\n")


def read(folder: Path) -> Marker | None:
    """The state of the job in ``folder``; None where none of this schema can be read."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if content.pop("schema") != SCHEMA:
            return None
        return Marker(**content)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


@contextmanager
def at_work(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder, so that no other process works in it; the system lets go with the process.

    Raises:
        UserError: another process holds it; ``what`` is the subject of the sentence.
    """
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise UserError(
            f"{what} is still at work in {folder}: wait for its end, or stop it."
        ) from error
    try:
        yield
    finally:
        lock.release()
