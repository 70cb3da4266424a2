"""What a published protocol fixes, so that scores can be compared with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from whitepool.data.table import FitOn, SentenceTable
from whitepool.errors import UserError

__all__ = ["AGGREGATES", "FIT_ON", "Aggregate", "EvalProtocol", "FitOn"]

Aggregate = Literal["all", "mean", "wmean"]
AGGREGATES: tuple[Aggregate, ...] = ("all", "mean", "wmean")
FIT_ON: tuple[FitOn, ...] = ("subset", "task", "suite", "corpus")


@dataclass(frozen=True)
class EvalProtocol:
    """How a score comes about from cosines.

    Attributes:
        name: as typed, ``protocol=su``.
        aggregate: how the sub-tasks of a task make the headline: ``all`` pairs concatenated,
            ``mean`` of the sub-tasks' scores, ``wmean`` the same weighted by their pairs. On
            STS12 the three can differ by 20 points for one model.
        fit_on: which sentences whitening is fitted on.
        all_splits: whether the task's other splits are fitted on too; of no use with a corpus.
        max_length: tokens per text, or None for the model's own limit.
        max_lengths: the same for tasks that it cuts elsewhere, by name.

    Raises:
        UserError: an unknown aggregate or fit set.
    """

    name: str
    aggregate: Aggregate
    fit_on: FitOn
    all_splits: bool = False
    max_length: int | None = None
    max_lengths: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key, value, choices in (
            ("protocol.aggregate", self.aggregate, AGGREGATES),
            ("whitening.fit_on", self.fit_on, FIT_ON),
        ):
            if value not in choices:
                raise UserError(f"{key} is {value!r}: choose one of {', '.join(choices)}.")

    def check(self, table: SentenceTable) -> None:
        """See that the headline can be computed, before anything is encoded.

        Raises:
            UserError: a mean over sub-tasks is asked of a file that does not tell them apart.
        """
        flattened = [s.task for s in table.scored if s.flattened]
        if flattened and self.aggregate != "all":
            raise UserError(
                f"protocol {self.name} takes the {self.aggregate} over sub-tasks, but the files "
                f"read for {', '.join(flattened)} do not tell them apart: give data.root= with "
                "SentEval's or WhiteningBERT's files, or use protocol=simcse or mteb."
            )

    def describe_fit(self, table: SentenceTable) -> str:
        """The fit set in words, as printed with the results."""
        split = " and ".join(dict.fromkeys(s.split for s in table.scored))
        where = {
            "subset": f"each sub-task's own {split} sentences",
            "task": f"each task's {split} sentences",
            "suite": f"the {split} sentences of all tasks together",
            "corpus": "a corpus",
        }[self.fit_on]
        others = self.all_splits and any(table.other.values())
        if others and self.fit_on in ("task", "suite"):
            where += " and its other splits" if self.fit_on == "task" else " and other splits"
        return where
