"""From vectors to tidy rows of scores: subsets, the three aggregates, the mean over tasks."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.correlation import METRICS, bootstrap, interval, pearson, spearman
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.protocol import AGGREGATES, EvalProtocol
from whitepool.similarity import cosine
from whitepool.whitening import Affine

Floats = NDArray[np.float64]
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


@dataclass(frozen=True, eq=False)
class Sample:
    """A score of each stage and its bootstrap replicates, for one metric.

    Attributes:
        value: (stage,).
        replicates: (stage, sample).
        n: number of pairs.
    """

    value: Floats
    replicates: Floats
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
        rows, local = np.unique(scored.pairs, return_inverse=True)
        local = local.reshape(scored.pairs.shape)
        raw = vectors[rows].astype(np.float64)
        result["raw"].append(cosine(raw, local))
        if maps is not None:
            post = maps[table.fit_set_of(scored, protocol.fit_on)](torch.from_numpy(raw)).numpy()
            post[blank[rows]] = 0.0
            result["post"].append(cosine(post, local))
    return {stage: values for stage, values in result.items() if values}


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
    scores = Scores()
    columns = list(zip(sets, *by_stage.values(), strict=True))
    tasks: list[dict[str, dict[str, Sample]]] = []
    for task, group in itertools.groupby(columns, key=lambda column: column[0].task):
        members = list(group)
        samples_of = [_correlate(xs, s.gold, s.name, samples, seed) for s, *xs in members]
        for (s, *_), sample in zip(members, samples_of, strict=True):
            if any(np.isnan(sample["spearman"].value)):
                scores.undefined.append(s.name)
            if s.subset:
                _add(scores, (task, s.subset, ""), stages, sample)
        together = samples_of[0]
        if len(members) > 1:
            xs = [np.concatenate(x) for x in list(zip(*members, strict=True))[1:]]
            gold = np.concatenate([s.gold for s, *_ in members])
            together = _correlate(xs, gold, task, samples, seed)
        flattened = any(s.flattened for s, *_ in members)
        aggregates = {
            "all": together,
            "mean": _average(samples_of, weighted=False, undefined=flattened),
            "wmean": _average(samples_of, weighted=True, undefined=flattened),
        }
        for aggregate in AGGREGATES:
            _add(scores, (task, "", aggregate), stages, aggregates[aggregate])
        tasks.append(aggregates)
    if len(tasks) > 1:
        for aggregate in AGGREGATES:
            average = _average([task[aggregate] for task in tasks], weighted=False)
            _add(scores, ("avg", "", aggregate), stages, average)
    return scores


def _correlate(
    xs: Sequence[Floats], gold: Floats, name: str, samples: int, seed: int
) -> dict[str, Sample]:
    own_seed = zlib.crc32(name.encode()) ^ seed
    replicates = bootstrap(xs, gold, samples=samples, seed=own_seed)
    return {
        metric: Sample(
            np.array([FUNCTIONS[metric](x, gold) for x in xs]), replicates[metric], len(gold)
        )
        for metric in METRICS
    }


def _average(
    parts: Sequence[dict[str, Sample]], *, weighted: bool, undefined: bool = False
) -> dict[str, Sample]:
    """Mean over parts, by their number of pairs if ``weighted``, undefined parts left out."""
    result = {}
    weight = np.array([part["spearman"].n if weighted else 1.0 for part in parts])
    for metric in METRICS:
        value = np.stack([part[metric].value for part in parts])  # (part, stage)
        replicates = np.stack([part[metric].replicates for part in parts])  # (part, stage, sample)
        if undefined:
            value, replicates = np.full_like(value, np.nan), np.full_like(replicates, np.nan)
        result[metric] = Sample(
            mean_of_defined(value, weight),
            mean_of_defined(replicates, weight),
            sum(part[metric].n for part in parts),
        )
    return result


def mean_of_defined(x: Floats, weight: Floats) -> Floats:
    """Weighted mean over parts, (...), undefined values left out; NaN where there is no other.

    Args:
        x: (part, ...).
        weight: (part,).
    """
    weights = np.where(np.isnan(x), 0.0, weight.reshape(-1, *[1] * (x.ndim - 1)))
    total = weights.sum(0)
    mean = (np.nan_to_num(x) * weights).sum(0) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, mean, np.nan)


def _add(
    scores: Scores, key: tuple[str, str, str], stages: tuple[str, ...], sample: dict[str, Sample]
) -> None:
    for metric in METRICS:
        s = sample[metric]
        for i, stage in enumerate(stages):
            low, high = interval(s.replicates[i])
            values = (100 * float(s.value[i]), 100 * low, 100 * high)
            scores.rows.append(Row(*key, stage, metric, *values, s.n))
        if len(stages) > 1:
            low, high = interval(s.replicates[1] - s.replicates[0])
            values = (100 * float(s.value[1] - s.value[0]), 100 * low, 100 * high)
            scores.differences.append(Row(*key, DIFFERENCE, metric, *values, s.n))


def headline(scores: Scores, protocol: EvalProtocol) -> Row:
    """The row a run is judged by: post-processed if it is, the mean over tasks if several."""
    stage = "post" if any(row.stage == "post" for row in scores.rows) else "raw"
    tasks = list(dict.fromkeys(row.task for row in scores.rows))
    task = "avg" if "avg" in tasks else tasks[0]
    return scores.get(task, protocol.aggregate, stage=stage)


def is_defined(row: Row) -> bool:
    """Whether the row has a value."""
    return not math.isnan(row.value)
