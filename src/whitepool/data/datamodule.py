"""Batches of unique sentences for Lightning."""

from __future__ import annotations

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset

from whitepool.batches import BATCH_TOKENS, check_budget, make_batch, plan_batches
from whitepool.data.table import SentenceTable
from whitepool.states import Batch


class _Batches(Dataset[Batch]):
    def __init__(self, table: SentenceTable, batches: list[list[int]]) -> None:
        self.table, self.batches = table, batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        return make_batch(self.table.ids, self.batches[index])


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
        self.table = table
        lengths = [len(ids) for ids in table.ids]
        self.batches = plan_batches(lengths, check_budget(batch_tokens))

    def test_dataloader(self) -> DataLoader[Batch]:
        """Batches in the planned order, in pinned memory where they go to a GPU."""
        return DataLoader(
            _Batches(self.table, self.batches),
            batch_size=None,
            pin_memory=torch.cuda.is_available(),
        )
