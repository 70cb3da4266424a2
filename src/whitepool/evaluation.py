"""From a composed configuration to a folder of results: one recipe, or a grid of them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger

from whitepool import pictures, report, scores, terminal
from whitepool.analysis.run import Grids, analyse
from whitepool.config_kinds import check_kinds
from whitepool.corpus_pass import fit_on_corpus
from whitepool.encoding import encode, open_store
from whitepool.errors import UserError
from whitepool.figures import files
from whitepool.fit import Fit, provenance_of
from whitepool.head_choice import find_head
from whitepool.inputs import Inputs, choose, prepare, task_lengths
from whitepool.module import SentenceEncoder
from whitepool.predictions import save_predictions
from whitepool.published.match import find, ran
from whitepool.quiet import quiet_libraries
from whitepool.ranks.lending import lend
from whitepool.ranks.settings import check_passes, is_lent
from whitepool.recipe import Recipe, Scalar
from whitepool.recipe_run import command_line, follow, recipe_of
from whitepool.recipe_scores import MADE, score_values, with_scores
from whitepool.reuse import Store
from whitepool.sweeps.job import refuse_resume
from whitepool.tracking import tracked
from whitepool.trainers import make_trainer
from whitepool.whitening import Affine, Map, save_maps
from whitepool.whitening_choice import is_auto, settle, settled

log = logging.getLogger(__name__)


def evaluate(config: DictConfig) -> float:
    """Do what the configuration asks for and write the results; returns the headline score.

    Args:
        config: what `conf/evaluate.yaml` composes to.

    Returns:
        Spearman x100 of the recipe, see `score_recipe`, or of the best of a grid, see `analyse`.
    """
    check_kinds(config)
    quiet_libraries()
    refuse_resume(config)
    for name, least in (("bootstrap", 0), ("seed", 0), ("batch_tokens", 1)):
        if isinstance(config[name], bool) or not isinstance(config[name], int):
            raise UserError(f"{name} is {config[name]!r}: give a whole number.")
        if config[name] < least:
            raise UserError(f"{name} is {config[name]}: give at least {least}.")
    files.wanted(config)
    check_passes(config)
    return lend(config, _evaluate) if is_lent(config) else _evaluate(config)


def _evaluate(config: DictConfig) -> float:
    store = open_store(config.cache)
    recipe = Recipe.load(config.recipe) if config.recipe is not None else None
    config = config if recipe is None else follow(config, recipe)
    output = Path(config.output_dir)
    output.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, output / "config.yaml", resolve=True)
    with tracked(config, output) as logger:
        config, plm, head = find_head(config, recipe, folder=output, logger=logger)
        auto = is_auto(config)
        config = settled(config, whiten=True) if auto else config
        choice = choose(config, recipe)
        grids = Grids(config.analysis, choice)
        if grids and auto:
            raise UserError(
                f"analysis={config.analysis.name} shows raw and whitened scores beside each other: "
                "give whitening=pca or off in place of auto."
            )
        inputs = prepare(config, choice, recipe, grids.select, plm)
        if grids:
            trainer = make_trainer(config, logger, output)
            return analyse(config, grids, inputs, trainer, logger, output)
        chosen = head.provenance() if head else {}
        if auto:
            config, inputs, found = settle(config, inputs, folder=output)
            chosen |= found.provenance()
        return score_recipe(config, inputs, recipe, store, logger, output, chosen)


def score_recipe(
    config: DictConfig,
    inputs: Inputs,
    recipe: Recipe | None,
    store: Store | None,
    logger: Logger | Literal[False],
    output: Path,
    chosen: Mapping[str, Scalar],
) -> float:
    """Encode, whiten and score one recipe, the loaded ``recipe`` where there is one.

    ``chosen`` is kept with the results: what was chosen in place of an ``auto``, and by what.

    Returns:
        Spearman x100 under the protocol's aggregate: post-processed unless whitening is off, the
        mean over tasks if there are several.
    """
    protocol, plm, table = inputs.protocol, inputs.plm, inputs.table
    corpus_fit = None
    if inputs.post and inputs.corpus and protocol.fit_on == "corpus":
        encoder = SentenceEncoder(plm, inputs.pooling)
        corpus_fit = fit_on_corpus(
            config,
            encoder,
            inputs.post,
            inputs.corpus,
            inputs.max_length,
            folder=output,
            logger=logger,
            frame=inputs.frame,
        )
    on_table = replace(inputs, post=None) if corpus_fit else inputs
    encoded = encode(config, on_table, store, logger=logger, folder=output)
    maps = inputs.fixed_maps() or encoded.maps
    if corpus_fit:
        maps = {"corpus": corpus_fit.fitted}
    result = scores.score_table(
        table, encoded.vectors, maps, protocol, samples=config.bootstrap, seed=config.seed
    )
    whole_corpus = inputs.corpus if corpus_fit and inputs.corpus else None
    done = ran(
        plm.name,
        plm.depth,
        inputs.pooling,
        inputs.post,
        protocol,
        table,
        lengths=task_lengths(config, inputs),
        corpus=whole_corpus.name if whole_corpus and not whole_corpus.limit else "",
    )
    run = report.Run(
        config=OmegaConf.to_container(config, resolve=True),
        protocol=protocol,
        model={"name": plm.name, **plm.provenance},
        max_length=inputs.max_length,
        table=table,
        scores=result,
        published=find(done) if inputs.frame.is_plain else [],
        maps=maps,
        encode_seconds=encoded.seconds,
        device=encoded.device,
        reused=encoded.reused,
        vectors_key=encoded.key,
        corpus_fit=corpus_fit,
        token_corpus=inputs.token_corpus,
        recipe_fit=None if recipe is None or recipe.post is None else recipe.post.fit,
        chosen=chosen,
    )
    if maps is not None and recipe is None:
        affine = {name: m for name, m in maps.items() if isinstance(m, Affine)}
        if affine:  # a flow is kept in its recipe alone
            save_maps(output / "whitening.safetensors", affine, run.provenance())
    values = score_values(result, protocol, "raw" if maps is None else "post")
    if recipe is None:
        leave_recipe(output / "recipe", config, inputs, maps, corpus_fit, {**chosen, **values})
    else:
        with_scores(recipe, values, command_line()).save(output / "recipe")
    save_predictions(output, table.scored, result.predictions, protocol.aggregate)
    run.write(output)
    terminal.show(run, output)
    run.log(logger, output)
    pictures.of_run(config, inputs, encoded.vectors, maps, result, folder=output, logger=logger)
    return run.headline.value


def leave_recipe(
    folder: Path,
    config: DictConfig,
    inputs: Inputs,
    maps: Mapping[str, Map] | None,
    corpus_fit: Fit | None,
    values: Mapping[str, Scalar],
) -> None:
    """Write the recipe of a run, where it is one: a single map or none, parts that have a name."""
    if maps is not None and len(maps) > 1:
        log.info("No recipe is left: there are %d maps, one for each fit set.", len(maps))
        return
    name, fitted = next(iter(maps.items())) if maps else ("", None)
    counted = [inputs.token_corpus] if inputs.token_corpus else []
    corpora = corpus_fit.corpora if corpus_fit else counted
    command = command_line()
    made = {MADE: command} if command else {}
    try:
        recipe = recipe_of(
            config,
            inputs.plm,
            inputs.pooling,
            max_length=inputs.max_length,
            post=inputs.post,
            fitted=fitted,
            fit=corpus_fit.words
            if corpus_fit
            else f"{name}: {inputs.protocol.describe_fit(inputs.table)}",
            provenance={**provenance_of(corpora), **made, **values},
            frame=inputs.frame,
        )
    except UserError as error:
        log.info("No recipe is left: %s", error)
        return
    recipe.save(folder)
