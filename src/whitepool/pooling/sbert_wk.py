"""SBERT-WK: layers weighted by what each adds to its neighbours, tokens by how much they change.

    C_l = [v_{l-m} … v_{l-1} v_{l+1} … v_{l+m} v_l] = Q R,   r the last column of R
    alignment a_l = 1 / mean_j cos(v_l, v_j),   novelty n_l = |r_last| / |r|
    token vector  sum_l (a_l / sum a + n_l / sum n) / 2 * v_l
    token weight  variance over l of cos(v_l, v_{l+1}), divided by the sum over the tokens

with v_l the state of a token at layer l, from layer ``start`` on, and j the neighbours of l within
the window m that exist. Source: Wang and Kuo 2020, "SBERT-WK: A Sentence Embedding Method by
Dissecting BERT-based Word Models", section IV. Its code differs from its text: it leaves the last
token out, takes cosines with the part of v_l that its neighbours span, and drops the left
neighbours of the layers next to the first. Here the text is followed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.states import Needs, States


class SbertWk:
    """A sentence vector fused from all layers from ``start`` on.

    Args:
        start: first layer; 0 is the embedding output.
        window: neighbouring layers on either side, the paper's m.

    Raises:
        UserError: start or window is out of range.
    """

    def __init__(self, start: int = 4, window: int = 2) -> None:
        for name, value, least in (("start", start, 0), ("window", window, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UserError(f"pooling.{name} is {value!r}: give a whole number from {least}.")
        self.start = start
        self.window = window

    @property
    def needs(self) -> Needs:
        """Every layer from `start` on."""
        return Needs(since=self.start)

    def __call__(self, states: States) -> Tensor:
        """Sentence vectors, (batch, dim), float32.

        Raises:
            UserError: fewer than 3 layers, whose 2 cosines are the least that have a variance.
        """
        layers = range(self.start, states.depth + 1)
        if len(layers) < 3:
            raise UserError(
                f"pooling=sbert_wk compares 3 layers or more, and from layer {self.start} on this "
                f"model has {max(len(layers), 0)} up to {states.depth}: set pooling.start to "
                f"{max(states.depth - 2, 0)} or less."
            )
        wide = torch.float32 if states.mask.device.type == "mps" else torch.float64
        stacked = torch.stack([h.to(wide) for h in states.stack(layers)], dim=2)
        tokens = unified(stacked, self.window)  # (batch, token, dim)
        weights = importance(stacked) * states.mask
        total = weights.sum(1, keepdim=True)
        weights = weights / torch.where(total > 0, total, 1.0)
        return (weights.unsqueeze(1) @ tokens).squeeze(1).float()


def importance(stacked: Tensor) -> Tensor:
    """Variance of the cosines of successive layers, (batch, token).

    Args:
        stacked: states, (batch, token, layer, dim).
    """
    unit = torch.nn.functional.normalize(stacked, dim=-1)
    return (unit[..., 1:, :] * unit[..., :-1, :]).sum(-1).var(-1, correction=0)


def unified(stacked: Tensor, window: int) -> Tensor:
    """One vector per token, (batch, token, dim).

    Args:
        stacked: states, (batch, token, layer, dim).
        window: neighbouring layers on either side.
    """
    count = stacked.shape[2]
    unit = torch.nn.functional.normalize(stacked, dim=-1)
    alignment, novelty = [], []
    for layer in range(count):
        near = [
            j for j in range(layer - window, layer + window + 1) if 0 <= j < count and j != layer
        ]
        cosines = (unit[:, :, near] * unit[:, :, [layer]]).sum(-1)  # (batch, token, neighbour)
        alignment.append(1 / cosines.mean(-1))
        columns = stacked[:, :, [*near, layer]].transpose(
            -1, -2
        )  # (batch, token, dim, neighbour + 1)
        last = torch.linalg.qr(columns, mode="r").R[..., -1]
        novelty.append(last[..., -1].abs() / last.norm(dim=-1))
    a, n = torch.stack(alignment, -1), torch.stack(novelty, -1)  # (batch, token, layer)
    weights = (a / a.sum(-1, keepdim=True) + n / n.sum(-1, keepdim=True)) / 2
    return (weights.unsqueeze(-2) @ stacked).squeeze(-2)
