"""One run of a hooked model's blocks, and batches laid out for it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from whitepool import attention, blocks
from whitepool.attention import Capture, Group, SoftmaxTap, capturing
from whitepool.states import Batch, Tokens


def run(model: Any, inputs: dict[str, Any], capture: Capture) -> Tensor | None:
    """Run the blocks while ``capture`` keeps what it asks for.

    Returns:
        The model's last hidden state, (batch, token, dim); None where the pass stopped before.
    """
    eager = model.config._attn_implementation != attention.NAME
    tap = SoftmaxTap() if capture.heads and eager else nullcontext()
    token = capturing.set(capture)
    try:
        with tap:
            output = model(**inputs)
    except blocks.Stop:
        return None
    finally:
        capturing.reset(token)
    final: Tensor = output.last_hidden_state
    return final


def groups_of(lengths: Sequence[int]) -> tuple[Group, ...]:
    """(sentences, tokens of each) for each run of equal lengths."""
    return tuple((len(list(run)), n) for n, run in itertools.groupby(lengths))


def parts_of(batch: Batch) -> list[Tensor]:
    """Ids of each run of equal lengths, (sentence, token)."""
    groups = groups_of(batch.lengths)
    parts = torch.split(batch.ids, [n * length for n, length in groups])
    return [part.view(group) for part, group in zip(parts, groups, strict=True)]


def left_aligned(tokens: Tokens) -> tuple[Tensor, Tensor, Tensor | None]:
    """Ids and mask with all padding on the right, and the positions (batch, token) that undo it.

    Absolute positions count from a row's start, so padding there would shift them; moving it
    aside makes every family indifferent to the padding side.
    """
    ids, mask = tokens
    if bool((mask[:, 1:] <= mask[:, :-1]).all()):
        return ids, mask, None
    order = torch.argsort((~mask).int(), dim=1, stable=True)
    return ids.gather(1, order), mask.gather(1, order), torch.argsort(order, dim=1)


def take(x: Tensor, positions: Tensor) -> Tensor:
    """Rows of x, (batch, token, ...), taken at positions, (batch, token)."""
    index = positions.view(*positions.shape, *([1] * (x.dim() - 2))).expand(*x.shape)
    return x.gather(1, index)
