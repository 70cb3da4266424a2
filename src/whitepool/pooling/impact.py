"""Perturbed masking: how much the other tokens change when a token is hidden too.

    F[i, j] = |h_i(text without i) - h_i(text without i and j)|,   w_j = mean_{i != j} F[i, j]

with h_i the last state at token i, and "without" meaning a mask token in its place. Special tokens
take no part and weigh nothing. This is the probe that Ditto's diagonals are compared with; a text
of n words takes n (n + 1) / 2 passes. Sources: Wu et al. 2020, "Perturbed Masking"; Chen et al.
2023.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.states import BlockHead, Needs, States, Tokens
from whitepool.tokenizing import added_ids

if TYPE_CHECKING:
    from whitepool.framing import Frame
    from whitepool.plm import FrozenPLM

BUDGET = 4096  # most tokens of a pass


def work(lengths: Sequence[int]) -> tuple[int, int]:
    """Masked copies of texts of so many tokens, and all their tokens, special ones counted too."""
    copies = [n * (n + 1) // 2 for n in lengths]
    return sum(copies), sum(n * copy for n, copy in zip(lengths, copies, strict=True))


@dataclass(frozen=True)
class Impact:
    """The impact of each token on the others, divided by the sum.

    Attributes:
        cap: most tokens of a text, since the work grows with their third power.

    Raises:
        UserError: cap is no whole number from 1.
    """

    cap: int = 64
    diagonals: tuple[BlockHead, ...] = ()
    plm: FrozenPLM | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.cap, bool) or not isinstance(self.cap, int) or self.cap < 1:
            raise UserError(f"pooling.cap is {self.cap!r}: give a whole number from 1.")

    def bound(self, plm: FrozenPLM, frame: Frame) -> Impact:
        """The weights by a model.

        Raises:
            UserError: it has no mask token.
        """
        if plm.tokenizer.mask_token_id is None:
            raise UserError(
                f"pooling=impact hides tokens behind a mask token and model {plm.name} has none: "
                "take a masked language model."
            )
        return replace(self, plm=plm)

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token).

        Raises:
            UserError: a text of more tokens than the cap.
        """
        if self.plm is None:
            raise UserError("pooling=impact runs the model, which a grid does once for all.")
        weights = torch.zeros(states.mask.shape, device=states.mask.device)
        for row, (ids, mask) in enumerate(zip(states.ids, states.mask, strict=True)):
            length = int(mask.sum())
            if length > self.cap:
                raise UserError(
                    f"a text has {length} tokens, for which pooling=impact would run the model "
                    f"{length * (length + 1) // 2:,} times, and pooling.cap is {self.cap}: raise "
                    f"it, or cut texts with model.max_length={self.cap}."
                )
            weights[row, mask] = self._weights(self.plm, ids[mask])
        return weights

    def _weights(self, plm: FrozenPLM, ids: Tensor) -> Tensor:
        """Weights of the tokens of one text, (token,)."""
        added = torch.tensor(added_ids(plm.tokenizer), device=ids.device)
        words = (~torch.isin(ids, added)).nonzero().flatten().tolist()
        weights = torch.zeros(len(ids), device=ids.device)
        if len(words) < 2:
            weights[words] = 1.0
            return weights
        hidden = [(i, i) for i in words] + list(itertools.combinations(words, 2))
        masked = ids.repeat(len(hidden), 1)
        for row, places in enumerate(hidden):
            masked[row, list(places)] = plm.tokenizer.mask_token_id
        last = _last_states(plm, masked)  # (sequence, token, dim)
        alone = {i: last[row, i] for row, (i, j) in enumerate(hidden) if i == j}
        for row, (i, j) in enumerate(hidden):
            if i != j:
                weights[j] += (alone[i] - last[row, i]).norm()
                weights[i] += (alone[j] - last[row, j]).norm()
        total = weights.sum()
        return weights / torch.where(total > 0, total, 1.0)


def _last_states(plm: FrozenPLM, ids: Tensor) -> Tensor:
    """States of the last layer, (sequence, token, dim), float32, of sequences of one length."""
    step = max(1, BUDGET // ids.shape[1])
    parts = []
    for some in torch.split(ids, step):
        states = plm(Tokens(some, torch.ones_like(some, dtype=torch.bool)), Needs((-1,)))
        parts += states.stack([-1])
    return torch.cat(parts)
