"""Sentences in batches without padding, longest first, a token budget for each."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch

from whitepool.errors import UserError
from whitepool.states import Batch

BATCH_TOKENS = 4096


def check_budget(batch_tokens: int) -> int:
    """A token budget that holds at least one token.

    Raises:
        UserError: it is not positive.
    """
    if batch_tokens < 1:
        raise UserError(f"batch_tokens is {batch_tokens}: give at least 1.")
    return batch_tokens


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Rows in batches, longest first, blank rows left out.

    Args:
        lengths: tokens of each row.
        batch_tokens: most tokens of a batch; a row longer than that is a batch of its own.
    """
    order = sorted((row for row, n in enumerate(lengths) if n), key=lambda row: -lengths[row])
    batches: list[list[int]] = []
    room = 0
    for row in order:
        if lengths[row] > room:
            batches.append([])
            room = batch_tokens
        batches[-1].append(row)
        room -= lengths[row]
    return batches


def make_batch(ids: Sequence[Sequence[int]], rows: Sequence[int]) -> Batch:
    """The batch of the sentences at ``rows`` of ``ids``, which are in order of length."""
    sequences = [ids[row] for row in rows]
    tokens = torch.tensor(list(itertools.chain.from_iterable(sequences)))
    return Batch(torch.tensor(rows), tokens, tuple(map(len, sequences)))
