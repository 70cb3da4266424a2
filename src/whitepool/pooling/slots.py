"""Token weights for texts in a template: its [MASK] slot, or the second copy of the text.

Sources: Jiang et al. 2022, "PromptBERT"; Springer et al. 2024, "Repetition Improves Language Model
Embeddings" (echo embeddings).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.states import BlockHead, States

if TYPE_CHECKING:
    from whitepool.framing import Frame
    from whitepool.plm import FrozenPLM


@dataclass(frozen=True)
class MaskToken:
    """The one mask token, which the template has."""

    diagonals: tuple[BlockHead, ...] = ()

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token).

        Raises:
            UserError: a text has another number of mask tokens than one.
        """
        return only_mask(states).float()


def only_mask(states: States) -> Tensor:
    """Whether each token is the mask token, (batch, token), true once in each sentence.

    Raises:
        UserError: it is not.
    """
    if states.mask_id is None:
        raise UserError("pooling=prompt reads the mask token, and this model has none.")
    found = (states.ids == states.mask_id) & states.mask
    counts = found.sum(1)
    if bool((counts != 1).any()):
        wrong = int(counts[counts != 1][0])
        raise UserError(
            f"a text has {wrong} mask tokens and pooling=prompt reads one: use a template with "
            "[MASK] in it once, and take it out of the texts themselves."
        )
    return found


@dataclass(frozen=True)
class SecondCopy:
    """Equal weights on the second copy of a text in a template that has it twice.

        before, text, between, text, after

    Attributes:
        lengths: tokens of the template: before, between and behind the copies, found by `bound`.
    """

    lengths: tuple[int, int, int] | None = field(default=None, compare=False, repr=False)
    diagonals: tuple[BlockHead, ...] = ()

    def bound(self, plm: FrozenPLM, frame: Frame) -> SecondCopy:
        """The weights for a template, as the model's tokenizer has it."""
        from whitepool.framing import parts_of

        parts = parts_of(plm, frame.template)
        assert parts.between is not None
        lengths = (len(parts.before), len(parts.between), len(parts.after))
        return replace(self, lengths=lengths)

    def __call__(self, states: States) -> Tensor:
        """Weights, (batch, token)."""
        if self.lengths is None:
            raise UserError("pooling=echo knows no template, which a grid has none of.")
        before, between, after = self.lengths
        total = states.mask.sum(1, keepdim=True)
        copy = (total - before - between - after) // 2
        place = states.mask.cumsum(1) - 1  # of each token in its sentence, from 0
        end = total - after
        inside = (place >= end - copy) & (place < end) & states.mask
        return inside.float() / torch.clamp(copy, min=1)
