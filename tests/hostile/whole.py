"""What a whole command did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Ended(NamedTuple):
    """How a command ended, what it said, and the folder of its run."""

    status: int
    out: str
    err: str
    folder: Path


Command = Callable[..., Ended]
