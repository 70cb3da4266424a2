"""From vectors to tidy rows of scores: subsets, the three aggregates, the mean over tasks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.aggregates import AVERAGE, Cell, Floats, aggregate, concatenated
from whitepool.correlation import interval
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.measures import Accuracy, Measure, measure_of
from whitepool.protocol import EvalProtocol
from whitepool.ranking import query_scores
from whitepool.similarity import Step, cosine
from whitepool.whitening import Map

DIFFERENCE = "difference"


@dataclass(frozen=True)
class Row:
    """One number, x100.

    Attributes:
        task: ``stsb``, ``sts12`` …, ``avg`` for the mean over tasks.
        subset: ``MSRpar`` …, empty in rows of an aggregate.
        aggregate: ``all``, ``mean``, ``wmean``, empty in rows of a subset.
        stage: ``raw``, ``post``, or ``difference`` (post minus raw, pairs resampled together).
        metric: ``spearman`` or ``pearson``; ``accuracy_0.5``, ``accuracy_train`` (binary tasks);
            ``ndcg@10``, ``mrr@10``, ``recall@100`` (retrieval).
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
        metrics: by task, those that a table shows; the first is the one it is judged by.
        thresholds: task -> metric -> stage -> the cosine above which a pair counts as 1.
        predictions: what each set was scored by, by stage, see `cosines`.
    """

    rows: list[Row] = field(default_factory=list)
    differences: list[Row] = field(default_factory=list)
    undefined: list[str] = field(default_factory=list)
    metrics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    thresholds: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    predictions: dict[str, list[Floats]] = field(default_factory=dict)

    def get(
        self,
        task: str,
        aggregate: str = "all",
        *,
        stage: str = "raw",
        subset: str = "",
        metric: str | None = None,
    ) -> Row:
        """The row of a task's aggregate, or of a ``subset`` of it.

        The metric is the one that the task is judged by, unless another is asked for.

        Raises:
            KeyError: there is none.
        """
        metric = metric or self.metrics[task][0]
        wanted = (task, subset, "" if subset else aggregate, stage, metric)
        for row in self.differences if stage == DIFFERENCE else self.rows:
            if (row.task, row.subset, row.aggregate, row.stage, row.metric) == wanted:
                return row
        raise KeyError(wanted)


def cosines(
    table: SentenceTable,
    vectors: NDArray[np.float32],
    maps: Mapping[str, Map] | None,
    protocol: EvalProtocol,
    sets: Sequence[ScoredSet] | None = None,
) -> dict[str, list[Floats]]:
    """What every set is scored by, by stage: ``raw``, and ``post`` where maps are given.

    Cosines of the pairs, (pair,) for each set, or the scores of queries, (metric, query).

    Args:
        table: the sentences and pairs.
        vectors: (row, dim).
        maps: map of each fit set; blank sentences stay zero through it.
        protocol: says which fit set serves a set.
        sets: sets of the table; the scored ones by default.
    """
    result: dict[str, list[Floats]] = {"raw": []}
    if maps is not None:
        result["post"] = []
    blank = table.is_blank
    for scored in table.scored if sets is None else sets:
        result["raw"].append(_predict(scored, vectors))
        if maps is not None:
            fitted = maps[table.fit_set_of(scored, protocol.fit_on)]
            step = partial(_mapped, fitted, blank)
            result["post"].append(_predict(scored, vectors, step))
    return result


def _predict(scored: ScoredSet, vectors: NDArray[np.float32], step: Step | None = None) -> Floats:
    """What a set is scored by: the cosine of each pair, (pair,), or scores (metric, query)."""
    if scored.ranking is None:
        return cosine(vectors, scored.pairs, through=step)
    rows, local = np.unique(scored.rows, return_inverse=True)
    some = vectors[rows].astype(np.float64)
    queries, documents = np.split(local, [len(scored.ranking.queries)])
    ranking = replace(scored.ranking, queries=queries, documents=documents)
    return query_scores(step(some, rows) if step else some, ranking)


def score_table(
    table: SentenceTable,
    vectors: NDArray[np.float32],
    maps: Mapping[str, Map] | None,
    protocol: EvalProtocol,
    *,
    samples: int = 1000,
    seed: int = 0,
) -> Scores:
    """Score all of a table: `cosines`, thresholds where a task needs them, then `score`."""
    chosen_on = cosines(table, vectors, maps, protocol, table.calibration)
    calibration = {
        s.task: (np.stack(x), s.gold)
        for s, *x in zip(table.calibration, *chosen_on.values(), strict=True)
    }
    by_stage = cosines(table, vectors, maps, protocol)
    return score(table.scored, by_stage, calibration, samples=samples, seed=seed)


def _mapped(fitted: Map, blank: NDArray[np.bool_], x: Floats, rows: NDArray[np.int64]) -> Floats:
    """Vectors of some rows through a map, those of blank sentences zero."""
    z: Floats = fitted(torch.from_numpy(x)).numpy()
    z[blank[rows]] = 0.0
    return z


def score(
    sets: Sequence[ScoredSet],
    by_stage: Mapping[str, Sequence[Floats]],
    calibration: Mapping[str, tuple[Floats, Floats]] | None = None,
    *,
    samples: int = 1000,
    seed: int = 0,
) -> Scores:
    """Score cosines: subsets, aggregates of each task, the mean over tasks of one kind.

    Args:
        sets: the scored sets.
        by_stage: stage -> cosines of each set, in the order of ``sets``.
        calibration: task -> cosines, (stage, pair), and gold of pairs to choose a threshold on.
        samples: bootstrap resamples; 0 for no intervals.
        seed: seed of the bootstrap; each set's resamples depend on it and the set's name alone.
    """
    stages = tuple(by_stage)
    scores = Scores(predictions={stage: list(xs) for stage, xs in by_stage.items()})
    measures = {
        s.task: measure_of(s.kind, len(stages), (calibration or {}).get(s.task)) for s in sets
    }
    for measure, found, undefined in cells(sets, by_stage, measures, samples=samples, seed=seed):
        scores.undefined += undefined
        for cell in found:
            scores.metrics.setdefault(cell.task, measure.shown)
            _add(scores, cell, stages, measure.metrics)
    for task, measure in measures.items():
        if isinstance(measure, Accuracy):
            scores.thresholds[task] = {
                metric: dict(zip(stages, values.tolist(), strict=True))
                for metric, values in measure.thresholds.items()
            }
    return scores


def cells(
    sets: Sequence[ScoredSet],
    by_stage: Mapping[str, Sequence[Floats]],
    measures: Mapping[str, Measure],
    *,
    samples: int,
    seed: int,
) -> Iterator[tuple[Measure, list[Cell], list[str]]]:
    """Scores and their bootstrap replicates, for each group of sets with the same metrics.

    Args:
        sets: the scored sets.
        by_stage: stage -> what each set is scored by; all stages see the same resamples.
        measures: task -> its measure.
        samples: bootstrap resamples.
        seed: seed of the bootstrap.

    Yields:
        A measure of the group, cells of values (metric, stage, 1 + sample), and the names of sets
        that are undefined in some stage.
    """
    predictions = [np.stack(xs) for xs in zip(*by_stage.values(), strict=True)]

    def value(task: str, x: Floats, gold: Floats, name: str) -> Floats:
        return measures[task](x, gold, samples=samples, seed=zlib.crc32(name.encode()) ^ seed)

    for metrics in dict.fromkeys(measure.metrics for measure in measures.values()):
        places = [i for i, s in enumerate(sets) if measures[s.task].metrics == metrics]
        some, given = [sets[i] for i in places], [predictions[i] for i in places]
        own = [value(s.task, x, s.gold, s.name) for s, x in zip(some, given, strict=True)]
        together = {task: value(task, x, y, task) for task, x, y in concatenated(some, given)}
        undefined = [s.name for s, v in zip(some, own, strict=True) if np.isnan(v[0, :, 0]).any()]
        yield measures[some[0].task], aggregate(some, own, together), undefined


def _add(scores: Scores, cell: Cell, stages: Sequence[str], metrics: Sequence[str]) -> None:
    key = (cell.task, cell.subset, cell.aggregate)
    for metric, values in zip(metrics, cell.value, strict=True):
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
