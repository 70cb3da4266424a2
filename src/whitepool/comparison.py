"""Two runs side by side: the difference of their scores on the same pairs.

Both see the same bootstrap resamples of the pairs (Efron & Tibshirani 1993), so what makes a pair
hard for both recipes cancels. With d* the difference in each of B resamples, the interval is the
2.5 and 97.5 % points of d*, and p = min(1, 2 (1 + min(#{d* <= 0}, #{d* >= 0})) / (B + 1)), the
two-sided level at which that interval touches 0 (Davison & Hinkley 1997, 4.4.1). p is of one task;
of many tasks some are below 0.05 by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whitepool.correlation import Floats, interval
from whitepool.errors import UserError
from whitepool.measures import measure_of
from whitepool.predictions import Predictions
from whitepool.scores import cells


@dataclass(frozen=True)
class Difference:
    """What two runs score on a task, x100, the second minus the first.

    Attributes:
        task: ``stsb`` …, ``avg`` for the mean over tasks.
        metric: ``spearman``, ``accuracy_0.5`` or ``ndcg@10``.
        first: score of the first run, NaN where undefined.
        second: score of the second.
        low: lower end of the paired bootstrap 95 % interval of the difference.
        high: its upper end.
        p: two-sided, see the module.
        n: number of pairs.
    """

    task: str
    metric: str
    first: float
    second: float
    low: float
    high: float
    p: float
    n: int

    @property
    def value(self) -> float:
        """The difference."""
        return self.second - self.first


def compare(
    first: Predictions,
    second: Predictions,
    stages: tuple[str, str],
    *,
    samples: int = 1000,
    seed: int = 0,
) -> list[Difference]:
    """Differences of every task, and of the mean over tasks where there are several.

    Args:
        first: of one run.
        second: of another, of the same pairs.
        stages: which stage of each, ``raw`` or ``post``.
        samples: bootstrap resamples, at least 1.
        seed: of the resamples; a run's own intervals have its ``seed``.

    Raises:
        UserError: the runs scored different tasks or pairs, or combine sub-tasks differently.
    """
    _check(first, second)
    measures = {s.task: measure_of(s.kind, 2, None) for s in first.sets}
    by_run = {
        "first": first.by_stage[stages[0]],
        "second": second.by_stage[stages[1]],
    }
    found = []
    for measure, group, _ in cells(first.sets, by_run, measures, samples=samples, seed=seed):
        for cell in group:
            if cell.aggregate == first.aggregate:
                one, other = cell.value[0]
                low, high = interval(other[1:] - one[1:])
                scores = (100 * float(one[0]), 100 * float(other[0]), 100 * low, 100 * high)
                p = p_value(other[1:] - one[1:])
                found.append(Difference(cell.task, measure.metrics[0], *scores, p, cell.n))
    return found


def p_value(differences: Floats) -> float:
    """Two-sided p of bootstrap differences, (sample,), over the defined ones; NaN if none is."""
    defined = differences[~np.isnan(differences)]
    if not len(defined):
        return float("nan")
    tail = 1 + min(int((defined <= 0).sum()), int((defined >= 0).sum()))
    return min(1.0, 2 * tail / (len(defined) + 1))


def _check(first: Predictions, second: Predictions) -> None:
    names: list[list[str]] = [[s.name for s in run.sets] for run in (first, second)]
    if names[0] != names[1]:
        raise UserError(
            f"the runs scored different sets, {_listed(names[0])} and {_listed(names[1])}: "
            "evaluate both on the same data=."
        )
    for one, other in zip(first.sets, second.sets, strict=True):
        if one.kind != other.kind or not np.array_equal(one.gold, other.gold):
            raise UserError(
                f"the runs scored different pairs of {one.name} ({len(one.gold):,} and "
                f"{len(other.gold):,}, or other gold scores): evaluate both on the same data."
            )
    if first.aggregate != second.aggregate:
        raise UserError(
            f"the runs combine sub-tasks differently, {first.aggregate} and {second.aggregate}: "
            "evaluate both under the same protocol=."
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
