"""Batches from a corpus of any size: windows of texts, each sequence of tokens once in a window.

A window is read, tokenised and planned like a table (longest first, a token budget per batch);
what occurs several times in it is encoded once and weighs that much. Only then the next is read.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from whitepool.batches import check_budget, make_batch, plan_batches
from whitepool.data.corpus import Corpus, Reading, Text
from whitepool.errors import UserError
from whitepool.ranks.dealing import deal
from whitepool.ranks.place import place
from whitepool.states import Batch
from whitepool.tokenizing import Tokenized

WINDOW = 8192


class WeightedBatch(NamedTuple):
    """Distinct sentences of a window, and how often each occurs in it.

    Attributes:
        batch: the sentences; their rows count within the window.
        weight: (sentence,), float64.
        texts: one text of each sentence, for messages.
    """

    batch: Batch
    weight: Tensor
    texts: tuple[Text, ...]


class CorpusStream(IterableDataset[WeightedBatch]):
    """Batches of a corpus; iterating reads it from the start.

    Of several processes each reads it all, and takes its share of the different texts of a window:
    what costs time is to tokenise and encode them.

    Args:
        corpus: the texts.
        tokenize: texts to token ids, cut.
        batch_tokens: most tokens of a batch.
        window: texts that are read before the first of them is encoded.

    Attributes:
        reading: the latest reading of the corpus.
        truncated: texts of this process cut in it, repeats included.

    Raises:
        UserError: batch_tokens or window is not positive.
    """

    def __init__(
        self,
        corpus: Corpus,
        tokenize: Callable[[Sequence[str]], Tokenized],
        *,
        batch_tokens: int,
        window: int = WINDOW,
    ) -> None:
        if window < 1:
            raise UserError(f"window is {window}: give at least 1.")
        self.corpus = corpus
        self.tokenize = tokenize
        self.batch_tokens = check_budget(batch_tokens)
        self.window = window
        self.reading: Reading = corpus.read()
        self.truncated = 0

    def __getstate__(self) -> dict[str, Any]:
        """What another process reads the corpus with, from its start."""
        return {name: value for name, value in self.__dict__.items() if name != "reading"}

    def __iter__(self) -> Iterator[WeightedBatch]:
        self.reading, self.truncated = self.corpus.read(), 0
        while texts := list(itertools.islice(self.reading, self.window)):
            yield from self._batches(texts)

    def _batches(self, texts: Sequence[Text]) -> Iterator[WeightedBatch]:
        """The batches of one window."""
        first: dict[str, Text] = {}
        repeats: Counter[str] = Counter()
        for text in texts:
            first.setdefault(text.text, text)
            repeats[text.text] += 1
        rank, ranks = place()
        if ranks > 1:
            dealt = deal([len(content) for content in first], ranks)[rank]
            contents = list(first)
            first = {contents[i]: first[contents[i]] for i in dealt}
        times: Counter[tuple[int, ...]] = Counter()
        example: dict[tuple[int, ...], Text] = {}
        ids, truncated = self.tokenize(list(first))
        for sequence, cut, (content, text) in zip(ids, truncated, first.items(), strict=True):
            times[sequence] += repeats[content]
            self.truncated += cut * repeats[content]
            example.setdefault(sequence, text)
        distinct = list(times)
        for rows in plan_batches([len(sequence) for sequence in distinct], self.batch_tokens):
            sequences = [distinct[row] for row in rows]
            yield WeightedBatch(
                make_batch(distinct, rows),
                torch.tensor([times[s] for s in sequences], dtype=torch.float64),
                tuple(example[s] for s in sequences),
            )

    def loader(self) -> DataLoader[WeightedBatch]:
        """The batches, in pinned memory where they go to a GPU."""
        return DataLoader(self, batch_size=None, pin_memory=torch.cuda.is_available())
