"""Batches of unique sentences for Lightning."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset

from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.states import Batch

BATCH_TOKENS = 4096


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


class _Batches(Dataset[Batch]):
    def __init__(self, table: SentenceTable, batches: list[list[int]]) -> None:
        self.table, self.batches = table, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        rows = self.batches[index]
        sequences = [self.table.ids[row] for row in rows]
        ids = torch.tensor(list(itertools.chain.from_iterable(sequences)))
        return Batch(torch.tensor(rows), ids, tuple(map(len, sequences)))


class SentenceDataModule(pl.LightningDataModule):
    """One loader over the unique sentences of a table.

    Args:
        table: the sentences.
        batch_tokens: most tokens of a batch.

    Raises:
        UserError: batch_tokens is not positive.
    """

    def __init__(self, table: SentenceTable, *, batch_tokens: int = BATCH_TOKENS) -> None:
        super().__init__()
        if batch_tokens < 1:
            raise UserError(f"batch_tokens is {batch_tokens}: give at least 1.")
        self.table = table
        self.batches = plan_batches([len(ids) for ids in table.ids], batch_tokens)

    def test_dataloader(self) -> DataLoader[Batch]:
        """Batches in the planned order, in pinned memory where they go to a GPU."""
        return DataLoader(
            _Batches(self.table, self.batches),
            batch_size=None,
            pin_memory=torch.cuda.is_available(),
        )
