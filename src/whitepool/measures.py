"""How cosines become scores: one measure for each kind of task.

Graded gold scores are compared by rank and by value (Spearman, Pearson). Binary ones, 0 or 1, by
accuracy: a pair counts as 1 where its cosine is above a threshold, 0.5 as in Table 3 of
WhiteningBERT (Huang et al. 2021), or the one that is most accurate on calibration pairs. Rankings
of retrieval by the mean of what each query scores, see `whitepool.ranking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from whitepool import ranking
from whitepool.correlation import METRICS, bootstrap, pearson, spearman
from whitepool.data.pairs import Kind

Floats = NDArray[np.float64]

FIXED_THRESHOLD = 0.5
WORDS = {
    "spearman": "Spearman",
    "pearson": "Pearson",
    "accuracy_0.5": "accuracy at cosine 0.5",
    "accuracy_train": "accuracy at the best threshold on train",
    "ndcg@10": "nDCG@10",
    "mrr@10": "MRR@10",
    "recall@100": "recall@100",
}


class Measure(Protocol):
    """Scores of the cosines of one scored set.

    Attributes:
        metrics: names of its scores; the first is the one that a task is judged by.
        shown: those that the table on the terminal has.
    """

    @property
    def metrics(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def shown(self) -> tuple[str, ...]: ...  # noqa: D102

    def __call__(self, x: Floats, gold: Floats, *, samples: int, seed: int) -> Floats:
        """Scores of x, (stage, pair), as (metric, stage, 1 + sample): the value, then resamples.

        All stages see the same resamples of the pairs.
        """
        ...


@dataclass(frozen=True)
class Correlation:
    """Spearman and Pearson, NaN where undefined."""

    metrics: tuple[str, ...] = METRICS
    shown: tuple[str, ...] = METRICS[:1]

    def __call__(self, x: Floats, gold: Floats, *, samples: int, seed: int) -> Floats:
        """See `Measure`."""
        functions = {"spearman": spearman, "pearson": pearson}
        replicates = bootstrap(list(x), gold, samples=samples, seed=seed)
        return np.stack(
            [
                np.column_stack([[functions[m](stage, gold) for stage in x], replicates[m]])
                for m in METRICS
            ]
        )


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Share of pairs whose cosine is on the right side of a threshold.

    Attributes:
        thresholds: metric -> threshold of each stage, (stage,).
    """

    thresholds: Mapping[str, Floats]

    @property
    def metrics(self) -> tuple[str, ...]:
        """One for each kind of threshold."""
        return tuple(self.thresholds)

    @property
    def shown(self) -> tuple[str, ...]:
        """All."""
        return self.metrics

    def __call__(self, x: Floats, gold: Floats, *, samples: int, seed: int) -> Floats:
        """See `Measure`."""
        above = np.stack([x > t[:, None] for t in self.thresholds.values()])
        right = (above == (gold > 0)).astype(np.float64)  # (metric, stage, pair)
        generator = np.random.default_rng(seed)
        resampled = [
            right[..., generator.integers(0, len(gold), len(gold))].mean(-1) for _ in range(samples)
        ]
        return np.stack([right.mean(-1), *resampled], axis=-1)


@dataclass(frozen=True)
class QueryMean:
    """Mean over queries of their scores."""

    metrics: tuple[str, ...] = ranking.METRICS
    shown: tuple[str, ...] = ranking.METRICS

    def __call__(self, x: Floats, gold: Floats, *, samples: int, seed: int) -> Floats:
        """See `Measure`; x is (stage, metric, query), and queries are resampled."""
        generator, queries = np.random.default_rng(seed), x.shape[-1]
        resampled = [
            x[..., generator.integers(0, queries, queries)].mean(-1) for _ in range(samples)
        ]
        return np.stack([x.mean(-1), *resampled], axis=-1).swapaxes(0, 1)


def best_threshold(x: Floats, gold: Floats) -> float:
    """The threshold with most pairs on the right side, x > threshold where gold is 1.

    Args:
        x: cosines, (pair,).
        gold: 0 or 1, (pair,).

    Candidates lie halfway between neighbouring cosines, and beyond both ends; of equally good
    ones the lowest is taken.
    """
    values, place = np.unique(x, return_inverse=True)
    ones = np.bincount(place, weights=gold > 0, minlength=len(values))
    zeros = np.bincount(place, weights=gold <= 0, minlength=len(values))
    # right[i]: the threshold lies below values[i]; below it zeros are right, from it on ones are.
    right = np.r_[0.0, zeros.cumsum()] + np.r_[ones[::-1].cumsum()[::-1], 0.0]
    edges = np.r_[values[0] - 1.0, (values[:-1] + values[1:]) / 2, values[-1] + 1.0]
    return float(edges[right.argmax()])


def measure_of(kind: Kind, stages: int, calibration: tuple[Floats, Floats] | None) -> Measure:
    """The measure of a task.

    Args:
        kind: of the task.
        stages: number of stages that are scored.
        calibration: cosines, (stage, pair), and gold, (pair,), of pairs to choose a threshold on.
    """
    if kind == "graded":
        return Correlation()
    if kind == "retrieval":
        return QueryMean()
    thresholds = {f"accuracy_{FIXED_THRESHOLD}": np.full(stages, FIXED_THRESHOLD)}
    if calibration is not None:
        x, gold = calibration
        thresholds["accuracy_train"] = np.array([best_threshold(stage, gold) for stage in x])
    return Accuracy(thresholds)
