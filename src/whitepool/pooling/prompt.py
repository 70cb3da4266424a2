"""PromptBERT with the template's own vector subtracted (Jiang et al. 2022, section 4.2).

    v = h[mask | template with the text] - h[mask | template alone]

where the tokens of the template alone keep the positions that they have around the text, so that
what is subtracted depends on the text's length and on nothing else of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from whitepool import blocks
from whitepool.errors import UserError
from whitepool.pooling.slots import only_mask
from whitepool.states import Layer, Needs, States

if TYPE_CHECKING:
    from whitepool.framing import Frame, Parts
    from whitepool.plm import FrozenPLM


class _Alone(NamedTuple):
    """What the vectors of a template alone are made with, and those made so far."""

    plm: FrozenPLM
    parts: Parts
    made: dict[int, Tensor]


class DebiasedPrompt:
    """The vector at the mask slot less that of the template alone, mean over layers.

    Args:
        layers: which layers; see `whitepool.states` for how they count.

    Raises:
        UserError: no layer is given.
    """

    def __init__(self, layers: Sequence[Layer] = (-1,)) -> None:
        if not layers or isinstance(layers, int | float | str):
            raise UserError(f"pooling.layers is {layers!r}: give a list of layers, as [-1].")
        self.layers = tuple(layers)
        self._alone: _Alone | None = None

    @property
    def needs(self) -> Needs:
        """The layers."""
        return Needs(self.layers)

    def bound(self, plm: FrozenPLM, frame: Frame) -> DebiasedPrompt:
        """The head for a template and the model that it runs through.

        Raises:
            UserError: the model has no mask token, or takes no positions.
        """
        from whitepool.framing import parts_of

        plm.check_positions("pooling=prompt_debiased")
        result = DebiasedPrompt(self.layers)
        result._alone = _Alone(plm, parts_of(plm, frame.template), {})
        return result

    def __call__(self, states: States) -> Tensor:
        """Sentence vectors, (batch, dim), float32."""
        if self._alone is None:
            raise UserError("pooling=prompt_debiased knows no template, which a grid has none of.")
        lengths = (states.mask.sum(1) - self._alone.parts.length).tolist()
        for length in sorted({*lengths} - {*self._alone.made}):
            self._alone.made[length] = self._template(self._alone, length, states.ids.device)
        alone = torch.stack([self._alone.made[length] for length in lengths])
        return self._at_mask(states) - alone

    def _at_mask(self, states: States) -> Tensor:
        mask = only_mask(states)
        return torch.stack([hidden[mask] for hidden in states.stack(self.layers)]).mean(0)

    def _template(self, alone: _Alone, length: int, device: torch.device) -> Tensor:
        """The vector, (dim,), of the template around a gap of ``length`` tokens."""
        before, after = alone.parts.before, alone.parts.after
        ids = torch.tensor([before + after], device=device)
        mask_id = alone.plm.tokenizer.mask_token_id
        filled = torch.full((1, ids.shape[1] + length), mask_id, device=device)
        positions = blocks.positions(alone.plm.model, filled)
        kept = torch.cat([positions[:, : len(before)], positions[:, len(before) + length :]], dim=1)
        return self._at_mask(alone.plm.at_positions(ids, kept, self.needs))[0]
