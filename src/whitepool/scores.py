"""From vectors to tidy rows of scores: subsets, the three aggregates, the mean over tasks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.aggregates import AVERAGE, Cell, Floats, aggregate, concatenated
from whitepool.correlation import METRICS, bootstrap, interval, pearson, spearman
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.protocol import EvalProtocol
from whitepool.similarity import cosine
from whitepool.whitening import Affine

FUNCTIONS = {"spearman": spearman, "pearson": pearson}
DIFFERENCE = "difference"


@dataclass(frozen=True)
class Row:
    """One number, correlations x100.

    Attributes:
        task: ``stsb``, ``sts12`` …, ``avg`` for the mean over tasks.
        subset: ``MSRpar`` …, empty in rows of an aggregate.
        aggregate: ``all``, ``mean``, ``wmean``, empty in rows of a subset.
        stage: ``raw``, ``post``, or ``difference`` (post minus raw, pairs resampled together).
        metric: ``spearman`` or ``pearson``.
        value: NaN where undefined.
        low: lower end of the bootstrap 95 % interval.
        high: upper end.
        n: number of pairs.
    """

    task: str
    subset: str
    aggregate: str
    stage: str
    metric: str
    value: float
    low: float
    high: float
    n: int


@dataclass
class Scores:
    """All scores of a run.

    Attributes:
        rows: stages ``raw`` and ``post``.
        differences: stage ``difference``.
        undefined: names of scored sets whose predictions are constant in some stage.
    """

    rows: list[Row] = field(default_factory=list)
    differences: list[Row] = field(default_factory=list)
    undefined: list[str] = field(default_factory=list)

    def get(
        self,
        task: str,
        aggregate: str = "all",
        *,
        stage: str = "raw",
        subset: str = "",
        metric: str = "spearman",
    ) -> Row:
        """The row of a task's aggregate, or of a ``subset`` of it.

        Raises:
            KeyError: there is none.
        """
        wanted = (task, subset, "" if subset else aggregate, stage, metric)
        for row in self.differences if stage == DIFFERENCE else self.rows:
            if (row.task, row.subset, row.aggregate, row.stage, row.metric) == wanted:
                return row
        raise KeyError(wanted)


def cosines(
    table: SentenceTable,
    vectors: NDArray[np.float32],
    maps: Mapping[str, Affine] | None,
    protocol: EvalProtocol,
) -> dict[str, list[Floats]]:
    """Cosines of every scored set's pairs, by stage: ``raw``, and ``post`` where maps are given.

    Args:
        table: the sentences and pairs.
        vectors: (row, dim).
        maps: map of each fit set; blank sentences stay zero through it.
        protocol: says which fit set serves a scored set.
    """
    result: dict[str, list[Floats]] = {"raw": [], "post": []}
    blank = table.is_blank
    for scored in table.scored:
        result["raw"].append(cosine(vectors, scored.pairs))
        if maps is not None:
            affine = maps[table.fit_set_of(scored, protocol.fit_on)]
            step = partial(_mapped, affine, blank)
            result["post"].append(cosine(vectors, scored.pairs, through=step))
    return {stage: values for stage, values in result.items() if values}


def _mapped(affine: Affine, blank: NDArray[np.bool_], x: Floats, rows: NDArray[np.int64]) -> Floats:
    """Vectors of some rows through a map, those of blank sentences zero."""
    z: Floats = affine(torch.from_numpy(x)).numpy()
    z[blank[rows]] = 0.0
    return z


def score(
    sets: Sequence[ScoredSet],
    by_stage: Mapping[str, Sequence[Floats]],
    *,
    samples: int = 1000,
    seed: int = 0,
) -> Scores:
    """Score cosines: subsets, aggregates of each task, the mean over tasks.

    Args:
        sets: the scored sets.
        by_stage: stage -> cosines of each set, in the order of ``sets``.
        samples: bootstrap resamples; 0 for no intervals.
        seed: seed of the bootstrap; each set's resamples depend on it and the set's name alone.
    """
    stages = tuple(by_stage)
    predictions = [np.stack(xs) for xs in zip(*by_stage.values(), strict=True)]

    def correlate(x: Floats, gold: Floats, name: str) -> Floats:
        return _correlate(x, gold, samples=samples, seed=zlib.crc32(name.encode()) ^ seed)

    own = [correlate(x, s.gold, s.name) for s, x in zip(sets, predictions, strict=True)]
    together = {task: correlate(x, y, task) for task, x, y in concatenated(sets, predictions)}
    scores = Scores(
        undefined=[s.name for s, v in zip(sets, own, strict=True) if np.isnan(v[0, :, 0]).any()]
    )
    for cell in aggregate(sets, own, together):
        _add(scores, cell, stages)
    return scores


def _correlate(x: Floats, gold: Floats, *, samples: int, seed: int) -> Floats:
    """Scores of a set's cosines, (stage, pair): (metric, stage, 1 + sample), the value first."""
    replicates = bootstrap(list(x), gold, samples=samples, seed=seed)
    return np.stack(
        [
            np.column_stack([[FUNCTIONS[metric](stage, gold) for stage in x], replicates[metric]])
            for metric in METRICS
        ]
    )


def _add(scores: Scores, cell: Cell, stages: tuple[str, ...]) -> None:
    key = (cell.task, cell.subset, cell.aggregate)
    for metric, values in zip(METRICS, cell.value, strict=True):
        for stage, value in zip(stages, values, strict=True):
            scores.rows.append(Row(*key, stage, metric, *_with_interval(value), cell.n))
        if len(stages) > 1:
            gap = _with_interval(values[1] - values[0])
            scores.differences.append(Row(*key, DIFFERENCE, metric, *gap, cell.n))


def _with_interval(values: Floats) -> tuple[float, float, float]:
    """A value and its interval, x100, from the value and its replicates, (1 + sample,)."""
    low, high = interval(values[1:])
    return 100 * float(values[0]), 100 * low, 100 * high


def headline(scores: Scores, protocol: EvalProtocol) -> Row:
    """The row a run is judged by: post-processed if it is, the mean over tasks if several."""
    stage = "post" if any(row.stage == "post" for row in scores.rows) else "raw"
    tasks = list(dict.fromkeys(row.task for row in scores.rows))
    task = AVERAGE if AVERAGE in tasks else tasks[0]
    return scores.get(task, protocol.aggregate, stage=stage)


def is_defined(row: Row) -> bool:
    """Whether the row has a value."""
    return not math.isnan(row.value)
