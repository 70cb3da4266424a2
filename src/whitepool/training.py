"""One fit, from a composed configuration to a recipe folder: `train.py` in order."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger
from torch import Tensor

from whitepool import fit_report, wandb_names
from whitepool.config_kinds import check_kinds
from whitepool.corpus_fit import fit_step
from whitepool.data.corpus import Corpus
from whitepool.data.corpus_config import load_corpus
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.export.layout import check_model
from whitepool.export.writing import check_export
from whitepool.figures import files
from whitepool.fit import Fit, provenance_of
from whitepool.flow.step import of_vectors
from whitepool.from_config import frame_of, load_model, max_length, options
from whitepool.head_choice import HeadChoice, find_head
from whitepool.linears import keep_few_kernels
from whitepool.module import SentenceEncoder
from whitepool.moments import Moments
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.binding import bind
from whitepool.pooling.estimated import is_estimated
from whitepool.pooling.spec import Debiased, Linear, Max, PoolingSpec, describe
from whitepool.protocol import EvalProtocol
from whitepool.quiet import quiet_libraries
from whitepool.ranks.lending import lend
from whitepool.ranks.settings import check_passes, is_lent
from whitepool.recipe import Recipe
from whitepool.recipe_folder import check_target
from whitepool.recipe_run import command_line, recipe_of
from whitepool.recipe_scores import MADE
from whitepool.schema import plain
from whitepool.states import resolve_layer
from whitepool.sweeps.job import refuse_resume
from whitepool.token_counts import with_corpus
from whitepool.tracking import tracked
from whitepool.wandb_log import WandbRun
from whitepool.whitening import PostProcess
from whitepool.whitening_choice import choose_whitening, is_auto, settled
from whitepool.word_moments import check_words, of_words

log = logging.getLogger(__name__)


def train(config: DictConfig) -> float:
    """Fit on a corpus, and keep the recipe and its moments.

    Args:
        config: what `conf/train.yaml` composes to.

    Returns:
        How many texts something was fitted on: the map, those of ``resume_from`` included, or with
        ``whitening=off`` the token weights. 0 where neither is fitted, as with a head that is
        chosen on pairs, or with nothing but a model and a head.

    Raises:
        UserError: something cannot be loaded, the parts do not go together, or nothing to fit on.
    """
    check_passes(config)
    return lend(config, _train) if is_lent(config) else _train(config)


def _train(config: DictConfig) -> float:
    folder = _begin(config)
    target, exported = _targets(config, folder)
    resume_from = (
        [config.resume_from] if isinstance(config.resume_from, str) else config.resume_from
    )
    resumed = [Path(path).expanduser() for path in resume_from or ()]
    with tracked(config, folder) as logger:
        post = _post_process(config)
        corpus = load_corpus(config.corpus)
        protocol: EvalProtocol = instantiate(config.protocol, _convert_="all")
        load = partial(_model, exported=exported)
        config, plm, choice = find_head(
            config, corpus=corpus, load=load, folder=folder, logger=logger
        )
        chosen = choice.provenance() if choice else {}
        pooling: Pooling = instantiate(options(config.pooling, "pooling"), _convert_="all")
        _check_sources(config, post, pooling, corpus, resumed, choice)
        frame, plm = frame_of(config, pooling), plm or load(config)
        length = max_length(config, protocol, plm)
        pooling = bind(pooling, plm, frame)
        pooling, counted = with_corpus(pooling, corpus, plm, length, config.window, frame)
        encoder = SentenceEncoder(plm, pooling)
        if post is not None and is_auto(config):
            found = choose_whitening(
                config, encoder, post, None, length, frame=frame, folder=folder, corpus=corpus
            )
            config, post = settled(config, whiten=found.whiten), post if found.whiten else None
            chosen |= found.provenance()
        spec, token_weights = describe(pooling)
        vectors = identity(plm, spec, token_weights, length, words=of_words(post)) | frame.plain()

        fit = moments = None
        if post is not None:
            moments, fit = fit_step(
                config, encoder, post, corpus, resumed, vectors, length, folder, logger, frame
            )
        recipe = recipe_of(
            config,
            plm,
            pooling,
            max_length=length,
            post=post,
            fitted=fit.fitted if fit else None,
            fit=fit.words if fit else "",
            provenance={
                **provenance_of(fit.corpora if fit else [counted] if counted else []),
                **chosen,
                **({MADE: command} if (command := command_line()) else {}),
            },
            frame=frame,
        )
        recipe.save(target)
        fit_report.write(recipe, fit, folder)
        _log(recipe, fit, config.pooling.name, target, logger)
        fit_report.show(recipe, fit, target, folder)
        if exported is not None:
            Encoder.from_recipe(recipe, plm=plm).export(exported, overwrite=config.overwrite)
        _draw(config, recipe.model.name, moments, choice, folder, logger)
    if fit is not None:
        return fit.spectrum.count
    return float(counted["texts"]) if counted is not None else 0.0


def _targets(config: DictConfig, folder: Path) -> tuple[Path, Path | None]:
    """Where the recipe goes, and the export if there is to be one."""
    target = Path(config.output or folder / "recipe").expanduser()
    check_target(target)
    if config.export is None:
        return target, None
    return target, check_export(Path(config.export), overwrite=config.overwrite)


def _model(config: DictConfig, exported: Path | None) -> FrozenPLM:
    """The model, one that an export can hold if there is to be one."""
    plm = load_model(config)
    if exported is not None:
        check_model(plm)
    return plm


def _begin(config: DictConfig) -> Path:
    """The run folder, with the configuration in it."""
    check_kinds(config)
    quiet_libraries()
    refuse_resume(config)
    keep_few_kernels()
    files.wanted(config)
    folder = Path(config.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    OmegaConf.save(config, folder / "config.yaml", resolve=True)
    return folder


def _log(
    recipe: Recipe, fit: Fit | None, pooling: str, target: Path, logger: Logger | Literal[False]
) -> None:
    """Log the spectrum, and to W&B the recipe too."""
    if logger and fit:
        logger.log_metrics(fit.metrics())
        logger.save()
    if isinstance(logger, WandbRun):
        name = wandb_names.artifact("recipe", recipe.model.name, pooling)
        logger.keep("recipe", name, [target], recipe.provenance)


def _draw(
    config: DictConfig,
    model: str,
    moments: Moments | None,
    choice: HeadChoice | None,
    folder: Path,
    logger: Logger | Literal[False],
) -> None:
    """Leave figures of the spectrum, and of the heads that were chosen from."""

    def drawings() -> files.Drawings:
        from whitepool.figures import of_grids, of_run
        from whitepool.figures.spectrum import spectrum

        head, found = config.pooling.name, {}
        if moments is not None:
            of = {"corpus": of_run.of_moments(moments)}
            found["spectrum"] = lambda: spectrum(of, f"{model}, {head}")
        if choice is not None:
            task = choice.dev_set.split()[0]
            found |= of_grids.drawings(
                choice.tables, task=task, aggregate="all", model=model, pooling=head
            )
        return found

    if files.wanted(config):
        files.save(drawings, folder, logger)


def _post_process(config: DictConfig) -> PostProcess | None:
    """What is fitted; None for ``whitening=off``."""
    if config.whitening.fit_on not in (None, "corpus"):
        raise UserError(
            f"train.py fits on corpus= and takes no whitening.fit_on={config.whitening.fit_on}: "
            "leave it out, or fit on the sentences of data= with corpus=pairs."
        )
    step = options(config.whitening, "whitening")
    return instantiate(step, _convert_="all") if "_target_" in step else None


def _check_sources(
    config: DictConfig,
    post: PostProcess | None,
    pooling: Pooling,
    corpus: Corpus | None,
    resumed: Sequence[Path],
    choice: HeadChoice | None,
) -> None:
    """See that there is something to fit, and something to fit it on."""
    check_words(post, pooling)
    if post is not None and corpus is None and not resumed:
        raise UserError(
            f"whitening={config.whitening.name} has nothing to be fitted on: choose a corpus, as "
            "corpus=text corpus.path=FILE, or moments, as resume_from=FILE."
        )
    if of_vectors(post) and (corpus is None or len(resumed) > 1):
        raise UserError(
            "whitening=flow is trained on vectors, which are made anew: give one corpus, and as "
            "resume_from= nothing or the flow.ckpt of a run that was broken off."
        )
    if is_estimated(pooling) and resumed and not of_vectors(post):
        raise UserError(
            f"pooling={config.pooling.name} has weights of its own for each corpus, so its moments "
            "do not add up: leave resume_from= out, and give all texts as one corpus."
        )
    used = is_estimated(pooling) or (choice is not None and choice.unlabelled)
    if post is None and (resumed or (corpus is not None and not used)):
        what = "resume_from=" if resumed else f"corpus={config.corpus.name}"
        raise UserError(f"{what} is of no use with whitening=off: leave one of them out.")


def identity(
    plm: FrozenPLM,
    spec: PoolingSpec,
    token_weights: Tensor | None,
    length: int,
    *,
    words: bool = False,
) -> dict[str, Any]:
    """What the vectors are: plain values that are equal where vectors may be counted together.

    ``words`` says that they are those of words, and not of texts.
    """
    found = plm.provenance
    content = plain(spec)
    if isinstance(spec, Linear | Max | Debiased):  # -1 and 12 may be the same layer
        content["layers"] = [resolve_layer(layer, plm.depth) for layer in spec.layers]
    by_weights = {"sha256": found["sha256"]}
    by_name = {"id": found["id"], "revision": found["revision"]}
    return {
        "model": by_weights if found["sha256"] else by_name,
        "dtype": found["dtype"],
        "pooling": content,
        "token_weights": None if token_weights is None else digest(token_weights),
        "max_length": length,
        **({"of": "words"} if words else {}),
    }


def digest(array: Tensor) -> str:
    """Hexadecimal sha256 of an array's float64 values."""
    return hashlib.sha256(array.double().cpu().numpy().tobytes()).hexdigest()
