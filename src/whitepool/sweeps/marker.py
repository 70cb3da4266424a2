"""job.json of a job's folder: what the job was begun with, and whether it came to its end.

It is written when a job begins, and again as the last thing that a job does. A job is the same as
an earlier one where the settings and the checksums of all that it reads are: see `depends`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from whitepool.sole_use import sole_use
from whitepool.whole_file import write_text

FILE = "job.json"
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
        seconds: how long that took, from the job's beginning; None until then.
    """

    settings: str
    sources: Sources = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False
    seconds: float | None = None

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


def at_work(folder: Path, what: str) -> AbstractContextManager[None]:
    """Hold a job's or multirun's folder, so that no other process works in it.

    Raises:
        UserError: another process holds it; ``what`` is the subject of the sentence.
    """
    return sole_use(folder, f"{what} is still at work in {folder}: wait for its end, or stop it.")
