"""What might tell a good attention head without labels, beside what `whitepool` goes by.

Of each head, from sentences with token states X (token, dim), the mean over the list's layers, and
the head's attention diagonal d (token,), so that the sentence's vector is v = X'd:

    idf        Spearman of d with the words' idf: does the head look at telling words?
    isotropy   1 - mean cosine of different sentences: does it tell sentences apart?
    halves     share of sentences whose even words' vector is closer to the vector of its own odd
               words than to that of any other sentence's: does a part stand for the whole?

All are higher the better, times 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.analysis.tfidf import TokenStatistics
from whitepool.correlation import spearman_many
from whitepool.geometry import Floats
from whitepool.similarity import unit
from whitepool.states import BlockHead, Layer, States

CRITERIA = ("idf", "isotropy", "halves")
ENOUGH = 4  # words a sentence must have to be cut into halves


class HeadCriteria:
    """Takes in the tokens of sentences with `update`; `values` judges every head.

    Args:
        statistics: idf of the ids, and which of them are words.
        layers: layers whose mean Ditto weighs.
        heads: (block, head) pairs.
        chosen: the rows that are taken in, (row,), bool.

    Memory: tokens x (dim + heads), float32.
    """

    def __init__(
        self,
        statistics: TokenStatistics,
        layers: Sequence[Layer],
        heads: Sequence[BlockHead],
        chosen: NDArray[np.bool_],
    ) -> None:
        self.statistics, self.layers, self.heads = statistics, tuple(layers), tuple(heads)
        self._chosen = torch.from_numpy(chosen)
        self._hidden: list[Tensor] = []
        self._diagonals: list[Tensor] = []
        self._ids: list[Tensor] = []
        self._lengths: list[Tensor] = []

    @torch.inference_mode()
    def update(self, rows: Tensor, states: States) -> None:
        """Keep the tokens of some sentences, (batch,)."""
        mask = states.mask & self._chosen[rows].unsqueeze(1)
        mean = torch.stack(states.stack(self.layers)).mean(0)
        diagonals = torch.stack([states.diagonals[key].float() for key in self.heads], dim=-1)
        self._hidden.append(mean[mask])
        self._diagonals.append(diagonals[mask])
        self._ids.append(states.ids[mask])
        lengths = mask.sum(1)
        self._lengths.append(lengths[lengths > 0])

    @torch.inference_mode()
    def values(self) -> dict[str, Floats]:
        """Criterion -> its value for every head, (head,), x100; NaN where undefined."""
        x, d, ids = torch.cat(self._hidden), torch.cat(self._diagonals), torch.cat(self._ids)
        lengths = torch.cat(self._lengths)
        sentence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        word = self.statistics.word[ids]
        enough, odd = _halves(word.numpy(), sentence.numpy())
        of_words = d[word].T.double().numpy()
        found = {name: np.full(len(self.heads), np.nan) for name in CRITERIA}
        found["idf"] = spearman_many(of_words, self.statistics.idf[ids].numpy()[word.numpy()])
        for place in range(len(self.heads)):
            weighted = d[:, place : place + 1] * x
            parts = [torch.zeros(len(lengths), x.shape[1]) for _ in range(3)]
            for part, some in zip(parts, (odd & word, ~odd & word, ~word), strict=True):
                part.index_add_(0, sentence[some], weighted[some])
            u = torch.nn.functional.normalize(sum(parts, torch.zeros(())))
            n = int((u.square().sum(1) > 0).sum())
            mean = float(u.sum(0).square().sum() - u.square().sum()) / (n * (n - 1))
            found["isotropy"][place] = 1 - mean
            found["halves"][place] = own_half(parts[0][enough], parts[1][enough])
        return {name: 100 * values for name, values in found.items()}


def own_half(one: Tensor, other: Tensor) -> float:
    """Share of rows of ``one``, (n, dim), that are closest to their own row of ``other``."""
    u, v = (torch.nn.functional.normalize(x) for x in (one, other))
    cosines = u @ v.T
    own = cosines.diagonal().clone()
    cosines.fill_diagonal_(-torch.inf)
    return float((own > cosines.max(1).values).float().mean())


def _halves(word: NDArray[np.bool_], sentence: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """Sentences with enough words, and which tokens are the second, fourth, … word of theirs."""
    words = np.bincount(sentence[word], minlength=int(sentence[-1]) + 1)
    before = np.concatenate([[0], np.cumsum(words)[:-1]])
    place = np.cumsum(word) - word - before[sentence]
    return torch.from_numpy(np.flatnonzero(words >= ENOUGH)), torch.from_numpy(place % 2 == 1)


def tfidf_cosines(ids: Sequence[Sequence[int]], statistics: TokenStatistics) -> Floats:
    """Cosines of the tf-idf vectors of all sentences, (n, n)."""
    bags = np.zeros((len(ids), len(statistics.idf)))
    for row, sequence in enumerate(ids):
        np.add.at(bags[row], [token for token in sequence if statistics.word[token]], 1.0)
    u = unit(bags[:, bags.any(0)] * statistics.idf.numpy()[bags.any(0)])
    result: Floats = u @ u.T
    return result
