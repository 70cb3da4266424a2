"""Callbacks that bring what the processes of a pass have found to the process that started them.

The first process of the pass leaves it in a file; what Lightning itself hands back has to be small.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import pytorch_lightning as pl
from numpy.typing import NDArray

from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.streaming import CorpusStream
from whitepool.module import SentenceEncoder
from whitepool.moments import Moments
from whitepool.moments_file import load_moments, save_moments
from whitepool.ranks.launch import processes
from whitepool.ranks.lending import see_to_results
from whitepool.ranks.place import end_at_once, gather_rows, merge_moments, sum_of


class GatherVectors(pl.Callback):
    """Leaves the vectors of a test pass, (row, dim), in a file of numpy's.

    Args:
        path: the file; absent after a pass without a sentence.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Be ready to end when another process has failed."""
        end_at_once()

    def on_test_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Send the vectors of this process, or collect those of all."""
        assert isinstance(pl_module, SentenceEncoder)
        assert isinstance(trainer.datamodule, SentenceDataModule)
        shares = trainer.datamodule.rows_of_ranks(trainer.world_size)
        vectors = gather_rows(pl_module.vectors, shares, pl_module.device)
        if trainer.is_global_zero:
            np.save(self.path, vectors)


def encode_rows(
    trainer: pl.Trainer, encoder: SentenceEncoder, data: SentenceDataModule, folder: Path
) -> NDArray[np.float32]:
    """Vectors of a table, (row, dim), from one test pass on as many processes as the trainer has.

    Args:
        trainer: from ``trainer=``.
        encoder: model and head.
        data: the table in batches.
        folder: of the run, which holds the vectors on their way from another process.

    Raises:
        UserError: a vector is not finite, or see `whitepool.ranks.launch.processes`.
    """
    if trainer.strategy.launcher is None:
        with processes(trainer):
            trainer.test(encoder, datamodule=data, verbose=False)
        return encoder.vectors
    with TemporaryDirectory(prefix=".pass-", dir=folder) as scratch:
        path = Path(scratch) / "vectors.npy"
        trainer.callbacks.append(GatherVectors(path))
        with processes(trainer):
            trainer.test(encoder, datamodule=data, verbose=False)
        see_to_results(trainer)
        if path.exists():
            vectors: NDArray[np.float32] = np.load(path, allow_pickle=False)
            return vectors
    return np.zeros((len(data.table), 0), dtype=np.float32)


class HasMoments(Protocol):
    """What has accumulated moments by the end of a predict pass; None where it saw nothing."""

    moments: Moments | None


class GatherMoments(pl.Callback):
    """Leaves the moments of a predict pass over a corpus in a file, and what was read beside them.

    Args:
        path: the file; absent after a pass without a text.
        source: the callback that accumulates them.
        stream: the corpus.
    """

    def __init__(self, path: Path, source: HasMoments, stream: CorpusStream) -> None:
        self.path, self.source, self.stream = path, source, stream

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Be ready to end when another process has failed."""
        end_at_once()

    def on_predict_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Send the moments of this process on, or merge those of others."""
        moments = merge_moments(self.source.moments, pl_module.device)
        truncated = sum_of(self.stream.truncated, pl_module.device)
        if trainer.is_global_zero and moments is not None:
            description = {**self.stream.reading.describe(), "truncated": truncated}
            save_moments(self.path, moments, {"description": description})


def gather_moments(
    trainer: pl.Trainer,
    encoder: SentenceEncoder,
    stream: CorpusStream,
    source: HasMoments,
    folder: Path,
) -> tuple[Moments | None, dict[str, Any]]:
    """Moments of a corpus from one predict pass on several processes, and what was read.

    Args:
        trainer: from ``trainer=ddp`` or ``ddp_cpu``, with ``source`` among its callbacks.
        encoder: model and head.
        stream: the corpus.
        source: accumulates the moments of a process.
        folder: of the run, which holds the moments on their way from another process.

    Raises:
        UserError: what a process raised, or see `whitepool.ranks.launch.processes`.
    """
    with TemporaryDirectory(prefix=".pass-", dir=folder) as scratch:
        path = Path(scratch) / "moments.safetensors"
        trainer.callbacks.append(GatherMoments(path, source, stream))
        with processes(trainer):
            trainer.predict(encoder, dataloaders=stream.loader(), return_predictions=False)
        see_to_results(trainer)
        if not path.exists():
            return None, {}
        moments, content = load_moments(path)
        return moments, content["description"]
