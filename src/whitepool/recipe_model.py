"""The model and the fitted step of a recipe: described from objects, and opened again."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, cast

from whitepool.errors import UserError
from whitepool.maps.names import POST_PROCESSES, takes
from whitepool.plm import FrozenPLM
from whitepool.recipe import Dtype, ModelSpec, PostSpec
from whitepool.whitening import Map, PostProcess


def describe_model(
    plm: FrozenPLM,
    *,
    id: str | None = None,
    revision: str | None = None,
    path: str | Path | None = None,
    asset: str | None = None,
) -> ModelSpec:
    """What a recipe says of a model that `FrozenPLM.from_pretrained` loaded with these arguments.

    The source that was used is kept, those that it came before are not.
    """
    found = plm.provenance
    source: dict[str, str | None]
    if path is not None:
        source = {"path": str(Path(path).expanduser().resolve())}
    elif asset is not None:
        source = {"asset": asset}
    else:
        source = {"id": id, "revision": found.get("revision") or revision}
    dtype = cast(Dtype, found["dtype"])
    segmenter = cast(Literal["jieba"] | None, plm.segmenter)
    return ModelSpec(
        name=plm.name, dtype=dtype, sha256=found.get("sha256"), segmenter=segmenter, **source
    )


def open_model(
    spec: ModelSpec, *, max_length: int | None = None, dtype: str | None = None
) -> FrozenPLM:
    """Load the model of a recipe, and see that it is the same one.

    Args:
        spec: what the recipe says of it.
        max_length: tokens per text.
        dtype: number type of the weights; the recipe's by default.

    Raises:
        UserError: the model is not there, or its weights have another checksum.
    """
    if spec.path is not None and not Path(spec.path).exists():
        raise UserError(
            f"the recipe's model folder {spec.path} does not exist: put the model there, or write "
            "its new place as model.path in recipe.yaml."
        )
    plm = FrozenPLM.from_pretrained(
        spec.id,
        revision=spec.revision,
        path=spec.path,
        asset=spec.asset,
        name=spec.name,
        dtype=dtype or spec.dtype,
        max_length=max_length,
        segmenter=spec.segmenter,
    )
    found = plm.provenance.get("sha256")
    if spec.sha256 is not None and found is not None and found != spec.sha256:
        raise UserError(
            f"model {spec.name} is not the one of the recipe: the checksum of its weights is "
            f"{found[:12]}… and the recipe was made with {spec.sha256[:12]}…: restore that model, "
            "or make the recipe anew."
        )
    return plm


def describe_post(post: PostProcess, fitted: Map, fit: str) -> PostSpec:
    """What a recipe says of a fitted step.

    Args:
        post: what was fitted.
        fitted: its map.
        fit: which vectors it was fitted on, in words.

    Raises:
        UserError: a step that a recipe has no name for.
    """
    for kind, made in POST_PROCESSES.items():
        if type(post) is made:
            return PostSpec(
                kind=kind,
                fit=fit,
                count=fitted.count,
                rank=fitted.rank,
                directions=fitted.directions,
                **{name: getattr(post, name) for name in takes(kind)},
            )
    raise UserError(
        f"a recipe has no name for the step {type(post).__name__}: it knows "
        f"{', '.join(made.__name__ for made in POST_PROCESSES.values())}."
    )
