"""The encoder of the Python API: texts in, vectors out.

z = post(pooling(model(tokens(template(prompt + text)))))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.spec import describe
from whitepool.progress import progress_bar
from whitepool.recipe import SLOT, LongText, ModelSpec, PostSpec, Prompts, Recipe, Scalar
from whitepool.recipe_model import describe_post, open_model
from whitepool.similarity import cosine_matrix, cosine_rows
from whitepool.streams import moments_of, moments_of_words
from whitepool.texts import checked, prompt_of
from whitepool.tokenizing import Tokenized
from whitepool.vectors import PooledTexts
from whitepool.whitening import Affine, PostProcess
from whitepool.words import check_words, of_words

Floats = NDArray[np.float32]
WINDOW = 8192  # vectors mapped at a time, which bounds memory


class Encoder:
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
        fitted: tuple[PostSpec, Affine] | None = None,
        max_length: int | None = None,
        prompts: Prompts | None = None,
        template: str = SLOT,
        long_text: LongText = "truncate",
        full_stop: bool = False,
    ) -> None:
        check_words(post, pooling)
        length = plm.max_length if max_length is None else plm.check_length(max_length)
        self.pooled = PooledTexts(plm, pooling, length, template, long_text, full_stop)
        self.prompts = prompts or Prompts()
        self._model = model
        self._post = post
        self._fitted = fitted
        if fitted is not None and len(fitted[1].mean) != self.pooled.dim:
            raise UserError(
                f"the fitted map takes {len(fitted[1].mean)} dimensions and the vectors of model "
                f"{plm.name} have {self.pooled.dim}."
            )

    @classmethod
    def from_recipe(
        cls, recipe: Recipe, *, dtype: str | None = None, device: str | torch.device = "cpu"
    ) -> Encoder:
        """The encoder of a recipe.

        Args:
            recipe: from `Recipe.load`.
            dtype: number type of the model's weights; the recipe's by default.
            device: where the model runs.

        Raises:
            UserError: the model is not there, or not the recipe's.
        """
        plm = open_model(recipe.model, max_length=recipe.max_length, dtype=dtype).to(device)
        affine = recipe.affine
        fitted = None if recipe.post is None or affine is None else (recipe.post, affine)
        return cls(
            plm,
            recipe.head,
            model=recipe.model,
            post=recipe.post.build() if recipe.post else None,
            fitted=fitted,
            prompts=recipe.prompts,
            template=recipe.template,
            long_text=recipe.long_text,
            full_stop=recipe.full_stop,
        )

    @property
    def dimension(self) -> int:
        """Dimensions k of the vectors that `encode` gives.

        Raises:
            UserError: a map is to be fitted and has not been.
        """
        affine = self._affine()
        return self.pooled.dim if affine is None else affine.basis.shape[1]

    def get_embedding_dimension(self) -> int:
        """`dimension`, by the name that sentence-transformers has for it."""
        return self.dimension

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.pooled.plm.device

    @property
    def max_length(self) -> int:
        """Tokens per text, special ones included."""
        return self.pooled.max_length

    def tokenize(self, sentences: Sequence[str]) -> Tokenized:
        """Token ids of each text as `encode` takes it without a prompt, and which texts are cut.

        Example:
            >>> import whitepool
            >>> encoder = whitepool.load("all_minilm", max_length=4)
            >>> encoder.tokenize(["a dog", "a dog runs in the park"]).truncated
            [False, True]
        """
        return self.pooled.tokenize(list(checked(sentences)))

    @overload
    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        batch_tokens: int | None = ...,
        progress: bool | None = ...,
        normalize: bool = ...,
        convert_to_tensor: Literal[False] = ...,
        prompt: str | None = ...,
        prompt_name: str | None = ...,
        truncate_dim: int | None = ...,
        long_text: LongText | None = ...,
    ) -> Floats: ...

    @overload
    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        batch_tokens: int | None = ...,
        progress: bool | None = ...,
        normalize: bool = ...,
        convert_to_tensor: Literal[True],
        prompt: str | None = ...,
        prompt_name: str | None = ...,
        truncate_dim: int | None = ...,
        long_text: LongText | None = ...,
    ) -> Tensor: ...

    def encode(
        self,
        sentences: str | Iterable[str],
        *,
        batch_tokens: int | None = None,
        progress: bool | None = None,
        normalize: bool = False,
        convert_to_tensor: bool = False,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate_dim: int | None = None,
        long_text: LongText | None = None,
    ) -> Floats | Tensor:
        """Vectors of texts, in their order; equal texts are encoded once.

        Args:
            sentences: texts, or one text.
            batch_tokens: most tokens of a batch; results do not depend on it beyond rounding.
            progress: a bar on stderr; None shows it in a terminal after two seconds.
            normalize: scale vectors to length 1, blank texts aside.
            convert_to_tensor: give a tensor on the model's device instead of an array.
            prompt: put before each text.
            prompt_name: ``query`` or ``document``, for the prompts the encoder has.
            truncate_dim: keep the first so many dimensions.
            long_text: texts over ``max_length`` are cut (``truncate``), refused (``error``), or
                encoded in pieces whose mean is taken, weighted by their tokens (``chunk_mean``).

        Returns:
            (n, k) float32 for n texts, (k,) for one; zero for a blank text.

        Raises:
            UserError: something that is not a text, an option out of range, a map not yet fitted.

        Example:
            >>> import whitepool
            >>> encoder = whitepool.load("all_minilm")
            >>> encoder.encode("a dog runs").shape
            (384,)
            >>> encoder.encode(["a dog runs", ""], normalize=True, truncate_dim=64).shape
            (2, 64)
        """
        texts = [sentences] if isinstance(sentences, str) else list(checked(sentences))
        with progress_bar(progress, len(set(texts))) as bar:
            x = self.vectors_of(
                texts,
                batch_tokens=batch_tokens,
                normalize=normalize,
                prompt=prompt,
                prompt_name=prompt_name,
                truncate_dim=truncate_dim,
                long_text=long_text,
                done=bar.advance,
            )
        x = x[0] if isinstance(sentences, str) else x
        return torch.from_numpy(x).to(self.device) if convert_to_tensor else x

    def vectors_of(
        self,
        texts: Sequence[str],
        *,
        batch_tokens: int | None = None,
        normalize: bool = False,
        prompt: str | None = None,
        prompt_name: str | None = None,
        truncate_dim: int | None = None,
        long_text: LongText | None = None,
        done: Callable[[int], None] | None = None,
        shortened: Callable[[int], None] | None = None,
    ) -> Floats:
        """What `encode` gives, (n, k), for callers with a progress bar of their own.

        Args:
            texts: what to encode; the settings are those of `encode`.
            done: told how many distinct token sequences each batch had.
            shortened: told how many distinct texts are cut, in place of a word in the log.

        Raises:
            UserError: see `encode`.
        """
        dim = self.dimension
        if truncate_dim is not None and not 1 <= truncate_dim <= dim:
            raise UserError(f"truncate_dim is {truncate_dim}: give 1 to {dim}.")
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        raw, blank = self.pooled(
            list(place),
            prompt=prompt_of(asdict(self.prompts), prompt, prompt_name),
            long_text=long_text,
            batch_tokens=batch_tokens,
            done=done,
            shortened=shortened,
        )
        x = self._mapped(raw)
        x[blank] = 0.0
        x = x[:, :truncate_dim]
        if normalize:
            norm = np.linalg.norm(x, axis=1, keepdims=True)
            x = (x / np.where(norm > 0, norm, 1.0)).astype(np.float32)
        return x[np.array([place[text] for text in texts], dtype=np.intp)]

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

        Blank sentences do not count. The vectors are not kept: memory grows with the sentences
        of a list, and not at all with those of an iterator.

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
        affine = self._post.fit(moments)
        words = description or f"{moments.count:,.0f} sentences given to Encoder.fit"
        self._fitted = describe_post(self._post, affine, words), affine
        return self

    def similarity(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Cosine of each vector of a, (n, k) or (k,), with each of b, (m, k) or (k,): (n, m).

        The cosine with a zero vector is 0.

        Example:
            >>> import whitepool
            >>> encoder = whitepool.load("all_minilm")
            >>> x = encoder.encode(["a dog runs", "a cat eats"])
            >>> encoder.similarity(x, x).diagonal().tolist()
            [1.0, 1.0]
        """
        return cosine_matrix(a, b)

    def similarity_pairwise(self, a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
        """Cosine of each vector of a, (n, k), with the vector of b, (n, k), at its place: (n,)."""
        return cosine_rows(a, b)

    def recipe(self, provenance: Mapping[str, Scalar] | None = None) -> Recipe:
        """What the encoder does, to be saved.

        Args:
            provenance: plain values to keep with it.

        Raises:
            UserError: a map is to be fitted and has not been, or the head has no name in recipes.
        """
        from whitepool.report import versions

        affine = self._affine()
        pooling, token_weights = describe(self.pooled.pooling)
        arrays = {} if affine is None else {"mean": affine.mean, "basis": affine.basis}
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
            provenance=dict(provenance or {}),
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

    def _affine(self) -> Affine | None:
        if self._post is not None and self._fitted is None:
            raise UserError("the whitening is not fitted yet: call fit(sentences) first.")
        return None if self._fitted is None else self._fitted[1]

    def _mapped(self, raw: Floats) -> Floats:
        """Vectors after the map, (text, k)."""
        affine = self._affine()
        if affine is None:
            return raw
        starts = range(0, max(len(raw), 1), WINDOW)
        parts = [affine(torch.from_numpy(raw[i : i + WINDOW])).numpy() for i in starts]
        return np.concatenate(parts)
