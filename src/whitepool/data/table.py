"""The table of unique sentences: each sequence of token ids is encoded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from whitepool.data.pairs import Kind, PairSet, Task
from whitepool.errors import UserError
from whitepool.ranking import Ranking

Rows = NDArray[np.int64]
FitOn = Literal["subset", "task", "suite", "corpus"]
Tokenize = Callable[[Sequence[str]], tuple[list[tuple[int, ...]], list[bool]]]


@dataclass(frozen=True, eq=False)
class ScoredSet:
    """One scored set with its pairs as rows of the table.

    Attributes:
        task: name of the task.
        subset: bare name of the sub-task, empty where the task is one file.
        pairs: (pair, 2), rows of the table.
        gold: (pair,), float64.
        flattened: the sub-tasks of a year cannot be told apart.
        split: ``train``, ``dev`` or ``test``.
        kind: how its cosines are scored, see `Task`.
        ranking: of a retrieval set, its queries and documents; it has no pairs.
    """

    task: str
    subset: str
    pairs: Rows
    gold: NDArray[np.float64]
    flattened: bool
    split: str
    kind: Kind = "graded"
    ranking: Ranking | None = None

    @property
    def rows(self) -> Rows:
        """Rows of its sentences, as often as they occur."""
        if self.ranking is None:
            return self.pairs.ravel()
        return np.concatenate([self.ranking.queries, self.ranking.documents])

    @property
    def related(self) -> Rows:
        """Rows that are scored together, (pair, 2): of a ranking, queries and what answers them."""
        if self.ranking is None:
            return self.pairs
        qrels = self.ranking.qrels
        found = self.ranking.queries[qrels.query], self.ranking.documents[qrels.document]
        return np.stack(found, axis=1)

    @property
    def name(self) -> str:
        """``sts12.MSRpar``, or ``stsb``."""
        return f"{self.task}.{self.subset}" if self.subset else self.task


@dataclass(frozen=True, eq=False)
class SentenceTable:
    """Unique sentences of a suite, and where its pairs find them.

    Attributes:
        tasks: what was read.
        ids: token ids of each row; () is the one row of all blank sentences.
        texts: a text with those ids, for messages.
        scored: the scored sets, in order.
        select: sets on which an analysis chooses between recipes; never a part of the scores.
        selecting: the same as they were read.
        calibration: sets on which the thresholds of binary tasks are chosen.
        sentences: number of sentences of all these sets, repeats included.
        truncated: how many distinct texts are cut.
        blank: how many of the sentences are blank.
    """

    tasks: tuple[Task, ...]
    ids: tuple[tuple[int, ...], ...]
    texts: tuple[str, ...]
    scored: tuple[ScoredSet, ...]
    select: tuple[ScoredSet, ...]
    selecting: tuple[PairSet, ...]
    other: dict[str, tuple[Rows, ...]]
    sentences: int
    truncated: int
    blank: int
    calibration: tuple[ScoredSet, ...] = ()

    @classmethod
    def build(
        cls,
        tasks: Sequence[Task],
        tokenize: Tokenize,
        other_splits: bool = False,
        select: Sequence[PairSet] = (),
        by_task: Mapping[str, Tokenize] | None = None,
    ) -> SentenceTable:
        """Tokenise the sentences of ``tasks`` and number the unique ones.

        Args:
            tasks: what was read.
            tokenize: texts to (token ids, whether cut).
            other_splits: take in the splits that are only fitted on.
            select: sets on which an analysis chooses between recipes.
            by_task: in place of ``tokenize`` for tasks that a protocol cuts elsewhere.

        Raises:
            UserError: no pair at all.
        """
        sets = [s for task in tasks for s in task.scored]
        others = [s for task in tasks for s in task.other_splits] if other_splits else []
        if not any(len(s) for s in sets):
            raise UserError("there are no sentence pairs to score: check data= and data.root=.")
        calibration = [s for task in tasks for s in task.calibration]
        by_task = by_task or {}
        texts: dict[Tokenize, dict[str, None]] = {}
        for s in (*sets, *select, *others, *calibration):
            seen = texts.setdefault(by_task.get(s.task, tokenize), {})
            seen.update(dict.fromkeys(s.first + s.second))
        found = {cut: cut(list(seen)) for cut, seen in texts.items()}
        row_of_ids: dict[tuple[int, ...], int] = {}
        row_of_text: dict[Tokenize, dict[str, int]] = {}
        example: dict[tuple[int, ...], str] = {}
        for cut, (ids, _) in found.items():
            rows_of = [row_of_ids.setdefault(sequence, len(row_of_ids)) for sequence in ids]
            row_of_text[cut] = dict(zip(texts[cut], rows_of, strict=True))
            for sequence, text in zip(ids, texts[cut], strict=True):
                example.setdefault(sequence, text)
        if not any(row_of_ids):
            raise UserError("every sentence is blank, so there is nothing to encode: check data=.")

        def rows(pair_set: PairSet) -> Rows:
            row_of = row_of_text[by_task.get(pair_set.task, tokenize)]
            return np.array([row_of[text] for text in pair_set.texts()], np.int64)

        kinds = {task.name: task.kind for task in tasks}

        def scored(s: PairSet) -> ScoredSet:
            flat, kind = rows(s), kinds.get(s.task, "graded")
            ranking = None
            if s.qrels is not None:
                ranking = Ranking(flat[: len(s.first)], flat[len(s.first) :], s.qrels)
                flat = flat[:0]
            pairs = flat.reshape(-1, 2)
            return ScoredSet(s.task, s.subset, pairs, s.gold, s.flattened, s.split, kind, ranking)

        numbered = [scored(s) for s in (*sets, *select, *calibration)]
        ends = np.cumsum([len(sets), len(select)])
        empty = row_of_ids.get((), -1)
        return cls(
            tasks=tuple(tasks),
            ids=tuple(row_of_ids),
            texts=tuple(example[sequence] for sequence in row_of_ids),
            scored=tuple(numbered[: ends[0]]),
            select=tuple(numbered[ends[0] : ends[1]]),
            selecting=tuple(select),
            other={
                task.name: tuple(rows(s).reshape(-1, 2) for s in task.other_splits)
                if other_splits
                else ()
                for task in tasks
            },
            sentences=sum(len(s.rows) for s in numbered),
            truncated=sum(sum(cut) for _, cut in found.values()),
            blank=sum(int((s.rows == empty).sum()) for s in numbered),
            calibration=tuple(numbered[ends[1] :]),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def is_blank(self) -> NDArray[np.bool_]:
        """Whether each row has no token, (row,)."""
        return np.array([not sequence for sequence in self.ids])

    def fit_sets(self, fit_on: FitOn) -> dict[str, NDArray[np.int64]]:
        """How often each row occurs in each fit set, (row,); blank sentences are left out.

        ``subset`` fits each scored set on itself, ``task`` each on all of its task, ``suite`` all
        on everything. The other splits count with ``task`` and ``suite``. ``corpus``, which is
        one fit set for all, has no sentence of the table, so there is no count of it.
        """
        if fit_on == "corpus":
            return {}
        members: dict[str, list[Rows]] = {}
        for s in self.scored:
            members.setdefault(self.fit_set_of(s, fit_on), []).append(s.rows)
        if fit_on != "subset":
            for task, others in self.other.items():
                name = "suite" if fit_on == "suite" else task
                if name in members:
                    members[name].extend(pairs.ravel() for pairs in others)
        filled = ~self.is_blank
        return {
            name: np.bincount(np.concatenate(rows), minlength=len(self)) * filled
            for name, rows in members.items()
        }

    @staticmethod
    def fit_set_of(scored: ScoredSet, fit_on: FitOn) -> str:
        """Name of the fit set that serves a scored set."""
        return {"subset": scored.name, "task": scored.task}.get(fit_on, fit_on)
