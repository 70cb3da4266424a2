"""Keeping attention diagonals, and nothing else of the attention matrices.

Ditto needs `softmax(s Q K' + bias)_ii` of one head, the attention each token pays itself. Asking
transformers for attentions would keep (block, batch, head, token, token); under SDPA it would
keep nothing at all. Two ways lead to the diagonal alone:

- Most models dispatch through transformers' `AttentionInterface`. `attention_forward` is
  registered there: it runs SDPA, and for the heads asked for of the running block computes the
  score matrix of those heads only.
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

from whitepool.errors import UserError
from whitepool.states import BlockHead

NAME = "whitepool"


@dataclass
class Capture:
    """What one forward pass keeps; `block` is the block that runs now.

    Attributes:
        layers: layers to keep, resolved.
        last: the pass stops once this layer is known (``depth``: run to the end).
        heads: block -> heads whose diagonal is kept.
    """

    layers: frozenset[int]
    last: int
    heads: dict[int, list[int]]
    block: int = -1
    hidden: dict[int, Tensor] = field(default_factory=dict)
    diagonals: dict[BlockHead, Tensor] = field(default_factory=dict)

    def keep(self, diagonals: Tensor) -> None:
        """Keep (batch, head, token) of this block's heads, in the order they were asked for."""
        for position, head in enumerate(self.heads[self.block]):
            self.diagonals[self.block, head] = diagonals[:, position]


capturing: ContextVar[Capture | None] = ContextVar("capturing", default=None)


def register() -> None:
    """Make `attention_forward` known to transformers, with SDPA's masks; safe to repeat."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,
) -> tuple[Tensor, None]:
    """SDPA, as transformers calls it, that also keeps the diagonals asked for.

    query is (batch, head, token, dim), key and value the same or with fewer heads.
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if options.get("s_aux") is not None:
        raise UserError("models with attention sinks are not supported: SDPA would ignore them.")
    capture = capturing.get()
    if capture is not None and capture.block in capture.heads:
        causal = options.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        capture.keep(
            attention_diagonal(
                query,
                key,
                capture.heads[capture.block],
                scaling=options.get("scaling"),
                mask=attention_mask,
                bias=options.get("position_bias"),
                causal=causal and attention_mask is None,
            )
        )
    output: tuple[Tensor, None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, **options
    )
    return output


def attention_diagonal(
    query: Tensor,
    key: Tensor,
    heads: list[int],
    *,
    scaling: float | None = None,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """softmax(scaling q k' + bias)_ii for the given heads, (batch, head, token), float32.

    Args:
        query: (batch, head, token, dim).
        key: (batch, key head, token, dim); grouped-query models share key heads.
        heads: query heads, 0-based.
        scaling: factor of q k'; 1/sqrt(dim) if None.
        mask: (batch or 1, head or 1, token, token), true where attended, or additive.
        bias: (1, head or 1, token, token), added to the scores.
        causal: tokens attend to themselves and what stands before.
    """
    group = query.shape[1] // key.shape[1]
    q = query[:, heads].float()
    k = key[:, [head // group for head in heads]].float()
    scores = q @ k.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    for extra in (bias, mask):
        if extra is None:
            continue
        picked = extra[:, heads] if extra.shape[1] > 1 else extra
        if picked.dtype == torch.bool:
            scores = scores.masked_fill(~picked, float("-inf"))
        else:
            scores = scores + picked.float()
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    # softmax(s)_ii = exp(s_ii - log sum_j exp(s_ij))
    return torch.exp(scores.diagonal(dim1=-2, dim2=-1) - scores.logsumexp(-1))


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
