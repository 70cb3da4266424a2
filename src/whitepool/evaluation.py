"""One evaluation, from a composed configuration to a folder of results."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

import pytorch_lightning as pl
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from whitepool import report, scores
from whitepool.callbacks import WhiteningCallback
from whitepool.corpus_pass import fit_on_corpus, progress
from whitepool.data.datamodule import SentenceDataModule
from whitepool.errors import UserError
from whitepool.fit import Fit, provenance_of
from whitepool.inputs import Inputs, prepare, quiet_libraries
from whitepool.module import SentenceEncoder
from whitepool.recipe import Recipe
from whitepool.recipe_run import follow, recipe_of
from whitepool.tracking import tracked
from whitepool.whitening import Affine, save_maps

log = logging.getLogger(__name__)


def evaluate(config: DictConfig) -> float:
    """Encode, whiten, score, and write the results; returns the headline score.

    Args:
        config: what `conf/evaluate.yaml` composes to.

    Returns:
        Spearman x100 under the protocol's aggregate: post-processed unless whitening is off, the
        mean over tasks if there are several.
    """
    quiet_libraries()
    recipe = Recipe.load(config.recipe) if config.recipe is not None else None
    config = config if recipe is None else follow(config, recipe)
    output = Path(config.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, output / "config.yaml", resolve=True)
    with tracked(config, output) as logger:
        inputs = prepare(config, recipe)
        protocol, plm, table = inputs.protocol, inputs.plm, inputs.table
        encoder = SentenceEncoder(plm, inputs.pooling)
        data = SentenceDataModule(table, batch_tokens=config.batch_tokens)
        corpus_fit = None
        if inputs.post and inputs.corpus:
            corpus_fit = fit_on_corpus(
                config,
                encoder,
                inputs.post,
                inputs.corpus,
                inputs.max_length,
                folder=output,
                logger=logger,
            )
        whitening = None
        if inputs.post and not inputs.corpus:
            whitening = WhiteningCallback(inputs.post, protocol.fit_on)
        trainer: pl.Trainer = instantiate(
            config.trainer,
            precision="32-true",  # the model is loaded in its own precision, the rest is not cast
            logger=logger,
            callbacks=[*([whitening] if whitening else []), *progress(config.trainer)],
            default_root_dir=output,
        )
        started = time.perf_counter()
        trainer.test(encoder, datamodule=data, verbose=False)
        seconds = time.perf_counter() - started

        maps = whitening.maps if whitening else inputs.fixed_maps()
        if corpus_fit:
            maps = {"corpus": corpus_fit.affine}
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
            corpus_fit=corpus_fit,
            token_corpus=inputs.token_corpus,
            recipe_fit=None if recipe is None or recipe.post is None else recipe.post.fit,
        )
        if maps is not None and inputs.post is not None:
            save_maps(output / "whitening.safetensors", maps, run.provenance())
        if recipe is None:
            leave_recipe(output / "recipe", config, inputs, maps, corpus_fit)
        run.write(output)
        if logger:
            logger.log_metrics(run.metrics())
            logger.save()
        run.log_table(logger)
        report.show(run, output)
        return run.headline.value


def leave_recipe(
    folder: Path,
    config: DictConfig,
    inputs: Inputs,
    maps: Mapping[str, Affine] | None,
    corpus_fit: Fit | None,
) -> None:
    """Write the recipe of a run, where it is one: a single map or none, parts that have a name."""
    if maps is not None and len(maps) > 1:
        log.info("No recipe is left: there are %d maps, one for each fit set.", len(maps))
        return
    name, affine = next(iter(maps.items())) if maps else ("", None)
    counted = [inputs.token_corpus] if inputs.token_corpus else []
    corpora = corpus_fit.corpora if corpus_fit else counted
    try:
        recipe = recipe_of(
            config,
            inputs.plm,
            inputs.pooling,
            max_length=inputs.max_length,
            post=inputs.post,
            affine=affine,
            fit=corpus_fit.words if corpus_fit else f"{name}: {inputs.protocol.describe_fit()}",
            provenance=provenance_of(corpora),
        )
    except UserError as error:
        log.info("No recipe is left: %s", error)
        return
    recipe.save(folder)
