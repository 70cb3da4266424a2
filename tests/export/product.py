"""Every head of conf/pooling with every step of conf/whitening: ours beside an export's modules.

What a step does not change is computed once for each head: the vectors before it, ours and those
of sentence-transformers' modules, and the moments that steps are fitted on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from whitepool.encoder import Encoder
from whitepool.export import chain
from whitepool.export.module import RecipeModule
from whitepool.export.opening import sentence_transformer
from whitepool.framing import Frame
from whitepool.maps.names import POST_PROCESSES, PostKind, reduces
from whitepool.moments import Moments
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.recipe import ModelSpec, Recipe
from whitepool.recipe_model import describe_post
from whitepool.streams import moments_of, moments_of_words
from whitepool.whitening import PostProcess
from whitepool.word_moments import check_words, of_words

from made import gaps, same

K = 5


class Head:
    """A head on a model, and its recipes with each step.

    Args:
        plm: the model.
        model: what a recipe says of it.
        head: the head.
        frame: what it puts around texts.
        fit: what steps are fitted on.
    """

    def __init__(
        self, plm: FrozenPLM, model: ModelSpec, head: Pooling, frame: Frame, fit: Sequence[str]
    ) -> None:
        self.plm, self.model, self.head, self.frame, self.fit = plm, model, head, frame, fit

    @cached_property
    def raw(self) -> Encoder:
        return Encoder(
            self.plm,
            self.head,
            model=self.model,
            template=self.frame.template,
            full_stop=self.frame.full_stop,
        )

    @cached_property
    def recipe(self) -> Recipe:
        return self.raw.recipe()

    @cached_property
    def moments(self) -> Moments:
        return moments_of(self.raw.pooled, self.fit)

    @cached_property
    def moments_of_words(self) -> Moments:
        return moments_of_words(self.raw.pooled, self.fit)

    def with_step(self, kind: PostKind, **given: Any) -> Recipe:
        """The recipe with a step fitted."""
        post: PostProcess = POST_PROCESSES[kind](**given)
        check_words(post, self.head)
        affine = post.fit(self.moments_of_words if of_words(post) else self.moments)
        arrays = {**self.recipe.arrays, "mean": affine.mean, "basis": affine.basis}
        return replace(self.recipe, post=describe_post(post, affine, "made"), arrays=arrays)

    def encoder(self, recipe: Recipe) -> Encoder:
        return Encoder.from_recipe(recipe, plm=self.plm)


def faults(head: Head, steps: Sequence[PostKind], texts: Sequence[str], folder: Path) -> list[str]:
    """What is wrong with the exports of a head, raw and with each step; nothing, it is hoped."""
    model = sentence_transformer(head.raw.export(folder), device="cpu")
    ours, theirs = head.raw.encode(texts), model.encode(texts, batch_size=7)
    found = [*_compared(ours, theirs, "raw")]
    if not np.array_equal(model.encode(texts, batch_size=7, truncate_dim=K), theirs[:, :K]):
        found.append(f"truncate_dim={K} does not keep the first")
    own = RecipeModule(head.raw).preprocess(texts)
    for kind in steps:
        found += _faults_of(head, kind, ours, theirs, own)
    return found


def _faults_of(head: Head, kind: PostKind, ours: Any, theirs: Any, own: Any) -> Iterator[str]:
    """What is wrong with a step, given raw vectors of both and what our module makes of texts."""
    recipe, dim = head.with_step(kind), head.raw.pooled.dim
    if chain.obstacle(recipe, head.plm) is None:
        *before, last = chain.modules(recipe, head.plm, dim)
        if [*map(type, before)] != [*map(type, chain.modules(head.recipe, head.plm, dim))]:
            yield f"{kind}: other modules before the step"
        with torch.no_grad():
            features = last({"sentence_embedding": torch.from_numpy(theirs)})
    else:
        features = RecipeModule(head.encoder(recipe))(dict(own))
    found = features["sentence_embedding"].numpy()
    yield from _compared(_mapped(recipe, ours), found, kind)
    if reduces(kind):
        first = _mapped(head.with_step(kind, k=K), ours)
        if not same(first, found[:, :K]):
            yield f"{kind}: its first {K} directions are not those of k={K}"


def _mapped(recipe: Recipe, vectors: Any) -> Any:
    assert recipe.affine is not None
    return recipe.affine(torch.from_numpy(vectors)).numpy()


def _compared(ours: Any, theirs: Any, name: str) -> Iterator[str]:
    if not np.isfinite(ours).all() or np.ptp(ours) == 0:
        yield f"{name}: nothing to compare"
    if not same(ours, theirs):
        yield f"{name}: components and cosines differ by {gaps(ours, theirs)}"
