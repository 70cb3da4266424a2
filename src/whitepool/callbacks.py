"""Lightning callbacks: whitening fitted during the pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.data.datamodule import SentenceDataModule
from whitepool.fitting import CHUNK, FitSets, fit_each, moments_of_kept
from whitepool.moments import Moments
from whitepool.protocol import FitOn
from whitepool.states import Batch
from whitepool.whitening import Affine, PostProcess


class WhiteningCallback(pl.Callback):
    """Accumulates the moments of each fit set across batches and fits a map at the end.

    Args:
        post: what is fitted.
        fit_on: which sentences make a fit set; each counts as often as it occurs.
        chunk: vectors gathered before the moments are updated, which costs O(dim^2) a time.

    Attributes:
        moments: moments of each fit set, after the pass.
        maps: map of each fit set, after the pass.
    """

    def __init__(self, post: PostProcess, fit_on: FitOn, chunk: int = CHUNK) -> None:
        self.post = post
        self.fit_on = fit_on
        self.chunk = chunk
        self.moments: dict[str, Moments] = {}
        self.maps: dict[str, Affine] = {}

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Count how often each row occurs in each fit set."""
        assert isinstance(trainer.datamodule, SentenceDataModule)
        self._counts = trainer.datamodule.table.fit_sets(self.fit_on)
        self._fit_sets = FitSets(self._counts, self.chunk)

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
        self._fit_sets.update(batch.rows, outputs)

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Fit a map on each fit set.

        Raises:
            UserError: a fit set cannot be fitted on; the message names it.
        """
        self.moments = self._fit_sets.finish()
        self.maps = fit_each(self.post, self.moments, self._counts)

    def fit_kept(
        self, data: SentenceDataModule, vectors: NDArray[np.float32], device: torch.device
    ) -> None:
        """Do the same, to the last bit, with vectors (row, dim) that were made elsewhere."""
        self._counts = data.table.fit_sets(self.fit_on)
        self.moments = moments_of_kept(self._counts, data.batches, vectors, device, self.chunk)
        self.maps = fit_each(self.post, self.moments, self._counts)
