"""Attention of sentences of one length, softmax(s Q K' + mask) V, and its diagonal.

Sentences have a dozen tokens. There plain batched products are up to three times as fast as SDPA on
a CPU (see docs/performance.md), and their probabilities give any head's diagonal for nothing, so
that they pay for longer sentences where diagonals are asked for. Others go through SDPA and a score
matrix of the asked heads alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

SHORT = 24  # tokens of the longest sentence that products are faster for
SHORT_WITH_DIAGONALS = 64


def is_short(query: Tensor, key: Tensor, *, diagonals: bool) -> bool:
    """Whether `attend` serves: short sentences on a CPU, a key head for each query."""
    return (
        query.device.type == "cpu"
        and query.shape[2] <= (SHORT_WITH_DIAGONALS if diagonals else SHORT)
        and query.shape[1] == key.shape[1]
        and query.shape[2] == key.shape[2]
    )


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: list[int],
    *,
    scaling: float | None = None,
    causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention with no padding, and the diagonals of some heads.

    Args:
        query: (batch, head, token, dim), as key and value.
        heads: heads whose diagonal is wanted, 0-based.
        scaling: factor of q k'; 1/sqrt(dim) if None.
        causal: tokens attend to themselves and what stands before.

    Returns:
        (batch, token, head, dim), and (batch, head, token) in float32, None where no head is
        asked for. Softmax is taken in float32.
    """
    batch, n_heads, length, dim = query.shape
    scaling = dim**-0.5 if scaling is None else scaling
    q, k, v = (x.reshape(batch * n_heads, length, x.shape[-1]) for x in (query, key, value))
    empty = q.new_empty(1, 1, 1).expand(len(q), length, length)
    scores = torch.baddbmm(empty, q, k.transpose(1, 2), beta=0, alpha=scaling).float()
    if causal:
        scores.masked_fill_(_future(length, scores.device), float("-inf"))
    probabilities = scores.softmax(-1)
    output = torch.bmm(probabilities.to(v.dtype), v)
    diagonal = None
    if heads:
        square = probabilities.view(batch, n_heads, length, length)
        diagonal = square.diagonal(dim1=-2, dim2=-1)[:, heads]
    return output.view(batch, n_heads, length, -1).transpose(1, 2), diagonal


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
        scores = scores.masked_fill(_future(scores.shape[-1], scores.device), float("-inf"))
    # softmax(s)_ii = exp(s_ii - log sum_j exp(s_ij))
    return torch.exp(scores.diagonal(dim1=-2, dim2=-1) - scores.logsumexp(-1))


def _future(length: int, device: torch.device) -> Tensor:
    """True above the diagonal, (token, token)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
