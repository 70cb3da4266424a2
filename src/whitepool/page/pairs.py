"""The pairs that a run judges worst: the cosine's rank is farthest from that of the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from whitepool.correlation import rank
from whitepool.data.table import SentenceTable
from whitepool.figures.colours import stage_name
from whitepool.page.tables import Cell, Line, Table

MOST = 50

Floats = NDArray[np.float64]


def misjudged(
    table: SentenceTable, by_stage: Mapping[str, Sequence[Floats]], post: str
) -> Table | None:
    """The pairs whose ranks differ most in the last stage, worst first; None of rankings.

    Args:
        table: the sentences and pairs.
        by_stage: stage -> cosines of each scored set, (pair,).
        post: what the map is called.
    """
    if any(s.ranking is not None for s in table.scored):
        return None
    last = list(by_stage)[-1]
    found: list[tuple[float, int, int]] = []
    ranks = {stage: [_share(x) for x in cosines] for stage, cosines in by_stage.items()}
    gold = [_share(s.gold) for s in table.scored]
    for place, own in enumerate(gold):
        off = np.abs(ranks[last][place] - own)
        worst = np.argsort(-off, kind="stable")[:MOST]
        found += [(float(off[pair]), place, int(pair)) for pair in worst]
    lines = []
    for _, place, pair in sorted(found, key=lambda item: -item[0])[:MOST]:
        scored = table.scored[place]
        a, b = (table.texts[row] for row in scored.pairs[pair])
        cells = [Cell(scored.name, scored.name), Cell(a, a), Cell(b, b)]
        cells.append(_number(scored.gold[pair], gold[place][pair]))
        for stage, cosines in by_stage.items():
            cells.append(_number(cosines[place][pair], ranks[stage][place][pair]))
        lines.append(Line(tuple(cells)))
    stages = [f"cosine, {stage_name(stage, post)}" for stage in by_stage]
    caption = (
        "Pairs whose cosine and human score stand farthest apart, by their rank within the set: "
        "0 % is the least similar pair, 100 % the most."
    )
    columns = ("task", "sentence 1", "sentence 2", "score", *stages)
    total = sum(len(own) for own in gold)
    return Table(
        "Misjudged pairs", caption, columns, frozenset(["score", *stages]), tuple(lines), total
    )


def _share(values: Floats) -> Floats:
    """Average rank from 0 to 1."""
    return (rank(values) - 1) / max(len(values) - 1, 1)


def _number(value: float, share: float) -> Cell:
    return Cell(f"{value:.2f}", float(value), f"rank {100 * share:.0f} %")
