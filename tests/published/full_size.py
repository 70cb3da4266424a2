"""Tasks of the published sizes, with next to nothing in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from whitepool.data import PairSet, Task
from whitepool.data.counts import COUNTS
from whitepool.data.table import SentenceTable


def pairs(task: str, subset: str, split: str, n: int, form: str = "original") -> PairSet:
    gold = np.zeros(n)
    return PairSet(
        task, subset, split, ("a",) * n, ("b",) * n, gold, "made", "0", form=form  # type: ignore[arg-type]
    )  # fmt: skip


def seven(form: str = "original") -> tuple[Task, ...]:
    """The seven English tasks; in SentEval's form with their other splits."""
    tasks = []
    for name, sets in COUNTS.items():
        made = [pairs(name, subset, split, n, form) for (subset, split), n in sets.items()]
        scored = tuple(s for s in made if s.split == "test")
        years = name not in ("stsb", "sickr")
        others = () if years or form != "original" else tuple(s for s in made if s.split != "test")
        tasks.append(Task(name, scored, others))
    return tuple(tasks)


def table(tasks: tuple[Task, ...], other_splits: bool = False) -> SentenceTable:
    return SentenceTable.build(
        tasks, lambda texts: ([(ord(t),) for t in texts], [False] * len(texts)), other_splits
    )


def without(tasks: tuple[Task, ...], name: str) -> tuple[Task, ...]:
    return tuple(task for task in tasks if task.name != name)


def missing(tasks: tuple[Task, ...], name: str) -> tuple[Task, ...]:
    """The tasks, one of which lacks a sub-task."""
    return tuple(replace(t, missing=("x",)) if t.name == name else t for t in tasks)
