"""A recipe: everything that turns a text into its vector, as a small folder of plain data.

    vector = post(pooling(model(tokens(template(prompt + text)))))

A folder holds ``recipe.yaml``, a closed schema, and ``weights.safetensors`` where there are
arrays (`mean`, `basis`, those of a flow, `token_weights`). Reading one never imports or
instantiates a name found in it, follows no path but that of a local model, and opens no pickle. See
docs/formats.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from whitepool.errors import UserError
from whitepool.flow.step import Flow, array_names, from_arrays
from whitepool.maps.names import POST_PROCESSES, PostKind, takes
from whitepool.pooling import Pooling
from whitepool.pooling.spec import ByTokenId, Linear, PoolingSpec, build
from whitepool.whitening import Affine, Map, PostProcess

SCHEMA = 1
SLOT = "{text}"
OPTIONS = tuple(dict.fromkeys(name for kind in POST_PROCESSES for name in takes(kind)))
LONG_TEXT = ("truncate", "error", "chunk_mean")

Scalar = str | int | float | bool
Dtype = Literal["float32", "bfloat16"]
LongText = Literal["truncate", "error", "chunk_mean"]


@dataclass(frozen=True)
class ModelSpec:
    """Which model, and how to tell that it is the same one.

    Attributes:
        name: how results call it.
        dtype: number type of its weights when the recipe was made.
        id: hub id.
        revision: commit of the hub id.
        asset: name of an embedded model, looked at before the hub.
        path: absolute path of a local folder, looked at before the others.
        sha256: checksum of the weights of a folder or an embedded model.
        segmenter: what cuts texts into words before the tokenizer; None for nothing.

    Raises:
        UserError: no source, or one that is not of its form.
    """

    name: str
    dtype: Dtype = "float32"
    id: str | None = None
    revision: str | None = None
    asset: str | None = None
    path: str | None = None
    sha256: str | None = None
    segmenter: Literal["jieba"] | None = None

    def __post_init__(self) -> None:
        if not (self.id or self.asset or self.path):
            raise UserError("model names no source: give one of id, asset, path.")
        forms = {
            "name": r"[^\x00-\x1f\x7f]{1,300}",
            "id": r"[\w-][\w.-]*(/[\w-][\w.-]*)?",
            "revision": r"[\w-][\w./-]*",
            "asset": r"\w+",
            "sha256": r"[0-9a-f]{64}",
        }
        for key, form in forms.items():
            value = getattr(self, key)
            if value is not None and (not re.fullmatch(form, value) or ".." in value):
                raise UserError(f"model.{key} is {value[:80]!r}, which is not of its form.")
        if self.path is not None:
            path = Path(self.path)
            if not path.is_absolute() or ".." in path.parts or "\0" in self.path:
                raise UserError(
                    f"model.path is {self.path[:80]!r}: give an absolute path without '..'."
                )


@dataclass(frozen=True)
class Prompts:
    """Texts put before queries and before documents."""

    query: str = ""
    document: str = ""


@dataclass(frozen=True)
class PostSpec:
    """What is done to vectors after pooling; its map is in the arrays `mean` and `basis`.

    Attributes:
        kind: a name in `whitepool.maps.names.POST_PROCESSES`.
        fit: which vectors it was fitted on, in words.
        count: how many of them.
        rank: their effective rank.
        directions: dimensions of the vectors that the map gives.
        k: directions asked for; None for all that the step has.
        gamma: of ``tempered``.
        eps: of ``soft``.
        remove: of ``remove_top`` and ``remove_common``; None for a hundredth of the dimensions.
        depth: of ``flow``, as the options below; see `whitepool.flow.step.Flow`.
        hidden: width of its hidden layers.
        epochs: most that it was trained for.
        patience: epochs without a gain that ended training.
        learning_rate: of training.
        seed: of network and training.

    Raises:
        UserError: numbers out of range, or an option that the step does not take.
    """

    kind: PostKind
    fit: str
    count: float
    rank: int
    directions: int
    k: int | None = None
    gamma: float | None = None
    eps: float | None = None
    remove: int | None = None
    depth: int | None = None
    hidden: int | None = None
    epochs: int | None = None
    patience: int | None = None
    learning_rate: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        if not (self.count >= 2 and self.rank >= 1 and self.directions >= 1) or (
            self.kind == "pca" and self.directions > self.rank
        ):
            raise UserError(
                f"post has directions {self.directions}, rank {self.rank} and count {self.count}: "
                "they go 1 <= directions <= rank for pca, and count is at least 2."
            )
        for name in OPTIONS:
            if getattr(self, name) is not None and name not in takes(self.kind):
                raise UserError(f"post.{name} is given, and post.kind {self.kind} takes none.")
        try:
            self.build()
        except UserError as error:
            raise UserError(str(error).replace("whitening.", "post.")) from error

    def build(self) -> PostProcess:
        """The step, to be fitted anew."""
        step: PostProcess = POST_PROCESSES[self.kind](
            **{name: getattr(self, name) for name in takes(self.kind)}
        )
        return step


@dataclass(frozen=True, eq=False)
class Recipe:
    """Everything that turns a text into its vector.

    Attributes:
        model: the frozen model.
        pooling: the head; `head` builds it.
        max_length: tokens per text, special ones included.
        post: what is done after pooling; None for nothing.
        prompts: texts put before queries and documents.
        template: a text with the slot ``{text}``; see `whitepool.framing`.
        full_stop: whether a text without a full stop at its end gets one.
        long_text: what is done with texts over ``max_length``; see `whitepool.Encoder.encode`.
        similarity: how vectors are compared.
        provenance: where it came from, as plain values that nothing reads.
        versions: versions of the packages it was made with.
        arrays: ``mean`` (dim,) and ``basis`` (dim, directions) of the fitted map, float64, and
            ``token_weights`` (vocabulary,) of a head that weighs tokens by their id.

    Raises:
        UserError: parts that do not go together, or arrays of another shape or type.

    Two recipes are compared by their folders' content, not with ``==``.
    """

    model: ModelSpec
    pooling: PoolingSpec
    max_length: int
    post: PostSpec | None = None
    prompts: Prompts = Prompts()
    template: str = SLOT
    full_stop: bool = False
    long_text: LongText = "truncate"
    similarity: Literal["cosine"] = "cosine"
    provenance: Mapping[str, Scalar] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise UserError(f"max_length is {self.max_length}: give at least 1.")
        by_id = isinstance(self.pooling, Linear) and isinstance(self.pooling.tokens, ByTokenId)
        of_post = array_names(self.post.depth) if self.post else []
        wanted = [*of_post, *(["token_weights"] if by_id else [])]
        if sorted(wanted) != sorted(self.arrays):
            raise UserError(
                f"the recipe has the arrays {_list(self.arrays)} where its settings ask for "
                f"{_list(wanted)}."
            )
        for name, array in self.arrays.items():
            if array.dtype != torch.float64 or not bool(array.isfinite().all()):
                raise UserError(f"the array {name} ({array.dtype}) is not all finite float64.")
        if self.post:
            shape, dim = tuple(self.arrays["basis"].shape), self.arrays["mean"].numel()
            if self.arrays["mean"].dim() != 1 or shape != (dim, self.post.directions):
                raise UserError(
                    f"the array mean has {dim} numbers and post {self.post.directions} directions, "
                    f"but the array basis has the shape {shape}."
                )
        _ = self.fitted  # building a flow checks its arrays
        from whitepool.framing import Frame, check_frame  # which knows of recipes

        check_frame(self.head, Frame(self.template, self.full_stop))

    @property
    def affine(self) -> Affine | None:
        """The fitted map where it is affine, None where there is none or a flow."""
        if self.post is None or self.post.kind == "flow":
            return None
        mean, basis = self.arrays["mean"], self.arrays["basis"]
        return Affine(mean, basis, self.post.count, self.post.rank)

    @property
    def fitted(self) -> Map | None:
        """The fitted map, None without post-processing.

        Raises:
            UserError: arrays that are no flow, where it is one.
        """
        step = self.post.build() if self.post else None
        if self.post is None or not isinstance(step, Flow):
            return self.affine
        return from_arrays(self.arrays, step, self.post.count, self.post.rank)

    @property
    def head(self) -> Pooling:
        """The pooling head."""
        return build(self.pooling, self.arrays.get("token_weights"))

    def save(self, folder: str | Path) -> Path:
        """Write the recipe as ``folder``, all of it or nothing; returns the folder.

        An existing recipe is replaced; if anything fails before, it stays as it was.

        Raises:
            UserError: the folder holds anything but a recipe, or cannot be written.
        """
        from whitepool.recipe_folder import save

        return save(self, Path(folder))

    @staticmethod
    def load(folder: str | Path) -> Recipe:
        """Read a folder written by `save`; no model is loaded.

        Raises:
            UserError: not a recipe, a newer schema, or content the schema does not know.
        """
        from whitepool.recipe_folder import load

        return load(Path(folder))


def check_template(template: str, slots: int = 1) -> None:
    """See that a template has so many slots, one or two.

    Raises:
        UserError: it has not.
    """
    if template.count(SLOT) != slots:
        times = "once" if slots == 1 else "twice"
        raise UserError(f"template is {template[:80]!r}: give a text with {SLOT} in it {times}.")


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "(none)"
