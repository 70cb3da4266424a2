"""Whole batches, and texts, dealt to the processes of a pass: each to one of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def deal(costs: Sequence[int], ranks: int) -> list[list[int]]:
    """Which items each process takes, in their own order.

    The dearest come first, each to the process with the least so far (the lowest among equals), so
    that two processes differ by the cost of one item at most.

    Args:
        costs: of each item.
        ranks: number of processes.
    """
    shares: list[list[int]] = [[] for _ in range(ranks)]
    load = [(0, rank) for rank in range(ranks)]
    for item in sorted(range(len(costs)), key=lambda i: -costs[i]):
        cost, rank = load[0]
        shares[rank].append(item)
        heapq.heapreplace(load, (cost + costs[item], rank))
    return [sorted(share) for share in shares]
