"""`whitepool.load`: an encoder from a recipe, a folder, an embedded model or the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from whitepool.assets import MODELS
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.export.layout import exported_recipe, is_export
from whitepool.framing import Frame, check_frame
from whitepool.maps.names import POST_PROCESSES, takes
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.named import frame_of, named
from whitepool.precision import model_dtype
from whitepool.recipe import LONG_TEXT, LongText, Prompts, Recipe
from whitepool.recipe_folder import is_recipe
from whitepool.recipe_model import describe_model
from whitepool.states import Layer
from whitepool.whitening import PostProcess


def load(
    path_or_model: str | Path,
    *,
    pooling: str | Pooling | None = None,
    whitening: str | PostProcess | None = None,
    k: int | None = None,
    layers: Sequence[Layer] | None = None,
    block: int | None = None,
    head: int | None = None,
    max_length: int | None = None,
    dtype: Literal["float32", "bfloat16", "auto"] | None = None,
    device: str | torch.device | None = None,
    prompts: Mapping[str, str] | None = None,
    template: str | None = None,
    full_stop: bool | None = None,
    long_text: LongText | None = None,
    revision: str | None = None,
) -> Encoder:
    """An encoder from a recipe folder, a local model folder, an embedded model or a hub id.

    Args:
        path_or_model: looked at in this order. A recipe brings all its settings with it, so that
            only dtype and device may be given beside it. An export counts as its recipe.
        pooling: ``avg`` (the default), ``cls``, ``first_last``, ``ditto`` … or a head object.
        whitening: ``pca`` or another name in `whitepool.maps.names`, or a step object with options
            of its own, to be fitted with `Encoder.fit`; None for none.
        k: directions that whitening keeps; None for all with variance.
        layers: layers of the head, in place of its usual ones.
        block: attention block of ``ditto``, 0-based.
        head: attention head of ``ditto``, 0-based.
        max_length: tokens per text, special ones included; None for the model's own limit.
        dtype: number type of the model; None for the recipe's or float32, ``auto`` for bfloat16
            where it is fast. Vectors are float32 all the same.
        device: where the model runs; None for a GPU if there is one.
        prompts: texts put before them, under ``query`` and ``document``.
        template: a text with the slot ``{text}``, put around every text; None for the head's own.
        full_stop: whether a text without a full stop at its end gets one; None as the head has it.
        long_text: ``truncate`` (the default), ``error`` or ``chunk_mean``; see `Encoder.encode`.
        revision: commit of a hub id.

    Raises:
        UserError: nothing there, or settings that do not go together.

    Example:
        >>> import whitepool
        >>> encoder = whitepool.load("all_minilm", pooling="first_last")
        >>> encoder.dimension
        384
    """
    place = torch.device(device) if device is not None else _best_device()
    own = None if dtype is None else _model_dtype(dtype, place)
    folder = Path(path_or_model).expanduser()
    if is_recipe(folder) or is_export(folder):
        given = {
            "pooling": pooling,
            "whitening": whitening,
            "k": k,
            "layers": layers,
            "block": block,
            "head": head,
            "max_length": max_length,
            "prompts": prompts,
            "template": template,
            "full_stop": full_stop,
            "long_text": long_text,
            "revision": revision,
        }
        _refuse(folder, given)
        recipe = exported_recipe(folder) if is_export(folder) else Recipe.load(folder)
        return Encoder.from_recipe(recipe, dtype=own, device=place)

    post = _post(whitening, k)
    pool = _head(pooling, layers, block, head)
    words = _prompts(prompts)
    own_frame = frame_of(pooling) if isinstance(pooling, str) else Frame()
    frame = Frame(
        own_frame.template if template is None else template,
        own_frame.full_stop if full_stop is None else full_stop,
    )
    check_frame(pool, frame)
    if long_text is not None and long_text not in LONG_TEXT:
        raise UserError(f"long_text is {long_text!r}: choose one of {', '.join(LONG_TEXT)}.")
    source = _source(path_or_model, folder, revision)
    plm = FrozenPLM.from_pretrained(
        **source, name=_name(source), dtype=own or "float32", max_length=max_length
    )
    return Encoder(
        plm.to(place),
        pool,
        model=describe_model(plm, **source),
        post=post,
        prompts=words,
        template=frame.template,
        long_text=long_text or "truncate",
        full_stop=frame.full_stop,
    )


def _best_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _model_dtype(dtype: str, device: torch.device) -> str:
    if dtype == "auto":
        return model_dtype("auto", device.type)
    if dtype not in ("float32", "bfloat16"):
        raise UserError(f"dtype is {dtype!r}: choose one of float32, bfloat16, auto.")
    return dtype


def _refuse(folder: Path, given: Mapping[str, object]) -> None:
    """A recipe decides what vectors are; another word on that would be ignored or break it."""
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise UserError(
            f"{folder} is a recipe, which brings its own {', '.join(names)}: leave that out, or "
            "load the model itself."
        )


def _source(path_or_model: str | Path, folder: Path, revision: str | None) -> dict[str, Any]:
    """The arguments of `FrozenPLM.from_pretrained` that say where the model is."""
    name = str(path_or_model)
    if folder.is_dir():
        source: dict[str, Any] = {"path": folder}
    elif name in MODELS:
        source = {"asset": name}
    elif isinstance(path_or_model, str) and name.count("/") == 1 and name[0] not in "./~":
        return {"id": name, "revision": revision}
    else:
        raise UserError(
            f"there is no folder and no model {name!r}: give a folder, one of the embedded models "
            f"{', '.join(MODELS)}, or a hub id such as google-bert/bert-base-uncased."
        )
    if revision is not None:
        raise UserError(f"revision goes with a hub id, and {name!r} is none: leave it out.")
    return source


def _name(source: Mapping[str, Any]) -> str:
    path = source.get("path")
    return str(path.name if path is not None else source.get("asset") or source.get("id"))


def _head(
    pooling: str | Pooling | None,
    layers: Sequence[Layer] | None,
    block: int | None,
    head: int | None,
) -> Pooling:
    if pooling is None or isinstance(pooling, str):
        return named(pooling or "avg", layers, block, head)
    if layers is not None or block is not None or head is not None:
        raise UserError("pooling is an object that has its layers, block and head: leave them out.")
    return pooling


def _post(whitening: str | PostProcess | None, k: int | None) -> PostProcess | None:
    if whitening is None:
        if k is not None:
            raise UserError(f"k={k} is for whitening: give whitening='pca' too.")
        return None
    if not isinstance(whitening, str):
        if k is not None:
            raise UserError(f"whitening is an object that has its own k: leave k={k} out.")
        return whitening
    for kind, made in POST_PROCESSES.items():
        if whitening == kind:
            if k is not None and "k" not in takes(kind):
                raise UserError(f"whitening={kind!r} takes no k: leave k={k} out.")
            step: PostProcess = made() if k is None else made(k=k)
            return step
    raise UserError(
        f"whitening is {whitening!r}: choose one of {', '.join(POST_PROCESSES)}, or None."
    )


def _prompts(prompts: Mapping[str, str] | None) -> Prompts:
    content = dict(prompts or {})
    for name, prompt in content.items():
        if name not in ("query", "document") or not isinstance(prompt, str):
            raise UserError(
                f"prompts has {name!r}: {prompt!r}: give texts under query and document alone."
            )
    return Prompts(**content)
