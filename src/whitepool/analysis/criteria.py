"""Which attention head weighs tokens well, judged without a gold score.

Of each head, from a sample of sentences with token states X (token, dim), the mean over the list's
layers, and the head's attention diagonal d (token,), so that the sentence's vector is v = X'd:

    idf        Spearman of d with the words' idf: does the head look at telling words?
    isotropy   1 - mean cosine of different sentences: does it tell sentences apart?
    halves     share of sentences whose even words' vector is closer to the vector of its own odd
               words than to that of any other sentence's: does a part stand for the whole?
    lexical    Pearson of the cosines of all pairs of sentences with those of their tf-idf vectors:
               do sentences that share telling words come together?

Ditto (Chen et al. 2023) chooses its head on labelled pairs and leaves a choice without them open.
All are higher the better, times 100.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.analysis.tfidf import TokenStatistics
from whitepool.correlation import pearson, spearman_many
from whitepool.errors import UserError
from whitepool.geometry import Floats, anisotropy, unit
from whitepool.states import BlockHead, Layer, States

CRITERIA = ("idf", "isotropy", "halves", "lexical")
ENOUGH = 4  # words a sentence must have to be cut into halves


class HeadCriteria:
    """Takes in the sampled sentences' tokens with `update`; `values` judges every head.

    Args:
        statistics: idf of the ids, and which of them are words.
        layers: layers whose mean Ditto weighs.
        heads: (block, head) pairs.

    Memory: tokens of the sample x (dim + heads), float32.
    """

    def __init__(
        self, statistics: TokenStatistics, layers: Sequence[Layer], heads: Sequence[BlockHead]
    ) -> None:
        self.statistics, self.layers, self.heads = statistics, tuple(layers), tuple(heads)
        self._hidden: list[Tensor] = []
        self._diagonals: list[Tensor] = []
        self._ids: list[Tensor] = []
        self._lengths: list[Tensor] = []

    @torch.inference_mode()
    def update(self, states: States, sampled: Tensor) -> None:
        """Keep the sentences of a group that are in the sample, ``sampled`` (batch,), bool."""
        if not bool(sampled.any()):
            return
        mask = states.mask & sampled.to(states.mask.device).unsqueeze(1)
        mean = torch.stack(states.stack(self.layers)).mean(0)
        diagonals = torch.stack([states.diagonals[key].float() for key in self.heads], dim=-1)
        self._hidden.append(mean[mask].cpu())
        self._diagonals.append(diagonals[mask].cpu())
        self._ids.append(states.ids[mask].cpu())
        lengths = mask.sum(1)
        self._lengths.append(lengths[lengths > 0].cpu())

    def values(self) -> dict[str, Floats]:
        """Criterion -> its value for every head, (head,), x100; NaN where undefined.

        Raises:
            UserError: fewer than 10 sentences of the sample have four words.
        """
        x, d = torch.cat(self._hidden).double().numpy(), torch.cat(self._diagonals).double().numpy()
        ids, lengths = torch.cat(self._ids), torch.cat(self._lengths).numpy()
        word = self.statistics.word[ids].numpy()
        sentence = np.repeat(np.arange(len(lengths)), lengths)
        enough, odd = _halves(word, sentence)
        if len(enough) < 10:
            raise UserError(
                f"only {len(enough)} sentences have {ENOUGH} words or more, too few to judge a "
                "head by: give more sentences, or pooling.block= and pooling.head=."
            )
        starts = np.cumsum(lengths) - lengths
        lexical = _tfidf_cosines(ids.numpy(), word, sentence, self.statistics.idf.numpy())
        apart = np.triu_indices(len(lengths), 1)
        found = {name: np.full(len(self.heads), np.nan) for name in CRITERIA}
        found["idf"] = spearman_many(d[word].T, self.statistics.idf[ids].numpy()[word])
        for place in range(len(self.heads)):
            weighted = d[:, place : place + 1] * x
            v = np.add.reduceat(weighted, starts)
            one, other = (
                np.add.reduceat(weighted * (word & half)[:, None], starts)[enough]
                for half in (odd, ~odd)
            )
            u = unit(v)
            found["isotropy"][place] = 1 - anisotropy(v)
            found["halves"][place] = own_half(one, other)
            found["lexical"][place] = pearson((u @ u.T)[apart], lexical[apart])
        return {name: 100 * values for name, values in found.items()}


def own_half(one: Floats, other: Floats) -> float:
    """Share of rows of ``one``, (n, dim), that are closest to their own row of ``other``."""
    cosines = unit(one) @ unit(other).T
    own = cosines.diagonal().copy()
    np.fill_diagonal(cosines, -np.inf)
    return float((own > cosines.max(1)).mean())


def _halves(
    word: NDArray[np.bool_], sentence: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Sentences with enough words, and which tokens are the second, fourth, … word of theirs."""
    words = np.bincount(sentence[word], minlength=int(sentence[-1]) + 1)
    before = np.concatenate([[0], np.cumsum(words)[:-1]])
    place = np.cumsum(word) - word - before[sentence]
    return np.flatnonzero(words >= ENOUGH), place % 2 == 1


def _tfidf_cosines(
    ids: NDArray[np.int64],
    word: NDArray[np.bool_],
    sentence: NDArray[np.int64],
    idf: NDArray[np.float32],
) -> Floats:
    """Cosines of the tf-idf vectors of all sentences, (n, n)."""
    used, column = np.unique(ids[word], return_inverse=True)
    bags = np.zeros((int(sentence[-1]) + 1, len(used)))
    np.add.at(bags, (sentence[word], column), idf[used][column])
    u = unit(bags)
    result: Floats = u @ u.T
    return result
