"""Batches of unique sentences for Lightning."""

from __future__ import annotations

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from whitepool.batches import BATCH_TOKENS, check_budget, make_batch, plan_batches
from whitepool.data.table import SentenceTable
from whitepool.ranks.dealing import deal
from whitepool.ranks.place import place
from whitepool.states import Batch


class _Batches(Dataset[Batch]):
    def __init__(self, table: SentenceTable, batches: list[list[int]]) -> None:
        self.table, self.batches = table, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        return make_batch(self.table.ids, self.batches[index])


class SentenceDataModule(pl.LightningDataModule):
    """One loader over the unique sentences of a table, or over a process's share of them.

    Args:
        table: the sentences.
        batch_tokens: most tokens of a batch.

    Attributes:
        batches: rows of each batch, the same whatever the number of processes.

    Raises:
        UserError: batch_tokens is not positive.
    """

    def __init__(self, table: SentenceTable, *, batch_tokens: int = BATCH_TOKENS) -> None:
        super().__init__()
        self.table = table
        # Lightning's word for a process that is dealt no batch.
        self.allow_zero_length_dataloader_with_multiple_devices = True
        lengths = [len(ids) for ids in table.ids]
        self.batches = plan_batches(lengths, check_budget(batch_tokens))
        self._costs = [sum(lengths[row] for row in batch) for batch in self.batches]

    def rows_of_ranks(self, ranks: int) -> list[NDArray[np.int64]]:
        """Rows that each process encodes, in the order of its batches."""
        return [
            np.array([row for i in share for row in self.batches[i]], dtype=np.int64)
            for share in deal(self._costs, ranks)
        ]

    def test_dataloader(self) -> DataLoader[Batch]:
        """This process's batches in the planned order, in pinned memory where they go to a GPU."""
        rank, ranks = place()
        return DataLoader(
            _Batches(self.table, self.batches),
            batch_size=None,
            sampler=deal(self._costs, ranks)[rank],
            pin_memory=torch.cuda.is_available(),
        )
