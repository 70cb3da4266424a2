"""How far a Lightning pass is: sentences done, sentences a second, time left."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytorch_lightning as pl

from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.streaming import WeightedBatch
from whitepool.progress import Bar, progress_bar
from whitepool.states import Batch


class SentenceBar(pl.Callback):
    """A bar on stderr, in a terminal and for passes of more than two seconds.

    Of several processes the first has one, which counts its own share. It is to be the first of a
    trainer's callbacks, so that it is gone before others tell of what they found.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._bar: Bar | None = None

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin, with the number of this process's sentences as the total."""
        assert isinstance(trainer.datamodule, SentenceDataModule)
        shares = trainer.datamodule.rows_of_ranks(trainer.world_size)
        self._begin(trainer, len(shares[trainer.global_rank]))

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin, without a total: a stream has none."""
        self._begin(trainer, None)

    def on_test_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: Batch, *_: int
    ) -> None:
        """Count the sentences of a batch."""
        if self._bar is not None:
            self._bar.advance(len(batch.lengths))

    def on_predict_batch_end(
        self, trainer: pl.Trainer, pl_module: Any, outputs: Any, batch: WeightedBatch, *_: int
    ) -> None:
        """Count the sentences of a batch."""
        if self._bar is not None:
            self._bar.advance(len(batch.batch.lengths))

    def on_test_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Clear the bar away."""
        self._stack.close()

    def on_predict_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Clear the bar away."""
        self._stack.close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Clear the bar away."""
        self._stack.close()

    def _begin(self, trainer: pl.Trainer, total: int | None) -> None:
        if trainer.is_global_zero:
            self._bar = self._stack.enter_context(progress_bar(None, total))
