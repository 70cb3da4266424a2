"""Heads that are not linear in the hidden states: elementwise maximum, and the model's pooler."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.states import Layer, Needs, States


class MaxPooling:
    """Elementwise maximum over the tokens, padding left out, then the mean over layers.

    Args:
        layers: which layers; see `whitepool.states` for how they count.

    Raises:
        UserError: no layer is given.
    """

    def __init__(self, layers: Sequence[Layer] = (-1,)) -> None:
        if not layers:
            raise UserError(f"pooling.layers is {layers!r}: give a list of layers, as [-1].")
        self.layers = tuple(layers)

    @property
    def needs(self) -> Needs:
        """The layers."""
        return Needs(self.layers)

    def __call__(self, states: States) -> Tensor:
        """Sentence vectors, (batch, dim), float32."""
        padding = ~states.mask.unsqueeze(-1)
        hidden = torch.stack(states.stack(self.layers))  # (layer, batch, token, dim)
        return hidden.masked_fill(padding, float("-inf")).amax(2).mean(0)


class ModelPooler:
    """The model's own pooler: a linear map of the first token's last state, then tanh.

    Args:
        activation: ``tanh`` as Hugging Face's poolers do, or ``none`` for the linear map alone
            (P2 of BERT-whitening).

    Raises:
        UserError: another activation.
    """

    def __init__(self, activation: str = "tanh") -> None:
        if activation not in ("tanh", "none"):
            raise UserError(f"pooling.activation is {activation!r}: choose tanh or none.")
        self.activation = activation

    @property
    def needs(self) -> Needs:
        """The pooler."""
        return Needs(pooler=True)

    def __call__(self, states: States) -> Tensor:
        """Sentence vectors, (batch, dim), float32."""
        assert states.pooled is not None
        pooled = states.pooled.float()
        return pooled.tanh() if self.activation == "tanh" else pooled
