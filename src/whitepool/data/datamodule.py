"""Batches of unique sentences for Lightning."""

from __future__ import annotations

from collections.abc import Sequence

import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset

from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.states import Batch, pad


def plan_batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Rows in batches of similar length, longest first, blank rows left out.

    Args:
        lengths: tokens of each row.
        batch_tokens: most tokens of a batch, padding included; a row longer than that is a batch
            of its own.
    """
    order = sorted((row for row, n in enumerate(lengths) if n), key=lambda row: -lengths[row])
    batches: list[list[int]] = []
    for row in order:
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= batch_tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


class _Batches(Dataset[Batch]):
    def __init__(self, table: SentenceTable, batches: list[list[int]], pad_id: int) -> None:
        self.table, self.batches, self.pad_id = table, batches, pad_id

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Batch:
        rows = self.batches[index]
        return Batch(torch.tensor(rows), pad([self.table.ids[r] for r in rows], self.pad_id))


class SentenceDataModule(pl.LightningDataModule):
    """One loader over the unique sentences of a table.

    Args:
        table: the sentences.
        pad_id: id that fills up short rows.
        batch_tokens: most tokens of a batch, padding included.

    Raises:
        UserError: batch_tokens is not positive.
    """

    def __init__(self, table: SentenceTable, *, pad_id: int, batch_tokens: int = 4096) -> None:
        super().__init__()
        if batch_tokens < 1:
            raise UserError(f"batch_tokens is {batch_tokens}: give at least 1.")
        self.table = table
        self.pad_id = pad_id
        self.batches = plan_batches([len(ids) for ids in table.ids], batch_tokens)

    def test_dataloader(self) -> DataLoader[Batch]:
        """Batches in the planned order."""
        return DataLoader(_Batches(self.table, self.batches, self.pad_id), batch_size=None)
