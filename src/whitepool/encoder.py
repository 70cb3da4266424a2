"""The encoder of the Python API: made, fitted, used, saved, exported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from whitepool.errors import UserError
from whitepool.flow.step import Flow
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.spec import describe
from whitepool.progress import progress_bar
from whitepool.recipe import SLOT, LongText, ModelSpec, PostSpec, Prompts, Recipe, Scalar
from whitepool.recipe_model import describe_post, open_model
from whitepool.streams import moments_of, moments_of_words, vectors_of
from whitepool.text_encoder import Floats, TextEncoder
from whitepool.texts import prompt_of
from whitepool.vectors import PooledTexts
from whitepool.whitening import Map, PostProcess
from whitepool.word_moments import check_words, of_words


class Encoder(TextEncoder):
    """A frozen model, a head, and a map fitted on sentences: texts in, vectors out.

    Made by `whitepool.load`, or by `from_recipe`. Encoding only reads from the object, so several
    threads may encode at once; `fit` replaces the map in one step.

    Args:
        plm: the frozen model, on the device to work on.
        pooling: the head.
        model: what a recipe says of the model; see `whitepool.recipe_model.describe_model`.
        post: what `fit` fits; None for raw vectors.
        fitted: description and map of what has been fitted already.
        max_length: tokens per text, special ones included; None for the model's own limit.
        prompts: texts put before queries and documents.
        template: a text with the slot ``{text}``, put around every prompt and text.
        long_text: what is done with texts over ``max_length``; see `encode`.
        full_stop: whether a text without a full stop at its end gets one.
        provenance: plain values that a recipe keeps of what has been fitted.

    Attributes:
        pooled: texts to vectors before the map: model, head, template and length.
        prompts: texts put before queries and documents.

    Raises:
        UserError: the head needs what the model or the template has not.

    Example:
        >>> import whitepool
        >>> encoder = whitepool.load("all_minilm")
        >>> encoder.encode(["a dog runs", "a cat eats"]).shape
        (2, 384)
    """

    def __init__(
        self,
        plm: FrozenPLM,
        pooling: Pooling,
        *,
        model: ModelSpec,
        post: PostProcess | None = None,
        fitted: tuple[PostSpec, Map] | None = None,
        max_length: int | None = None,
        prompts: Prompts | None = None,
        template: str = SLOT,
        long_text: LongText = "truncate",
        full_stop: bool = False,
        provenance: Mapping[str, Scalar] | None = None,
    ) -> None:
        check_words(post, pooling)
        length = plm.max_length if max_length is None else plm.check_length(max_length)
        pooled = PooledTexts(plm, pooling, length, template, long_text, full_stop)
        super().__init__(pooled, prompts or Prompts(), post, fitted)
        self._model = model
        self._provenance = dict(provenance or {})

    @classmethod
    def from_recipe(
        cls,
        recipe: Recipe,
        *,
        plm: FrozenPLM | None = None,
        dtype: str | None = None,
        device: str | torch.device = "cpu",
    ) -> Encoder:
        """The encoder of a recipe.

        Args:
            recipe: from `Recipe.load`.
            plm: the recipe's model, if it is loaded already; it stays where it is.
            dtype: number type of the model's weights; the recipe's by default.
            device: where the model runs.

        Raises:
            UserError: the model is not there, or not the recipe's.
        """
        if plm is None:
            plm = open_model(recipe.model, max_length=recipe.max_length, dtype=dtype).to(device)
        fitted = recipe.fitted
        return cls(
            plm,
            recipe.head,
            model=recipe.model,
            post=recipe.post.build() if recipe.post else None,
            fitted=None if recipe.post is None or fitted is None else (recipe.post, fitted),
            max_length=recipe.max_length,
            prompts=recipe.prompts,
            template=recipe.template,
            long_text=recipe.long_text,
            full_stop=recipe.full_stop,
            provenance=recipe.provenance,
        )

    def encode_query(
        self,
        sentences: str | Iterable[str],
        *,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        normalize: bool = False,
        truncate_dim: int | None = None,
        long_text: LongText | None = None,
    ) -> Floats:
        """`encode` with the prompt for queries, (n, k) or (k,)."""
        return self.encode(
            sentences,
            batch_tokens=batch_tokens,
            progress=progress,
            normalize=normalize,
            prompt_name="query",
            truncate_dim=truncate_dim,
            long_text=long_text,
        )

    def encode_document(
        self,
        sentences: str | Iterable[str],
        *,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        normalize: bool = False,
        truncate_dim: int | None = None,
        long_text: LongText | None = None,
    ) -> Floats:
        """`encode` with the prompt for documents, (n, k) or (k,)."""
        return self.encode(
            sentences,
            batch_tokens=batch_tokens,
            progress=progress,
            normalize=normalize,
            prompt_name="document",
            truncate_dim=truncate_dim,
            long_text=long_text,
        )

    def fit(
        self,
        sentences: Iterable[str],
        *,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        prompt_name: str | None = None,
        description: str | None = None,
    ) -> Encoder:
        """Fit the map on sentences, each counted as often as it occurs, and return the encoder.

        Blank sentences do not count. The vectors are not kept, but for a flow: memory grows with
        the sentences of a list, and not at all with those of an iterator.

        Args:
            sentences: at least 2 that differ; far more than dimensions, for a map that serves
                other sentences too.
            batch_tokens: most tokens of a batch.
            progress: see `encode`.
            prompt_name: fit on sentences behind this prompt.
            description: how the recipe calls these sentences.

        Raises:
            UserError: nothing is to be fitted, or not on these sentences.

        Example:
            >>> import whitepool
            >>> encoder = whitepool.load("all_minilm", whitening="pca", k=2)
            >>> sentences = ["a dog runs", "a cat eats", "a man plays", "it rains"]
            >>> encoder.fit(sentences).encode("a dog eats").shape
            (2,)
        """
        if self._post is None:
            raise UserError("there is nothing to fit: load the encoder with whitening='pca'.")
        prompt = prompt_of(asdict(self.prompts), None, prompt_name)
        total = len(sentences) if isinstance(sentences, Sequence) else None
        with progress_bar(progress, total) as bar:
            if isinstance(self._post, Flow):
                from whitepool.flow.fit import fit_flow  # needs Lightning

                vectors, weight = vectors_of(
                    self.pooled,
                    sentences,
                    prompt=prompt,
                    batch_tokens=batch_tokens,
                    done=bar.advance,
                )
                return self._keep(fit_flow(self._post, vectors, weight), description)
            if of_words(self._post):
                moments = moments_of_words(self.pooled, sentences, prompt=prompt, done=bar.advance)
            else:
                moments = moments_of(
                    self.pooled,
                    sentences,
                    prompt=prompt,
                    batch_tokens=batch_tokens,
                    done=bar.advance,
                )
        if moments.count < 2:
            raise UserError(
                f"{moments.count:.0f} sentences with text were given to fit: give at least 2, and "
                "far more than dimensions."
            )
        return self._keep(self._post.fit(moments), description)

    def _keep(self, fitted: Map, description: str | None) -> Encoder:
        assert self._post is not None
        words = description or f"{fitted.count:,.0f} sentences given to Encoder.fit"
        self._fitted = describe_post(self._post, fitted, words), fitted
        self._provenance = {}
        return self

    def recipe(self, provenance: Mapping[str, Scalar] | None = None) -> Recipe:
        """What the encoder does, to be saved.

        Args:
            provenance: plain values to keep with it, beside those it has.

        Raises:
            UserError: a map is to be fitted and has not been, or the head has no name in recipes.
        """
        from whitepool.versions import versions

        fitted = self._map()
        pooling, token_weights = describe(self.pooled.pooling)
        arrays = {} if fitted is None else fitted.arrays()
        if token_weights is not None:
            arrays["token_weights"] = token_weights
        return Recipe(
            model=self._model,
            pooling=pooling,
            max_length=self.max_length,
            post=self._fitted[0] if self._fitted else None,
            prompts=self.prompts,
            template=self.pooled.template,
            full_stop=self.pooled.full_stop,
            long_text=self.pooled.long_text,
            provenance={**self._provenance, **(provenance or {})},
            versions=versions(),
            arrays=arrays,
        )

    def save(self, path: str | Path) -> Path:
        """Save the encoder's recipe as the folder ``path``; see `Recipe.save`.

        Example:
            >>> import tempfile, whitepool
            >>> encoder = whitepool.load("all_minilm")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     again = whitepool.load(encoder.save(f"{folder}/recipe"))
            >>> bool((again.encode("a dog") == encoder.encode("a dog")).all())
            True
        """
        return self.recipe().save(path)

    def export(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write a folder for sentence-transformers, with model and all; returns the folder.

        ``SentenceTransformer(folder)`` loads it where sentence-transformers' own modules can do
        what the encoder does; else `whitepool.sentence_transformer` does. The log and the model
        card say which. The folder is read back and its vectors compared before it is in place.

        Args:
            folder: a new or empty one.
            overwrite: replace an export that is there.

        Raises:
            UserError: see `recipe`; something else is there; a model of word vectors, or one whose
                texts are cut by jieba; sentence-transformers is not installed, or does not give
                these vectors.

        Example:
            >>> import tempfile, whitepool
            >>> encoder = whitepool.load("all_minilm")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     model = whitepool.sentence_transformer(encoder.export(f"{folder}/export"))
            >>> model.encode(["a dog runs", "a cat eats"]).shape
            (2, 384)
        """
        from whitepool.export.writing import export

        return export(self, Path(folder), overwrite=overwrite)
