"""What figures read in tidy rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]


def select(rows: Rows, **where: str) -> Rows:
    """The rows that have these values, and no sub-task unless it is asked for."""
    wanted = {"subset": "", **where}
    return [row for row in rows if all(row.get(k, "") == v for k, v in wanted.items())]


def combined(row: Mapping[str, Any]) -> tuple[int, ...]:
    """The layers of a row of the table `layers`, ``1+12``."""
    return tuple(int(layer) for layer in str(row["layers"]).split("+"))
