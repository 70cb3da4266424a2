"""Heads that are linear in the hidden states, which is nearly all of them.

    v = 1/L sum_l sum_t w_t h[l, t]

with token weights w and L layers. WhiteningBERT's L1+L12 is uniform weights over layers 1 and 12;
Ditto is attention-diagonal weights over layers 0 and -1; [CLS] is all weight on one token.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.pooling.base import TokenWeights
from whitepool.states import Layer, Needs, States


class LinearPooling:
    """Weighted sum over tokens, mean over layers.

    Args:
        tokens: token weights, (batch, token) from the states.
        layers: which layers; see `whitepool.states` for how they count.

    Raises:
        UserError: no layer is given.
    """

    def __init__(self, tokens: TokenWeights, layers: Sequence[Layer] | None) -> None:
        if not layers or isinstance(layers, int | float | str):
            raise UserError(f"pooling.layers is {layers!r}: give a list of layers, as [1,-1].")
        self.tokens = tokens
        self.layers = tuple(layers)

    @property
    def needs(self) -> Needs:
        """The layers, and the diagonals the token weights are made of."""
        return Needs(self.layers, self.tokens.diagonals)

    def by_layer(self, states: States) -> Tensor:
        """One vector per layer, (batch, layer, dim), float32.

        Raises:
            UserError: the layers differ in dimension (a static table narrower than the model).
        """
        hidden = states.stack(self.layers)
        dims = [h.shape[-1] for h in hidden]
        if len(set(dims)) > 1:
            raise UserError(
                f"layers {list(self.layers)} have {dims} dimensions and cannot be averaged: the "
                "word-embedding table of this model is narrower than its layers."
            )
        # Summed in float64, so that sentences of the same words in another order tie in a static
        # average; in float32 the order of summation would tell them apart.
        weights = self.tokens(states).unsqueeze(1)  # (batch, 1, token)
        wide = torch.float32 if weights.device.type == "mps" else torch.float64
        sums = [weights.to(wide) @ h.to(wide) for h in hidden]
        return torch.cat(sums, dim=1).float()

    def __call__(self, states: States) -> Tensor:
        """Sentence vectors, (batch, dim), float32."""
        return self.by_layer(states).mean(1)
