"""From a composed configuration to a folder of results: one recipe, or a grid of them."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Literal

import pytorch_lightning as pl
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import RichProgressBar
from pytorch_lightning.loggers import Logger

from whitepool import report, scores
from whitepool.analysis.run import analyse
from whitepool.callbacks import WhiteningCallback
from whitepool.data.datamodule import SentenceDataModule
from whitepool.inputs import Inputs, prepare, quiet_libraries
from whitepool.module import SentenceEncoder
from whitepool.tracking import tracked
from whitepool.whitening import save_maps

log = logging.getLogger(__name__)


def evaluate(config: DictConfig) -> float:
    """Do what the configuration asks for and write the results; returns the headline score.

    Args:
        config: what `conf/evaluate.yaml` composes to.

    Returns:
        Spearman x100 of the recipe, see `score_recipe`, or of the best of a grid, see `analyse`.
    """
    quiet_libraries()
    output = Path(config.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, output / "config.yaml", resolve=True)
    with tracked(config, output) as logger:
        inputs = prepare(config)
        if config.analysis.grids:
            trainer = make_trainer(config, logger, output)
            return analyse(config, inputs, trainer, logger, output)
        return score_recipe(config, inputs, logger, output)


def score_recipe(
    config: DictConfig, inputs: Inputs, logger: Logger | Literal[False], output: Path
) -> float:
    """Encode, whiten and score one recipe.

    Returns:
        Spearman x100 under the protocol's aggregate: post-processed unless whitening is off, the
        mean over tasks if there are several.
    """
    protocol, plm, table = inputs.protocol, inputs.plm, inputs.table
    encoder = SentenceEncoder(plm, inputs.pooling)
    data = SentenceDataModule(table, pad_id=plm.pad_id, batch_tokens=config.batch_tokens)
    whitening = WhiteningCallback(inputs.post, protocol.fit_on) if inputs.post else None
    trainer = make_trainer(config, logger, output, *([whitening] if whitening else []))
    started = time.perf_counter()
    trainer.test(encoder, datamodule=data, verbose=False)
    seconds = time.perf_counter() - started

    maps = whitening.maps if whitening else None
    by_stage = scores.cosines(table, encoder.vectors, maps, protocol)
    result = scores.score(table.scored, by_stage, samples=config.bootstrap, seed=config.seed)
    run = report.Run(
        config=OmegaConf.to_container(config, resolve=True),
        protocol=protocol,
        model={"name": plm.name, **plm.provenance},
        max_length=inputs.max_length,
        table=table,
        scores=result,
        maps=maps,
        encode_seconds=seconds,
        device=str(encoder.device),
    )
    if maps is not None:
        save_maps(output / "whitening.safetensors", maps, run.provenance())
    run.write(output)
    if logger:
        logger.log_metrics(run.metrics())
        logger.save()
    run.log_table(logger)
    report.show(run, output)
    return run.headline.value


def make_trainer(
    config: DictConfig, logger: Logger | Literal[False], output: Path, *callbacks: pl.Callback
) -> pl.Trainer:
    """The trainer that ``trainer=`` chose, with a progress bar unless that is turned off."""
    bar = [RichProgressBar(leave=False)] if config.trainer.enable_progress_bar else []
    trainer: pl.Trainer = instantiate(
        config.trainer, logger=logger, callbacks=[*callbacks, *bar], default_root_dir=output
    )
    return trainer
