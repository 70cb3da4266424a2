"""The encoder that a configuration chooses, and what it is, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig

from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.from_config import frame_of, options
from whitepool.plm import FrozenPLM
from whitepool.pooling.estimated import is_estimated
from whitepool.precision import model_dtype
from whitepool.recipe import ModelSpec, Recipe
from whitepool.recipe_model import describe_model
from whitepool.reuse import digest, fingerprint
from whitepool.schema import plain

PRECISION = "trainer.precision"
OF_RECIPES = ("model", "pooling")


def open_trainer(config: DictConfig) -> pl.Trainer:
    """What says where the model runs, and starts processes where there are several."""
    trainer: pl.Trainer = instantiate(
        config.trainer,
        precision="32-true",  # the model is loaded in its own precision
        logger=False,
        default_root_dir=Path(config.output_dir),
    )
    return trainer


def open_encoder(config: DictConfig, device: torch.device) -> tuple[Encoder, dict[str, Any]]:
    """The encoder of ``recipe=``, or of ``model=`` and ``pooling=``; and its identity.

    Args:
        config: composed from `conf/encode.yaml`.
        device: where it runs.

    Raises:
        UserError: it cannot be loaded, or the settings do not go together.
    """
    if config.whitening.name != "off":
        raise UserError(
            f"whitening={config.whitening.name} has to be fitted before: fit it with "
            "whitepool train output=FOLDER, then encode with recipe=FOLDER."
        )
    given = _overridden()
    asked = config.recipe is None or PRECISION in given
    dtype = model_dtype(config.trainer.precision, config.trainer.accelerator) if asked else None
    if config.recipe is None:
        return _of_groups(config, device, dtype)
    for name in given:
        if name.partition(".")[0] in OF_RECIPES:
            raise UserError(
                f"recipe={config.recipe} brings its own model and pooling: leave {name}= out, or "
                "leave recipe= out."
            )
    recipe = Recipe.load(config.recipe)
    encoder = Encoder.from_recipe(recipe, dtype=dtype, device=device)
    content = plain(recipe)
    kept = ("pooling", "max_length", "post", "prompts", "template", "long_text")
    arrays = {name: array.numpy() for name, array in recipe.arrays.items()}
    return encoder, {
        **_identity(encoder.pooled.plm),
        **{name: content.get(name) for name in kept},
        **({"full_stop": True} if recipe.full_stop else {}),
        "arrays": fingerprint(arrays),
    }


def _of_groups(
    config: DictConfig, device: torch.device, dtype: str | None
) -> tuple[Encoder, dict[str, Any]]:
    head = options(config.pooling, "pooling")
    pooling = instantiate(head, _convert_="all")
    if is_estimated(pooling):
        raise UserError(
            f"pooling={config.pooling.name} weighs tokens by a corpus, which has to be counted "
            "before: count it with whitepool train output=FOLDER, then encode with recipe=FOLDER."
        )
    arguments = {str(key): value for key, value in config.model.items() if key != "ditto"}
    plm = FrozenPLM.from_pretrained(dtype=dtype or "float32", **arguments)
    source = {key: arguments[key] for key in ("id", "revision", "path", "asset")}
    described: ModelSpec = describe_model(plm, **source)
    frame = frame_of(config, pooling)
    encoder = Encoder(
        plm.to(device),
        pooling,
        model=described,
        template=frame.template,
        full_stop=frame.full_stop,
    )
    return encoder, {
        **_identity(plm),
        "pooling": head,
        "max_length": encoder.max_length,
        **frame.plain(),
    }


def _identity(plm: FrozenPLM) -> dict[str, Any]:
    """Which model, by its weights and configuration where they can be told, not by its place."""
    found = plm.provenance
    source = ("sha256",) if found["sha256"] else ("id", "revision")
    settings = json.loads(plm.model.config.to_json_string(use_diff=False))
    for name in ("_name_or_path", "transformers_version"):
        settings.pop(name, None)
    return {
        "model": {key: found[key] for key in (*source, "format", "dtype")},
        "model_config": digest(settings),
        "device": plm.device.type,
    }


def _overridden() -> set[str]:
    """Names that the command line sets."""
    if not HydraConfig.initialized():
        return set()
    overrides = HydraConfig.get().overrides.task
    return {override.lstrip("+~").partition("=")[0].partition("@")[0] for override in overrides}
