"""More token weights that are estimated from a corpus: uSIF, and PromptBERT's static filter.

    uSIF:  w = a / (a/2 + p_w),   a = (1 - alpha) / (alpha |V| / 2)

with p_w the share of w among all tokens, |V| the number of tokens that occur, and alpha the share
of them that are seen in a text of average length n more often than not: p_w > 1 - (1 - 1/|V|)^n.
There is nothing to choose. Its removal of five common components is `whitening=remove_common
whitening.remove=5`; the authors' code also divides each dimension of a sentence's word vectors by
its norm over them, which their formula does not have and which is not done here. Source:
Ethayarajh 2018, "Unsupervised Random Walk Sentence Embeddings".

The static filter keeps tokens that begin a word, have no capital letter and are no punctuation, and
drops the most frequent of all tokens. Source: Jiang et al. 2022, "PromptBERT", section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.pooling.estimated import TokenCounts, refuse
from whitepool.states import BlockHead, States


@dataclass(frozen=True)
class Usif:
    """Unsupervised smooth inverse frequency."""

    diagonals: tuple[BlockHead, ...] = ()

    def estimate(self, counts: TokenCounts) -> Tensor:
        """Weight of each token id, (vocabulary,), float64.

        Raises:
            UserError: the corpus is too small for the formula.
        """
        total = counts.occurrences.sum()
        vocabulary = int((counts.occurrences > 0).sum())
        if vocabulary < 2:
            raise UserError(f"the corpus has {vocabulary} different tokens, too few for usif.")
        share = counts.occurrences / total
        mean_length = float(total) / counts.texts
        often = 1 - (1 - 1 / vocabulary) ** mean_length
        alpha = int((share > often).sum()) / vocabulary
        if not 0 < alpha < 1:
            raise UserError(
                f"{alpha:.0%} of the {vocabulary:,} different tokens of the corpus are more "
                f"frequent than {often:.2g}, which gives usif no weights: give more texts, or use "
                "pooling=sif."
            )
        a = (1 - alpha) / (alpha * vocabulary / 2)
        return (a / (a / 2 + share)).masked_fill(counts.special, 0.0)

    def __call__(self, states: States) -> NoReturn:
        """Nothing: the weights are not estimated.

        Raises:
            UserError: always.
        """
        refuse("usif")


@dataclass(frozen=True)
class StaticRemoveBiases:
    """Equal weights on what is left when frequent tokens, pieces, case and punctuation go.

    Attributes:
        frequent: how many of the most frequent tokens go, of whatever kind.

    Raises:
        UserError: frequent is no whole number from 0.
    """

    frequent: int = 36
    diagonals: tuple[BlockHead, ...] = ()

    def __post_init__(self) -> None:
        value = self.frequent
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise UserError(f"pooling.frequent is {value!r}: give a whole number from 0.")

    def estimate(self, counts: TokenCounts) -> Tensor:
        """1 for each token id that is kept, else 0, (vocabulary,), float64."""
        # Stable, so that ties go by token id.
        order = torch.argsort(counts.occurrences, descending=True, stable=True)
        weights = counts.plain.double()
        top = order[: self.frequent]
        weights[top[counts.occurrences[top] > 0]] = 0.0
        return weights

    def __call__(self, states: States) -> NoReturn:
        """Nothing: the weights are not estimated.

        Raises:
            UserError: always.
        """
        refuse("static_remove_biases")
