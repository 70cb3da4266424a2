"""Choosing a recipe on pairs it is not reported on.

A task's own dev split chooses for it; where there is none, STS-B's does, as in Ditto (Chen et al.
2023). A file of the user's own, if given, chooses for every task.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whitepool.data import load_pairs, load_sts
from whitepool.data.pairs import PairSet, Task
from whitepool.errors import UserError

log = logging.getLogger(__name__)

DEFAULT = "stsb"


class DevSplits:
    """Which set chooses for which task.

    Args:
        select_on: ``stsb``, or a file of sentence pairs.

    Raises:
        UserError: neither.
    """

    def __init__(self, select_on: str = DEFAULT) -> None:
        if select_on != DEFAULT and not Path(select_on).expanduser().is_file():
            raise UserError(
                f"analysis.select_on is {select_on!r}: give stsb, or a file of sentence pairs that "
                "exists (.tsv, .csv, .jsonl or .parquet)."
            )
        self.select_on = select_on
        self.common = DEFAULT if select_on == DEFAULT else Path(select_on).name

    def read(self, tasks: Sequence[Task]) -> tuple[PairSet, ...]:
        """The sets that must be encoded beside what is scored.

        Raises:
            UserError: a set cannot be read.
        """
        tasks = [task for task in tasks if task.scored]
        if self.select_on != DEFAULT:
            (chosen,) = load_pairs(self.select_on, name=self.common)
            return tuple(replace(s, split="dev") for s in chosen.scored)
        if any(s.split == "dev" for task in tasks for s in task.scored):
            log.warning("The dev split is scored: recipes are chosen on the pairs they score.")
        sets = {s.task: s for task in tasks for s in task.scored if s.split == "dev"}
        found = {s.task: s for task in tasks for s in task.other_splits if s.split == "dev"}
        without = [task.name for task in tasks if task.name not in sets | found]
        if without:
            log.info("No dev split of %s: chosen on STS-B's dev split.", ", ".join(without))
        if (without or len(tasks) > 1) and DEFAULT not in sets | found:
            (stsb,) = load_sts([DEFAULT], split="dev")
            found[DEFAULT] = stsb.scored[0]
        return tuple(found.values())

    def of(self, task: str, choices: Collection[str]) -> str:
        """The task whose dev split chooses for ``task``, ``avg`` among them.

        Args:
            task: what is reported.
            choices: tasks that have a dev split.
        """
        return task if self.select_on == DEFAULT and task in choices else self.common


def ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Rank of each value from 1, the highest; equal values share the best, NaN come last."""
    values = np.where(np.isnan(values), -np.inf, values)
    return np.asarray(1 + (values > values[:, None]).sum(1))
