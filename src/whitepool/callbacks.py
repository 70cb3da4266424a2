"""Lightning callbacks: whitening fitted during the pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor

from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.table import FitOn
from whitepool.errors import UserError
from whitepool.moments import Moments
from whitepool.states import Batch
from whitepool.whitening import Affine, PostProcess


class WhiteningCallback(pl.Callback):
    """Accumulates the moments of each fit set across batches and fits a map at the end.

    Args:
        post: what is fitted.
        fit_on: which sentences make a fit set; each counts as often as it occurs.
        chunk: vectors gathered before the moments are updated, which costs O(dim^2) a time.

    Attributes:
        maps: map of each fit set, after the pass.
    """

    def __init__(self, post: PostProcess, fit_on: FitOn, chunk: int = 2048) -> None:
        self.post = post
        self.fit_on = fit_on
        self.chunk = chunk
        self.maps: dict[str, Affine] = {}

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Count how often each row occurs in each fit set."""
        assert isinstance(trainer.datamodule, SentenceDataModule)
        counts = trainer.datamodule.table.fit_sets(self.fit_on)
        self._weights = {name: torch.from_numpy(count) for name, count in counts.items()}
        self._moments: dict[str, Moments] = {}
        self._waiting: list[tuple[Tensor, Tensor]] = []

    def on_test_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Tensor | Mapping[str, Any] | None,
        batch: Batch,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Take in the vectors of a batch."""
        assert isinstance(outputs, Tensor)
        self._waiting.append((batch.rows.cpu(), outputs))
        if sum(len(rows) for rows, _ in self._waiting) >= self.chunk:
            self._flush()

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Fit a map on each fit set.

        Raises:
            UserError: a fit set cannot be fitted on; the message names it.
        """
        self._flush()
        for name in self._weights:
            try:
                if name not in self._moments:
                    raise UserError("no sentence of it has any text.")
                self.maps[name] = self.post.fit(self._moments[name], name)
            except UserError as error:
                raise UserError(f"fit set {name}: {error}") from error

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = torch.cat([rows for rows, _ in self._waiting])
        vectors = torch.cat([vectors for _, vectors in self._waiting])
        if vectors.device.type == "mps":  # has no float64
            vectors = vectors.cpu()
        self._waiting = []
        for name, weights in self._weights.items():
            weight = weights[rows]
            used = weight > 0
            if used.any():
                moments = self._moments.setdefault(name, Moments(vectors.shape[1], vectors.device))
                moments.update(vectors[used.to(vectors.device)], weight[used])
