"""Token states and attention diagonals of many sentences, kept without padding.

The tokens of all sentences stand one after the other; sentence s has those from `starts[s]` on:

    hidden[layer]: (token, dim)        diagonals: (token, head)

One more position behind the last takes what is padding and gives zeros where a block is filled up.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from whitepool.states import BlockHead, Layer, States


class KeptTokens:
    """What a pass keeps of each token, in the type the states have, on their device.

    Args:
        lengths: tokens of each sentence.
        layers: resolved layers to keep.
        heads: (block, head) pairs whose diagonals are kept.
    """

    def __init__(
        self, lengths: Sequence[int], layers: Sequence[Layer], heads: Sequence[BlockHead]
    ) -> None:
        self.lengths = torch.tensor(lengths, dtype=torch.long)
        self.starts = self.lengths.cumsum(0) - self.lengths
        self.heads = tuple(heads)
        self.end = int(self.lengths.sum())
        self.layers = tuple(layers)
        self.hidden: dict[Layer, Tensor] = {}
        self.diagonals = torch.zeros(0)

    @torch.inference_mode()
    def put(self, rows: Tensor, states: States) -> Tensor:
        """Keep the states of some sentences, (batch,), whatever side their padding stands on.

        Returns:
            Their diagonals, (batch, token, head), zero at padding.
        """
        mask, device = states.mask, states.mask.device
        if not self.hidden:
            self._allocate(states)
        starts = self.starts.to(device)[rows.to(device)]
        place = starts.unsqueeze(1) + mask.cumsum(1) - 1
        place = place.where(mask, self.end).flatten()  # (batch token,)
        for layer, kept in self.hidden.items():
            kept.index_copy_(0, place, states.hidden[layer].flatten(0, 1))
        diagonals = torch.stack([states.diagonals[key] for key in self.heads], dim=-1)
        diagonals.mul_(mask.unsqueeze(-1))
        self.diagonals.index_copy_(0, place, diagonals.flatten(0, 1))
        return diagonals

    def _allocate(self, states: States) -> None:
        for layer in self.layers:
            like = states.hidden[layer]
            self.hidden[layer] = like.new_zeros(self.end + 1, like.shape[-1])
        like = states.diagonals[self.heads[0]]
        self.diagonals = like.new_zeros(self.end + 1, len(self.heads))

    @torch.inference_mode()
    def seal(self) -> None:
        """Forget what padding left; call once when all sentences are there."""
        for kept in (*self.hidden.values(), self.diagonals):
            kept[self.end :] = 0

    def block(self, rows: Tensor) -> tuple[dict[Layer, Tensor], Tensor]:
        """States and diagonals of some sentences, filled up with zeros to the longest of them.

        Args:
            rows: (batch,).

        Returns:
            (batch, token, dim) for each layer, and (batch, token, head).
        """
        lengths = self.lengths[rows].unsqueeze(1)
        position = torch.arange(int(lengths.max()))
        place = (self.starts[rows].unsqueeze(1) + position).where(position < lengths, self.end)
        place = place.to(self.diagonals.device)
        hidden = {layer: kept[place] for layer, kept in self.hidden.items()}
        return hidden, self.diagonals[place]
