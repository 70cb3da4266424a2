"""The two small interfaces of pooling."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from whitepool.states import BlockHead, Needs, States


class TokenWeights(Protocol):
    """How much each token of a sentence counts; zero at padding."""

    @property
    def diagonals(self) -> tuple[BlockHead, ...]:
        """Attention diagonals the weights are made of."""
        ...

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token), float32."""
        ...


class Pooling(Protocol):
    """A head: hidden states to sentence vectors."""

    @property
    def needs(self) -> Needs:
        """What the head asks of the model."""
        ...

    def __call__(self, states: States) -> Tensor:
        """Sentence vectors, (batch, dim), float32."""
        ...
