"""Published values beside the measured ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from whitepool.published.match import Match
from whitepool.scores import Row

Pairs = list[tuple[Row, Match]]


def compared(rows: Sequence[Row], matches: Sequence[Match]) -> Pairs:
    """The scores that were published, each with its published value, as ``matches`` order them."""
    found = {(r.task, r.aggregate, r.stage, r.metric): r for r in rows if not r.subset}
    pairs = [(found.get((m.task, m.aggregate, m.stage, m.metric)), m) for m in matches]
    return [(row, match) for row, match in pairs if row is not None]


def difference(row: Row, match: Match) -> float | None:
    """Measured minus published, with two decimals as published; None where undefined."""
    return None if math.isnan(row.value) else round(row.value - match.published, 2)


def record(row: Row, match: Match) -> dict[str, Any]:
    """A published value for results.json."""
    measured = None if math.isnan(row.value) else row.value
    return {**asdict(match), "measured": measured, "difference": difference(row, match)}


def cells(rows: Sequence[Row], pairs: Pairs) -> list[dict[str, float | None]]:
    """What scores.csv has beside each of ``rows``; of several tables, the first."""
    first = {id(row): match for row, match in reversed(pairs)}
    return [
        {"published": match.published, "difference": difference(row, match)}
        if (match := first.get(id(row)))
        else {"published": None, "difference": None}
        for row in rows
    ]


def as_table(pairs: Pairs) -> Table:
    """Published and measured values for the terminal."""
    table = Table(box=None, pad_edge=False)
    for name in ("task", "vectors"):
        table.add_column(name)
    for name in ("published", "measured", "difference"):
        table.add_column(name, justify="right")
    table.add_column("source", overflow="fold")
    for row, match in pairs:
        gap = difference(row, match)
        table.add_row(
            row.task,
            "raw" if row.stage == "raw" else "whitened",
            f"{match.published:.2f}",
            "undefined" if gap is None else f"{row.value:.2f}",
            "" if gap is None else f"{gap:+z.2f}",
            f"{match.table}: {match.row}",
        )
    return table
