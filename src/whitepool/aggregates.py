"""How scores of sets become scores of tasks: the rules alone, for any number of recipes.

A task's sub-tasks give three aggregates: all their pairs concatenated, the mean of their scores,
and that mean weighted by pairs; `avg` is the plain mean over tasks. What is undefined (NaN) is left
out of every mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whitepool.data.table import ScoredSet
from whitepool.protocol import AGGREGATES

Floats = NDArray[np.float64]
AVERAGE = "avg"


@dataclass(frozen=True, eq=False)
class Cell:
    """One place in a table of scores.

    Attributes:
        task: ``stsb``, ``sts12`` …, ``avg`` for the mean over tasks.
        subset: ``MSRpar`` …, empty in cells of an aggregate.
        aggregate: ``all``, ``mean``, ``wmean``, empty in cells of a subset.
        n: number of pairs.
        value: scores, of the shape that they were given in.
    """

    task: str
    subset: str
    aggregate: str
    n: int
    value: Floats

    def row(self, recipe: int, stage: str, metric: str = "spearman") -> dict[str, Any]:
        """The tidy row of one recipe of values (recipe,), as in scores.csv without intervals."""
        return {
            "task": self.task,
            "subset": self.subset,
            "aggregate": self.aggregate,
            "stage": stage,
            "metric": metric,
            "value": float(self.value[recipe]),
            "n": self.n,
        }


def members(sets: Sequence[ScoredSet]) -> dict[str, list[int]]:
    """The places in ``sets`` of each task's sets."""
    found: dict[str, list[int]] = {}
    for place, scored in enumerate(sets):
        found.setdefault(scored.task, []).append(place)
    return found


def concatenated(
    sets: Sequence[ScoredSet], predictions: Sequence[Floats]
) -> Iterator[tuple[str, Floats, Floats]]:
    """Task, predictions (recipe, pair) and gold (pair,) of each task of several sets.

    Args:
        sets: the scored sets.
        predictions: (recipe, pair) for each set.
    """
    for task, places in members(sets).items():
        if len(places) > 1:
            gold = np.concatenate([sets[place].gold for place in places])
            yield task, np.concatenate([predictions[place] for place in places], axis=1), gold


def aggregate(
    sets: Sequence[ScoredSet], own: Sequence[Floats], together: Mapping[str, Floats]
) -> list[Cell]:
    """Every subset, the three aggregates of every task, and their mean over several tasks.

    Args:
        sets: the scored sets.
        own: scores of each set, all of one shape.
        together: scores of the pairs that `concatenated` gives, by task.

    The mean and the weighted mean are undefined where the sub-tasks of a task cannot be told apart.
    """
    cells, tasks = [], []
    for task, places in members(sets).items():
        values, flattened = [own[place] for place in places], any(sets[p].flattened for p in places)
        sizes = np.array([len(sets[place].gold) for place in places], dtype=np.float64)
        cells += [
            Cell(task, sets[place].subset, "", len(sets[place].gold), own[place])
            for place in places
            if sets[place].subset
        ]
        found = {
            "all": together.get(task, own[places[0]]),
            "mean": mean_of_defined(values, np.ones(len(values))),
            "wmean": mean_of_defined(values, sizes),
        }
        if len(places) == 1:
            found |= {"mean": found["all"], "wmean": found["all"]}
        if flattened:
            found |= {name: np.full_like(own[places[0]], np.nan) for name in ("mean", "wmean")}
        cells += [Cell(task, "", name, int(sizes.sum()), found[name]) for name in AGGREGATES]
        tasks.append(found)
    if len(tasks) > 1:
        n = sum(len(scored.gold) for scored in sets)
        for name in AGGREGATES:
            mean = mean_of_defined([found[name] for found in tasks], np.ones(len(tasks)))
            cells.append(Cell(AVERAGE, "", name, n, mean))
    return cells


def mean_of_defined(parts: Sequence[Floats], weight: Floats) -> Floats:
    """Mean over parts, weighted (part,), of what is not NaN; NaN where nothing is."""
    x = np.stack(parts)
    weights = np.where(np.isnan(x), 0.0, weight.reshape(-1, *[1] * (x.ndim - 1)))
    total = weights.sum(0)
    mean = (np.nan_to_num(x) * weights).sum(0) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, np.nan)
