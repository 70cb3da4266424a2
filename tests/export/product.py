"""Every head of conf/pooling with every step of conf/whitening: ours beside an export's modules.

What a head needs of the model is computed once for all steps: the moments that they are fitted on,
and the folder that the first module of sentence-transformers is read from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whitepool.encoder import Encoder
from whitepool.export import chain
from whitepool.export.writing import export
from whitepool.framing import Frame
from whitepool.maps.names import POST_PROCESSES, PostKind, reduces
from whitepool.moments import Moments
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.recipe import ModelSpec
from whitepool.recipe_model import describe_post
from whitepool.streams import moments_of, moments_of_words
from whitepool.whitening import PostProcess
from whitepool.word_moments import check_words, of_words

from made import gaps, same

K = 5


class Head:
    """A head on a model, and the encoders that it makes with each step.

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
        return self._encoder()

    @cached_property
    def moments(self) -> Moments:
        return moments_of(self.raw.pooled, self.fit)

    def with_step(self, kind: PostKind, **given: Any) -> Encoder:
        """The encoder with a step fitted."""
        post: PostProcess = POST_PROCESSES[kind](**given)
        check_words(post, self.head)
        words = of_words(post)
        moments = moments_of_words(self.raw.pooled, self.fit) if words else self.moments
        affine = post.fit(moments)
        return self._encoder(post=post, fitted=(describe_post(post, affine, "made"), affine))

    def _encoder(self, **step: Any) -> Encoder:
        return Encoder(
            self.plm,
            self.head,
            model=self.model,
            template=self.frame.template,
            full_stop=self.frame.full_stop,
            **step,
        )


class Exports:
    """SentenceTransformers of a head's encoders; a folder is written once, for the head alone."""

    def __init__(self, head: Head, folder: Path) -> None:
        self.head, self.folder = head, folder

    def of(self, encoder: Encoder) -> Any:
        """The model: the modules that an export of the encoder would have."""
        from sentence_transformers import SentenceTransformer

        from whitepool.export.module import RecipeModule

        plm, recipe = self.head.plm, encoder.recipe()
        modules = (
            [self._transformer, *chain.modules(recipe, plm, encoder.pooled.dim)]
            if chain.obstacle(recipe, plm) is None
            else [RecipeModule(encoder)]
        )
        return SentenceTransformer(modules=modules, device="cpu")

    @cached_property
    def _transformer(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(export(self.head.raw, self.folder)), device="cpu")[0]


def faults(head: Head, steps: Sequence[PostKind], texts: Sequence[str], folder: Path) -> list[str]:
    """What is wrong with the exports of a head, raw and with each step; nothing, it is hoped."""
    exports = Exports(head, folder)
    return [*_compared(head.raw, exports, texts, "raw")] + [
        fault for kind in steps for fault in _faults_of(head, kind, exports, texts)
    ]


def _faults_of(head: Head, kind: PostKind, exports: Exports, texts: Sequence[str]) -> Iterator[str]:
    encoder = head.with_step(kind)
    yield from _compared(encoder, exports, texts, kind)
    if reduces(kind):
        ours = head.with_step(kind, k=K).encode(texts)
        theirs = exports.of(encoder).encode(texts, truncate_dim=K)
        if not same(ours, theirs):
            yield f"{kind}: truncate_dim={K} is not k={K}"


def _compared(encoder: Encoder, exports: Exports, texts: Sequence[str], name: str) -> Iterator[str]:
    ours = encoder.encode(texts)
    theirs = exports.of(encoder).encode(texts, batch_size=7)
    if not np.isfinite(ours).all() or np.ptp(ours) == 0:
        yield f"{name}: nothing to compare"
    if not same(ours, theirs):
        yield f"{name}: components and cosines differ by {gaps(ours, theirs)}"
