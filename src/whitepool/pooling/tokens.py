"""Token weights of the linear heads, (batch, token) each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.states import BlockHead, States


def _only(position: Tensor, mask: Tensor) -> Tensor:
    """Weight 1 at one position per sentence, (batch,), and 0 elsewhere."""
    return torch.zeros(mask.shape, device=mask.device).scatter_(1, position.unsqueeze(1), 1.0)


@dataclass(frozen=True)
class FirstToken:
    """The first token that is not padding: [CLS] in BERT's family."""

    diagonals: tuple[BlockHead, ...] = ()

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        return _only(states.mask.int().argmax(1), states.mask)


@dataclass(frozen=True)
class LastToken:
    """The last token that is not padding, wherever the padding stands."""

    diagonals: tuple[BlockHead, ...] = ()

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        length = states.mask.shape[1]
        return _only(length - 1 - states.mask.int().flip(1).argmax(1), states.mask)


@dataclass(frozen=True)
class Uniform:
    """1 / (number of tokens) at each token, special tokens included."""

    diagonals: tuple[BlockHead, ...] = ()

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        mask = states.mask.float()
        return mask / mask.sum(1, keepdim=True).clamp(min=1)


@dataclass(frozen=True)
class Words:
    """Equal weights on all tokens but the special ones; none on a text of special tokens alone."""

    diagonals: tuple[BlockHead, ...] = ()

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        added = torch.tensor(states.added, dtype=states.ids.dtype, device=states.ids.device)
        words = (states.mask & ~torch.isin(states.ids, added)).float()
        return words / words.sum(1, keepdim=True).clamp(min=1)


@dataclass(frozen=True)
class ByPosition:
    """t / (1 + 2 + … + n) at the t-th of n tokens, for decoders, whose later tokens have seen more.

    Source: Muennighoff 2022, "SGPT: GPT Sentence Embeddings for Semantic Search", equation 2.
    """

    diagonals: tuple[BlockHead, ...] = ()

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        weights = states.mask.cumsum(1) * states.mask.float()
        return weights / weights.sum(1, keepdim=True).clamp(min=1)


@dataclass(frozen=True)
class AttentionDiagonal:
    """Ditto: the attention each token pays itself in one head (Chen et al. 2023).

    Attributes:
        block: transformer block, 0-based.
        head: attention head, 0-based.
        normalize: divide by the sentence's sum. The paper does not. Cosines are the same either
            way; whatever is fitted on the vectors (whitening) is not.

    Raises:
        UserError: block or head is missing.
    """

    block: int | None
    head: int | None
    normalize: bool = False

    def __post_init__(self) -> None:
        if self.block is None or self.head is None:
            raise UserError(
                "pooling=ditto needs an attention head and none is published for this model: "
                "give pooling.block= and pooling.head= (0-based)."
            )
        for name, value in (("block", self.block), ("head", self.head)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise UserError(
                    f"pooling.{name} is {value!r}: give a whole number from 0, or choose "
                    "with pooling.head=auto or unsupervised."
                )

    @property
    def diagonals(self) -> tuple[BlockHead, ...]:
        """The one (block, head)."""
        assert self.block is not None
        assert self.head is not None
        return ((self.block, self.head),)

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        weights = states.diagonals[self.diagonals[0]]
        return weights / weights.sum(1, keepdim=True) if self.normalize else weights


@dataclass(frozen=True, eq=False)
class VocabularyWeights:
    """A weight of its own for each token id (idf, SIF), divided by the sentence's sum.

    Attributes:
        weights: (vocabulary,), finite and not negative. A sentence whose tokens all weigh nothing
            has the vector 0.

    Raises:
        UserError: another shape, or a weight that is negative or not finite.
    """

    weights: Tensor
    diagonals: tuple[BlockHead, ...] = ()

    def __post_init__(self) -> None:
        shape = tuple(self.weights.shape)
        if len(shape) != 1 or not self.weights.is_floating_point():
            raise UserError(f"token weights are {self.weights.dtype} of shape {shape}, not a list.")
        if not bool((self.weights.isfinite() & (self.weights >= 0)).all()):
            raise UserError("token weights hold a number that is negative or not finite.")

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        if int(states.ids.max()) >= len(self.weights):
            raise UserError(
                f"token id {int(states.ids.max())} has no weight: there are {len(self.weights)} "
                "token weights, fewer than this model's vocabulary."
            )
        weights = self.weights.to(states.ids.device)[states.ids].float() * states.mask
        total = weights.sum(1, keepdim=True)
        return weights / torch.where(total > 0, total, 1.0)
