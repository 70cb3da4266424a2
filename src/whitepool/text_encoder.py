"""Texts to the vectors of a recipe: everything of an encoder that only reads.

z = post(pooling(model(tokens(template(prompt + text)))))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from whitepool.errors import UserError
from whitepool.progress import progress_bar
from whitepool.recipe import LongText, PostSpec, Prompts
from whitepool.similarity import cosine_matrix, cosine_rows
from whitepool.texts import checked, prompt_of
from whitepool.token_weights import Weighed, weigh
from whitepool.tokenizing import Tokenized
from whitepool.vectors import PooledTexts
from whitepool.whitening import Map, PostProcess

Floats = NDArray[np.float32]
WINDOW = 8192  # vectors mapped at a time, which bounds memory


class TextEncoder:
    """Texts in, vectors out, with a map that was fitted before or none.

    Args:
        pooled: texts to vectors before the map: model, head, template and length.
        prompts: texts put before queries and documents.
        post: what is to be fitted; None for raw vectors.
        fitted: description and map of what has been fitted already.

    Attributes:
        pooled: see above.
        prompts: see above.

    Raises:
        UserError: the map takes other vectors.
    """

    def __init__(
        self,
        pooled: PooledTexts,
        prompts: Prompts,
        post: PostProcess | None = None,
        fitted: tuple[PostSpec, Map] | None = None,
    ) -> None:
        self.pooled = pooled
        self.prompts = prompts
        self._post = post
        self._fitted = fitted
        if fitted is not None and fitted[1].dim != pooled.dim:
            raise UserError(
                f"the fitted map takes {fitted[1].dim} dimensions and the vectors of model "
                f"{pooled.plm.name} have {pooled.dim}."
            )

    @property
    def dimension(self) -> int:
        """Dimensions k of the vectors that `encode` gives.

        Raises:
            UserError: a map is to be fitted and has not been.
        """
        fitted = self._map()
        return self.pooled.dim if fitted is None else fitted.directions

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

    def token_weights(self, sentences: Sequence[str]) -> list[Weighed]:
        """Tokens of each of a few texts, and how much the head weighs them.

        Raises:
            UserError: a head without token weights, as ``max``.

        Example:
            >>> import whitepool
            >>> encoder = whitepool.load("all_minilm", pooling="ditto", block=0, head=0)
            >>> encoder.token_weights(["a dog runs"])[0].tokens
            ('[CLS]', 'a', 'dog', 'runs', '[SEP]')
        """
        return weigh(self.pooled.plm, self.pooled.pooling, self.tokenize(sentences).ids)

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
        x = self.mapped(raw)
        x[blank] = 0.0
        x = x[:, :truncate_dim]
        if normalize:
            norm = np.linalg.norm(x, axis=1, keepdims=True)
            x = (x / np.where(norm > 0, norm, 1.0)).astype(np.float32)
        return x[np.array([place[text] for text in texts], dtype=np.intp)]

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

    def mapped(self, raw: Floats) -> Floats:
        """Vectors after the map, (text, k), of pooled ones, (text, dim)."""
        fitted = self._map()
        if fitted is None:
            return raw
        starts = range(0, max(len(raw), 1), WINDOW)
        parts = [fitted(torch.from_numpy(raw[i : i + WINDOW])).numpy() for i in starts]
        return np.concatenate(parts)

    def _map(self) -> Map | None:
        if self._post is not None and self._fitted is None:
            raise UserError("the whitening is not fitted yet: call fit(sentences) first.")
        return None if self._fitted is None else self._fitted[1]
