"""The attention function that serves packed rows and keeps attention diagonals, and nothing else.

Ditto needs `softmax(s Q K' + bias)_ii` of one head, the attention each token pays itself. Asking
transformers for attentions would keep (block, batch, head, token, token); under SDPA it would
keep nothing at all. Two ways lead to the diagonal alone:

- Most models dispatch through transformers' `AttentionInterface`. `attention_forward` is
  registered there: it attends within each sentence (see `whitepool.attend`), also where many
  sentences stand in one packed row, and keeps the diagonals asked for of the running block.
- The others (MPNet, DeBERTa, XLM, SqueezeBERT …) call softmax themselves. `SoftmaxTap` watches
  softmax while such a model runs and keeps the diagonals of the probabilities as they pass.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from whitepool.attend import attend, attention_diagonal, is_short
from whitepool.errors import UserError
from whitepool.states import BlockHead

NAME = "whitepool"

Group = tuple[int, int]


@dataclass
class Capture:
    """What one forward pass keeps; `block` is the block that runs now.

    Attributes:
        layers: layers to keep, resolved.
        last: the pass stops once this layer is known (``depth``: run to the end).
        heads: block -> heads whose diagonal is kept.
        groups: of a packed row, (sentences, tokens of each) in the order they stand in it.
        hidden: layer -> (batch, token, dim) as the model has it, packed if the row is.
        diagonals: (block, head) -> (sentence, token) of each group; one group if not packed.
    """

    layers: frozenset[int]
    last: int
    heads: dict[int, list[int]]
    groups: tuple[Group, ...] | None = None
    block: int = -1
    hidden: dict[int, Tensor] = field(default_factory=dict)
    diagonals: dict[BlockHead, list[Tensor]] = field(default_factory=dict)

    def keep(self, diagonals: Tensor) -> None:
        """Keep (sentence, head, token) of this block's heads, in the order they were asked for."""
        for position, head in enumerate(self.heads[self.block]):
            self.diagonals.setdefault((self.block, head), []).append(diagonals[:, position])


capturing: ContextVar[Capture | None] = ContextVar("capturing", default=None)


def register() -> None:
    """Make `attention_forward` known to transformers, with SDPA's masks; safe to repeat."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    def mask(*args: Any, **options: Any) -> Tensor | None:
        capture = capturing.get()
        packed = capture is not None and capture.groups is not None
        return None if packed else sdpa_mask(*args, **options)

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, mask)


def attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attention within each sentence, as transformers calls it, keeping the diagonals asked for.

    query is (batch, head, token, dim), key and value the same or with fewer heads; a packed row
    is a batch of one. The output is (batch, token, head, dim).
    """
    if options.get("s_aux") is not None:
        raise UserError("models with attention sinks are not supported: SDPA would ignore them.")
    capture = capturing.get()
    if capture is None or capture.groups is None:
        return _attention(module, query, key, value, attention_mask, options), None
    outputs, start = [], 0
    for sentences, length in capture.groups:
        some = slice(start, start + sentences * length)
        start = some.stop
        # (1, head, token, dim) -> (sentence, head, token, dim)
        q, k, v = (
            x[0, :, some].view(-1, sentences, length, x.shape[-1]).transpose(0, 1)
            for x in (query, key, value)
        )
        outputs.append(_attention(module, q, k, v, None, options).flatten(0, 1))
    return torch.cat(outputs).unsqueeze(0), None


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    options: dict[str, Any],
) -> Tensor:
    """Attention of one batch of sentences, (batch, token, head, dim)."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    capture = capturing.get()
    heads = [] if capture is None else capture.heads.get(capture.block, [])
    scaling, bias = options.get("scaling"), options.get("position_bias")
    causal = options.get("is_causal")
    causal = (getattr(module, "is_causal", True) if causal is None else causal) and mask is None
    if mask is None and bias is None and is_short(query, key, diagonals=bool(heads)):
        output, diagonal = attend(query, key, value, heads, scaling=scaling, causal=causal)
    else:
        diagonal = None
        if heads:
            diagonal = attention_diagonal(
                query, key, heads, scaling=scaling, mask=mask, bias=bias, causal=causal
            )
        output, _ = sdpa_attention_forward(module, query, key, value, mask, **options)
    if capture is not None and diagonal is not None:
        capture.keep(diagonal)
    return output


class SoftmaxTap(TorchFunctionMode):
    """Keeps the diagonals of the attention softmax of models that call softmax themselves.

    Each block has one softmax over a square (batch, head, token, token); its probabilities go on
    to the model unchanged and only the diagonals of the heads asked for stay.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run ``func``; where it is an attention softmax, keep the diagonals."""
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == "softmax":
            capture = capturing.get()
            if (
                capture is not None
                and capture.block in capture.heads
                and result.dim() == 4
                and result.shape[-1] == result.shape[-2]
            ):
                heads = capture.heads[capture.block]
                capture.keep(result.detach().diagonal(dim1=-2, dim2=-1)[:, heads].float())
        return result
