"""Lightning's trainers, as ``trainer=`` chose them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytorch_lightning as pl
from hydra.utils import instantiate
from omegaconf import DictConfig
from pytorch_lightning.callbacks import Checkpoint, RichProgressBar
from pytorch_lightning.loggers import Logger
from rich.console import Console

from whitepool.callbacks import WhiteningCallback
from whitepool.ranks.settings import is_several
from whitepool.sentence_bar import SentenceBar


def table_trainer(
    config: DictConfig,
    logger: Logger | Literal[False],
    folder: Path,
    whitening: WhiteningCallback | None,
) -> pl.Trainer:
    """The trainer of a pass over a table, which fits ``whitening`` while it goes.

    Several processes have no logger, and fit nothing: their vectors are fitted on together.
    """
    if is_several(config):
        return make_trainer(config, False, folder)
    return make_trainer(config, logger, folder, *([whitening] if whitening else []))


def device_of(trainer: pl.Trainer) -> str:
    """Where a pass runs, in words."""
    device = trainer.strategy.root_device
    if trainer.strategy.launcher is None:
        return str(device)
    return f"{device.type}, {trainer.world_size} processes"


def make_trainer(
    config: DictConfig,
    logger: Logger | Literal[False],
    folder: Path,
    *callbacks: pl.Callback,
    epochs: int | None = None,
) -> pl.Trainer:
    """The trainer that ``trainer=`` chose, with a progress bar in terminals unless that is off.

    For training ``epochs`` says for how many at most; without it nothing is trained.
    """
    wanted = config.trainer.enable_progress_bar
    bars: list[pl.Callback] = [SentenceBar()] if wanted and not epochs else []
    if epochs and (wanted := wanted and Console().is_terminal):
        bars = [RichProgressBar(leave=False)]
    training = {
        "enable_progress_bar": wanted,
        "max_epochs": epochs,
        "num_sanity_val_steps": 0,
        "log_every_n_steps": 1,
        "enable_checkpointing": any(isinstance(c, Checkpoint) for c in callbacks),
    }
    trainer: pl.Trainer = instantiate(
        config.trainer,
        precision="32-true",  # the model is loaded in its own precision, the rest is not cast
        logger=logger,
        callbacks=[*bars, *callbacks],
        default_root_dir=folder,
        **(training if epochs else {"enable_progress_bar": False}),
    )
    return trainer


def flow_trainer(
    config: DictConfig,
    logger: Logger | Literal[False],
    folder: Path,
    callbacks: Sequence[pl.Callback],
    epochs: int,
) -> pl.Trainer:
    """`make_trainer` in the form that `whitepool.flow.fit.fit_flow` asks for."""
    return make_trainer(config, logger, folder, *callbacks, epochs=epochs)
