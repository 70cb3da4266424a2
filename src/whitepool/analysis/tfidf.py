"""Do token weights follow how telling a word is? Their correlation with tf-idf.

    tf-idf(w, s) = count of w in s / words of s * (ln((1 + n) / (1 + n_w)) + 1)

over the n sentences that are encoded, n_w of them with the token id w. Special tokens are left
out, but for the unknown token, which stands for words. Ditto (Chen et al. 2023) reports such
correlations of attention diagonals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.analysis.base import Rows
from whitepool.correlation import pearson_many, spearman_many
from whitepool.data.table import SentenceTable
from whitepool.plm import FrozenPLM
from whitepool.states import BlockHead, States


class TokenStatistics:
    """tf-idf of every word token of a table's sentences.

    Args:
        plm: knows which ids are special.
        table: each unique sentence counts once.

    Attributes:
        idf: (vocabulary,), float32.
        word: (vocabulary,), whether an id stands for words.
    """

    def __init__(self, plm: FrozenPLM, table: SentenceTable) -> None:
        tokenizer = plm.tokenizer
        vocabulary = 1 + max(max(ids, default=0) for ids in table.ids)
        special = [i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id]
        counts = Counter(token for ids in table.ids for token in set(ids))
        texts_with = torch.zeros(vocabulary, dtype=torch.float64)
        texts_with[list(counts)] = torch.tensor(list(counts.values()), dtype=torch.float64)
        texts = sum(1 for ids in table.ids if ids)
        self.idf = (torch.log((1 + texts) / (1 + texts_with)) + 1).float()
        self.word = torch.ones(vocabulary, dtype=torch.bool)
        self.word[[i for i in special if i < vocabulary]] = False

    def words(self, states: States) -> Tensor:
        """Which tokens stand for words, (batch, token)."""
        return self.word.to(states.ids.device)[states.ids] & states.mask

    def of(self, states: States) -> Tensor:
        """tf-idf, (batch, token); 0 where no word is."""
        words = self.words(states)
        same = (states.ids.unsqueeze(1) == states.ids.unsqueeze(2)) & words.unsqueeze(1)
        share = same.sum(2) / words.sum(1, keepdim=True).clamp(min=1)
        return share * self.idf.to(states.ids.device)[states.ids] * words


class WeightCorrelations:
    """Weights of every word token by several weightings, beside its tf-idf.

    Args:
        statistics: of the sentences that come.
        names: the weightings: (block, head) of an attention diagonal, None for the chosen head.
    """

    def __init__(self, statistics: TokenStatistics, names: Sequence[BlockHead | None]) -> None:
        self.statistics = statistics
        self.names = tuple(names)
        self._weights: list[NDArray[np.float32]] = []
        self._tfidf: list[NDArray[np.float32]] = []

    @torch.inference_mode()
    def update(self, states: States, chosen: Tensor | None) -> None:
        """Take in a group of sentences.

        Args:
            states: with the diagonals in ``names``.
            chosen: the chosen head's token weights, (batch, token); None where it has none.
        """
        words = self.statistics.words(states)
        columns = [
            chosen if name is None else states.diagonals[name]
            for name in self.names
            if name is not None or chosen is not None
        ]
        if columns:
            stacked = torch.stack([c.float() for c in columns if c is not None], dim=0)
            self._weights.append(stacked[:, words].cpu().numpy())  # (weighting, token)
            self._tfidf.append(self.statistics.of(states)[words].cpu().numpy())

    def rows(self) -> Rows:
        """One row for each weighting: block, head, and its correlations x100."""
        if not self._weights:
            return []
        weights, tfidf = np.concatenate(self._weights, axis=1), np.concatenate(self._tfidf)
        rank, linear = spearman_many(weights, tfidf), pearson_many(weights, tfidf)
        return [
            {
                "weights": "chosen" if name is None else "diagonal",
                "block": None if name is None else name[0],
                "head": None if name is None else name[1],
                "spearman_tfidf": 100 * float(rank[place]),
                "pearson_tfidf": 100 * float(linear[place]),
                "tokens": len(tfidf),
            }
            for place, name in enumerate(self.names)
        ]
