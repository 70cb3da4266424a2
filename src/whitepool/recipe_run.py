"""Recipes in runs: a run that follows one, and the one that a run leaves."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from whitepool.config_groups import replaced
from whitepool.errors import UserError
from whitepool.framing import Frame, is_apart
from whitepool.longtext import cut
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.named import name_of
from whitepool.pooling.spec import describe
from whitepool.precision import model_dtype
from whitepool.recipe import Recipe
from whitepool.recipe_model import describe_model, describe_post, open_model
from whitepool.reuse import fingerprint
from whitepool.schema import plain
from whitepool.tokenizing import Tokenized
from whitepool.versions import versions
from whitepool.whitening import Map, PostProcess

OWN = ("model", "pooling", "whitening", "experiment")
PRECISION = "trainer.precision"


def follow(config: DictConfig, recipe: Recipe) -> DictConfig:
    """The configuration with what the recipe fixes in place of what the groups chose.

    Raises:
        UserError: the command line chooses model, pooling or whitening beside the recipe.
    """
    for override in _overrides():
        if override.lstrip("+~").partition("=")[0].partition(".")[0].partition("@")[0] in OWN:
            raise UserError(
                f"recipe={config.recipe} brings its own model, pooling and whitening: leave "
                f"{override} out, or leave recipe= out."
            )
    frame = Frame(recipe.template, recipe.full_stop)
    post = {"name": "off"} if recipe.post is None else {"name": recipe.post.kind}
    groups = {
        "model": {"max_length": recipe.max_length, **plain(recipe.model)},
        "pooling": {"name": name_of(recipe.head, frame), **plain(recipe.pooling)},
        "whitening": {**post, "fit_on": None, **plain(recipe.post or {})},
    }
    _refuse_interpolation(groups, str(config.recipe))
    return replaced(config, **groups)


def _refuse_interpolation(groups: Mapping[str, Mapping[str, Any]], recipe: str) -> None:
    """A configuration would put the user's environment in place of ``${oc.env:…}``."""
    for group, content in groups.items():
        for key, value in content.items():
            if isinstance(value, str) and ("${" in value or value == "???"):
                raise UserError(
                    f"recipe={recipe} has {value[:80]!r} in {group}.{key}, which a configuration "
                    "would read as more than a text: correct it."
                )


def open_recipe_model(config: DictConfig, recipe: Recipe) -> FrozenPLM:
    """The recipe's model, in its own number type unless the command line asks for another."""
    asked = any(override.partition("=")[0].lstrip("+") == PRECISION for override in _overrides())
    dtype = model_dtype(config.trainer.precision, config.trainer.accelerator) if asked else None
    return open_model(recipe.model, max_length=recipe.max_length, dtype=dtype)


def _overrides() -> list[str]:
    return list(HydraConfig.get().overrides.task) if HydraConfig.initialized() else []


def command_line() -> str | None:
    """The command that runs, as a shell takes it; None outside Hydra."""
    if not HydraConfig.initialized():
        return None
    return shlex.join(["python", f"{HydraConfig.get().job.name}.py", *_overrides()])


def head_identity(recipe: Recipe) -> dict[str, Any]:
    """What vectors depend on of the recipe's head, as plain data."""
    weights = {k: a.numpy() for k, a in recipe.arrays.items() if k == "token_weights"}
    frame = Frame(recipe.template, recipe.full_stop).plain()
    return {"recipe": plain(recipe.pooling), "arrays": fingerprint(weights), **frame}


def tokenize(plm: FrozenPLM, recipe: Recipe, texts: Sequence[str]) -> Tokenized:
    """Token ids of texts as the recipe has them: in its template, without a prompt.

    Raises:
        UserError: a text is too long and the recipe does not cut such texts.
    """
    pieces = cut(
        plm,
        texts,
        max_length=recipe.max_length,
        template=recipe.template,
        full_stop=recipe.full_stop,
        apart=is_apart(recipe.head),
    )
    if any(pieces.truncated) and recipe.long_text != "truncate":
        raise UserError(
            f"{sum(pieces.truncated)} texts are over the recipe's max_length {recipe.max_length}, "
            f"which long_text={recipe.long_text} does not cut and evaluate.py cannot encode in "
            "another way: leave them out of data=, or encode them with whitepool.load."
        )
    return pieces.whole()


def recipe_of(
    config: DictConfig,
    plm: FrozenPLM,
    pooling: Pooling,
    *,
    max_length: int,
    post: PostProcess | None = None,
    fitted: Map | None = None,
    fit: str = "",
    provenance: Mapping[str, str | int | float | bool] | None = None,
    frame: Frame | None = None,
) -> Recipe:
    """The recipe of a run.

    Args:
        config: says where ``plm`` came from, in the group ``model``.
        plm: the frozen model.
        pooling: the head.
        max_length: tokens per text.
        post: what was fitted after pooling; None for nothing.
        fitted: its map.
        fit: which vectors it was fitted on, in words.
        provenance: plain values to keep with it.
        frame: what is put around texts; None for nothing.

    Raises:
        UserError: a head or step that a recipe has no name for.
    """
    source = {key: config.model.get(key) for key in ("id", "revision", "path", "asset")}
    spec, token_weights = describe(pooling)
    arrays = {} if token_weights is None else {"token_weights": token_weights}
    frame = frame or Frame()
    described = None
    if post is not None and fitted is not None:
        described = describe_post(post, fitted, fit)
        arrays |= fitted.arrays()
    return Recipe(
        model=describe_model(plm, **source),
        pooling=spec,
        max_length=max_length,
        post=described,
        template=frame.template,
        full_stop=frame.full_stop,
        provenance=dict(provenance or {}),
        versions=versions(),
        arrays=arrays,
    )
