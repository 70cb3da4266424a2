"""Sentence pairs with a gold score, as every reader returns them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["graded", "binary", "retrieval"]
Form = Literal["original", "whiteningbert"]


@dataclass(frozen=True, eq=False)
class Qrels:
    """Which documents are relevant to which queries, and how much.

    Attributes:
        query: (judgement,), number of the query; in ascending order.
        document: (judgement,), number of the document.
        grade: (judgement,), above 0.
        same: (query,), number of the document that has the query's own id, -1 for none.
        order: (document,), place of its id among all ids.
    """

    query: NDArray[np.int64]
    document: NDArray[np.int64]
    grade: NDArray[np.float64]
    same: NDArray[np.int64]
    order: NDArray[np.int64]

    def relevant(self, query: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Documents relevant to a query, and their grades."""
        own = slice(*np.searchsorted(self.query, [query, query + 1]))
        return self.document[own], self.grade[own]


@dataclass(frozen=True, eq=False)
class PairSet:
    """The judged pairs of one file, in file order.

    Attributes:
        task: name of the task, ``sts12``.
        subset: bare name of the sub-task, ``MSRpar``; empty where the task is one file.
        split: ``train``, ``dev`` or ``test``.
        first: first sentence of each pair, (pair,).
        second: second sentence of each pair, (pair,).
        gold: human similarity score, (pair,), float64, finite; 0 or 1 in a binary task.
        source: the file or hub address that was read.
        sha256: checksum of that file (of all files, concatenated, where there are two).
        unjudged: pairs left out because their gold score is blank.
        flattened: the sub-tasks of a year lie in this one file and cannot be told apart, so
            only the concatenated aggregate exists.
        form: ``whiteningbert`` for texts as that paper's authors ship them, lower-cased and
            tokenised; a cased model gives others for them.
        qrels: of a retrieval set, what is relevant; then ``first`` are the queries, ``second`` the
            documents, and ``gold`` is a zero for each query.
    """

    task: str
    subset: str
    split: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: NDArray[np.float64]
    source: str
    sha256: str
    unjudged: int = 0
    flattened: bool = False
    form: Form = "original"
    qrels: Qrels | None = None

    def __len__(self) -> int:
        return len(self.gold)

    def texts(self) -> Iterator[str]:
        """All sentences, those of a pair side by side."""
        if self.qrels is not None:
            yield from self.first + self.second
            return
        for pair in zip(self.first, self.second, strict=True):
            yield from pair


@dataclass(frozen=True, eq=False)
class Task:
    """One task of a suite.

    Attributes:
        name: ``stsb``, ``sickr``, ``sts12`` … or the name of a user's own file.
        scored: the sets that are scored, one per sub-task.
        other_splits: further splits of the same task; never scored, used where a protocol
            fits on every split that exists.
        missing: sub-tasks whose files were absent and allowed to be.
        kind: how cosines are scored: ``graded`` gold scores by correlation, ``binary`` ones by
            accuracy at a threshold, a ``retrieval`` set by its rankings; see `whitepool.measures`.
        calibration: pairs that a threshold is chosen on; never scored, never fitted on.
    """

    name: str
    scored: tuple[PairSet, ...]
    other_splits: tuple[PairSet, ...] = ()
    missing: tuple[str, ...] = ()
    kind: Kind = "graded"
    calibration: tuple[PairSet, ...] = ()
