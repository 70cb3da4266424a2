"""Timing things beside each other: round by round, so that a busy machine slows all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Run = Callable[[], object]


def seconds(run: Run) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def alternate(runs: Mapping[str, Run], rounds: int, *, warm: bool = True) -> dict[str, list[float]]:
    """Seconds of each run in each round, (round,) by name.

    Args:
        runs: what is timed. Which one begins changes from round to round.
        rounds: how often each is timed.
        warm: call each once before, since first calls of a shape set things up.
    """
    if warm:
        for run in runs.values():
            run()
    names = list(runs)
    times: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(seconds(runs[name]))
    return times


def ratios(slow: Sequence[float], fast: Sequence[float]) -> list[float]:
    """How many times faster the second is, round by round."""
    return [a / b for a, b in zip(slow, fast, strict=True)]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median and range, ``1.56 (1.54 to 1.60)``."""
    low, high = min(values), max(values)
    middle = f"{statistics.median(values):.{digits}f}"
    return f"{middle} ({low:.{digits}f} to {high:.{digits}f})" if len(values) > 1 else middle
