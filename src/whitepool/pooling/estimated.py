"""Token weights that are estimated from a corpus: idf and SIF.

    idf:  w = ln((1 + n) / (1 + n_w)) + 1      n texts, n_w of them with w
    SIF:  w = a / (a + p_w)                    p_w the share of w among all tokens, a = 1e-3

Tokens are words here: the special tokens that a tokenizer adds are not counted and weigh nothing,
as in the SIF paper, which has none. A token the corpus lacks weighs most. The "1 +" of idf counts
one more text with every token, so that no weight is infinite. Source of SIF: Arora, Liang and Ma
2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings"; its second step, the removal of
the first principal component, is post-processing: `whitening=remove_common`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, Protocol, runtime_checkable

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.pooling.base import Pooling
from whitepool.pooling.linear import LinearPooling
from whitepool.pooling.tokens import VocabularyWeights
from whitepool.states import BlockHead, States


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """How often each token id occurs in a corpus.

    Attributes:
        texts: number of texts.
        texts_with: (vocabulary,), float64, texts that have the id.
        occurrences: (vocabulary,), float64.
        special: (vocabulary,), bool, the special tokens; they are not counted.
        plain: (vocabulary,), bool, tokens that begin a word and are letters and digits, none of
            them a capital.
    """

    texts: int
    texts_with: Tensor
    occurrences: Tensor
    special: Tensor
    plain: Tensor


@runtime_checkable
class Estimated(Protocol):
    """Token weights that a corpus must be counted for."""

    def estimate(self, counts: TokenCounts) -> Tensor:
        """Weight of each token id, (vocabulary,), float64."""
        ...


@dataclass(frozen=True)
class Idf:
    """Inverse document frequency; a text is a document."""

    diagonals: tuple[BlockHead, ...] = ()

    def estimate(self, counts: TokenCounts) -> Tensor:
        """Weight of each token id, (vocabulary,), float64."""
        idf = torch.log((1 + counts.texts) / (1 + counts.texts_with)) + 1
        return idf.masked_fill(counts.special, 0.0)

    def __call__(self, states: States) -> NoReturn:
        """Nothing: the weights are not estimated.

        Raises:
            UserError: always.
        """
        refuse("idf")


@dataclass(frozen=True)
class Sif:
    """Smooth inverse frequency.

    Attributes:
        smoothing: the paper's a.

    Raises:
        UserError: smoothing is not positive.
    """

    smoothing: float = 1e-3
    diagonals: tuple[BlockHead, ...] = ()

    def __post_init__(self) -> None:
        if not self.smoothing > 0:
            raise UserError(f"pooling.smoothing is {self.smoothing}: give a number above 0.")

    def estimate(self, counts: TokenCounts) -> Tensor:
        """Weight of each token id, (vocabulary,), float64.

        Raises:
            UserError: the corpus has no token but special ones.
        """
        total = counts.occurrences.sum()
        if total == 0:
            raise UserError("the corpus has no token but special ones, so none can be weighed.")
        sif = self.smoothing / (self.smoothing + counts.occurrences / total)
        return sif.masked_fill(counts.special, 0.0)

    def __call__(self, states: States) -> NoReturn:
        """Nothing: the weights are not estimated.

        Raises:
            UserError: always.
        """
        refuse("sif")


def refuse(name: str) -> NoReturn:
    """Say that token weights are not estimated.

    Raises:
        UserError: always.
    """
    raise UserError(
        f"pooling={name} weighs tokens by a corpus, and none was counted: choose one, as "
        "corpus=text corpus.path=FILE."
    )


def is_estimated(pooling: Pooling) -> bool:
    """Whether a head waits for a corpus to be counted."""
    return isinstance(pooling, LinearPooling) and isinstance(pooling.tokens, Estimated)


def estimated(pooling: Pooling, counts: TokenCounts) -> Pooling:
    """The head with the weights that the counts give it."""
    assert isinstance(pooling, LinearPooling)
    assert isinstance(pooling.tokens, Estimated)
    return LinearPooling(VocabularyWeights(pooling.tokens.estimate(counts)), pooling.layers)
