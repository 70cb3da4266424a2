"""What `analysis=geometry` measures, for readers: a row a measure, a column a stage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from whitepool.analysis.base import Rows

MEASURES = ("anisotropy", "uniformity", "alignment", "isoscore", "entropy_rank")


def side_by_side(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Rows with ``task``, ``measure`` and a column for each stage, sub-tasks left out.

    Args:
        rows: of the table `geometry`.
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        if row["metric"] in MEASURES and row["subset"] == "":
            at = (row["task"], row["metric"])
            own = found.setdefault(at, {"task": row["task"], "measure": row["metric"]})
            own[row["stage"]] = row["value"]
    return list(found.values())
