"""Unlabelled text to fit on: a stream of texts that is never held in memory.

A corpus is a list of sources, each read from its start as often as it is asked for. Texts without
any character but white space are left out and counted; repeated texts count as often as they occur.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from whitepool.data.pairs import PairSet, Task
from whitepool.data.sample import sample
from whitepool.errors import UserError


class Text(NamedTuple):
    """One text of a corpus.

    Attributes:
        text: as it stands in its source.
        where: file and line, or row, for messages.
    """

    text: str
    where: str


@dataclass(frozen=True)
class Source:
    """One file of a corpus.

    Attributes:
        name: the file, or its address on the hub.
        read: reads it from its start.
    """

    name: str
    read: Callable[[], Iterator[Text]]


@dataclass(frozen=True)
class Corpus:
    """Sources in order, and how many of their texts are taken.

    Attributes:
        name: what kind it is, ``text``, ``nli``.
        sources: at least one.
        limit: size of the uniform sample that is taken, None for all texts.
        seed: seed of the sample; the same seed takes the same texts of the same corpus.

    Raises:
        UserError: a limit below 1.
    """

    name: str
    sources: tuple[Source, ...]
    limit: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        limit = self.limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
            raise UserError(f"corpus.limit is {limit!r}: give a whole number, or null for all.")
        if limit is not None and limit < 1:
            raise UserError(f"corpus.limit is {limit}: give at least 1, or null for all texts.")

    def read(self) -> Reading:
        """Read from the start."""
        return Reading(self)


class Reading:
    """One reading of a corpus: an iterator over its texts that counts what passes.

    Attributes:
        read: texts read so far, blank ones included.
        blank: blank texts among them.
        used: texts given out so far.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.read = self.blank = self.used = 0
        self._digest = hashlib.sha256()
        texts = self._filled()
        self._texts = texts if corpus.limit is None else sample(texts, corpus.limit, corpus.seed)

    def __iter__(self) -> Iterator[Text]:
        return self

    def __next__(self) -> Text:
        text = next(self._texts)
        self.used += 1
        self._digest.update(text.text.encode() + b"\0")
        return text

    def _filled(self) -> Iterator[Text]:
        for source in self.corpus.sources:
            before = self.read
            for text in source.read():
                self.read += 1
                if text.text.strip():
                    yield text
                else:
                    self.blank += 1
            if self.read == before:
                raise UserError(f"{source.name} is empty: give a source with at least one text.")

    def describe(self) -> dict[str, Any]:
        """What was read, for results: sources, counts, and sha256 of the texts given out.

        The checksum is over the texts in order, each in UTF-8 and ended by a zero byte.
        """
        return {
            "corpus": self.corpus.name,
            "sources": [source.name for source in self.corpus.sources],
            "limit": self.corpus.limit,
            "seed": None if self.corpus.limit is None else self.corpus.seed,
            "read": self.read,
            "blank": self.blank,
            "texts": self.used,
            "sha256": self._digest.hexdigest(),
        }


def chained(name: str, parts: Sequence[Corpus]) -> Corpus:
    """Several corpora, one after the other."""
    return Corpus(name, tuple(source for part in parts for source in part.sources))


def of_pairs(tasks: Sequence[Task], other_splits: bool = False) -> Corpus:
    """The sentences of some tasks: of each pair the first, then the second.

    Args:
        tasks: what ``data=`` reads.
        other_splits: take the splits that are not scored too.
    """
    sets = [s for task in tasks for s in (*task.scored, *(task.other_splits * other_splits))]
    return Corpus("pairs", tuple(Source(s.source, partial(_texts_of, s)) for s in sets))


def _texts_of(pair_set: PairSet) -> Iterator[Text]:
    for number, text in enumerate(pair_set.texts()):
        yield Text(text, f"{pair_set.source}, pair {number // 2 + 1}")
