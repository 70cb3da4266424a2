"""The Lightning module: a frozen model and a pooling head, sentences in, vectors out."""

from __future__ import annotations

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.streaming import WeightedBatch
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.similarity import cosine
from whitepool.states import Batch, Tokens
from whitepool.vectors import pool_batch


class SentenceEncoder(pl.LightningModule):
    """Encodes each unique sentence of a table once.

    Args:
        plm: the frozen model.
        pooling: the head.

    Attributes:
        vectors: (row, dim), float32, after a test pass; zero for blank sentences.

    Raises:
        UserError: the head needs what the model has not.
    """

    def __init__(self, plm: FrozenPLM, pooling: Pooling) -> None:
        super().__init__()
        plm.check(pooling.needs)
        self.plm = plm
        self.pooling = pooling
        self.vectors: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)

    def forward(self, tokens: Tokens) -> Tensor:
        """Sentence vectors, (batch, dim), float32."""
        vectors: Tensor = self.pooling(self.plm(tokens, self.pooling.needs))
        return vectors

    def on_test_start(self) -> None:
        """Forget what an earlier pass left."""
        from torchmetrics import SpearmanCorrCoef

        assert isinstance(self.trainer.datamodule, SentenceDataModule)
        self._table: SentenceTable = self.trainer.datamodule.table
        self._encoded = self._table.is_blank
        self._counted = [np.zeros(len(s.pairs), dtype=bool) for s in self._table.scored]
        self._running = SpearmanCorrCoef()
        self._waiting: list[tuple[Tensor, Tensor]] = []
        self.vectors = np.zeros((len(self._table), 0), dtype=np.float32)

    def test_step(self, batch: Batch, index: int) -> Tensor:
        """Encode one batch and keep its vectors, (batch, dim)."""
        vectors = pool_batch(self.plm, self.pooling, batch)
        self._waiting.append((batch.rows, vectors))
        logs = (index + 1) % self.trainer.log_every_n_steps == 0
        if logs or vectors.device.type == "cpu":  # fetching waits for all that a GPU has to do
            self._fetch()
        if logs and self.trainer.world_size == 1:  # else pairs have their sentences apart
            self._log_running()
        return vectors

    def predict_step(self, batch: WeightedBatch, index: int) -> Tensor:
        """Encode one batch of a corpus, (sentence, dim); nothing is kept."""
        return pool_batch(self.plm, self.pooling, batch.batch)

    def on_test_epoch_end(self) -> None:
        """Fetch what is still on the device."""
        self._fetch()

    def _fetch(self) -> None:
        """Bring the vectors of the last batches into memory."""
        if not self._waiting:
            return
        rows = torch.cat([rows for rows, _ in self._waiting]).cpu().numpy()
        values = torch.cat([vectors for _, vectors in self._waiting]).cpu().numpy()
        self._waiting = []
        if not self.vectors.shape[1]:
            self.vectors = np.zeros((len(self._table), values.shape[1]), dtype=np.float32)
        self.vectors[rows] = values
        self._encoded[rows] = True
        if not np.isfinite(values).all():
            row = rows[~np.isfinite(values).all(1)][0]
            raise UserError(
                f"the vector of {self._table.texts[row][:60]!r} is not finite: use "
                "trainer.precision=32-true, or look for a fault in the model's weights."
            )

    def _log_running(self) -> None:
        """Log Spearman over the pairs that are complete so far."""
        for s, counted in zip(self._table.scored, self._counted, strict=True):
            fresh = self._encoded[s.pairs].all(1) & ~counted
            counted[fresh] = True
            if fresh.any():
                values = cosine(self.vectors, s.pairs[fresh])
                gold = torch.from_numpy(s.gold[fresh]).float()
                self._running.update(torch.from_numpy(values).float(), gold)
        if len(self._running.preds) and sum(map(len, self._running.preds)) > 1:
            value = 100 * self._running.compute()
            self.log("running_spearman", value, on_step=True, on_epoch=False, prog_bar=True)
