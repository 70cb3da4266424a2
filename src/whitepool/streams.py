"""Moments of the vectors of any number of sentences, a window of them at a time."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from whitepool.moments import Moments
from whitepool.texts import checked
from whitepool.vectors import PooledTexts
from whitepool.word_moments import counted, word_moments

WINDOW = 8192  # sentences


def moments_of(
    pooled: PooledTexts,
    sentences: Iterable[str],
    *,
    prompt: str = "",
    batch_tokens: int | None = None,
    done: Callable[[int], None] | None = None,
    moments: Moments | None = None,
) -> Moments:
    """Moments of the vectors of sentences, each counted as often as it occurs, blank ones not.

    Args:
        pooled: gives the vectors.
        sentences: a list, whose equal sentences are encoded once, or any iterable, of which
            `WINDOW` sentences at a time are in memory.
        prompt: put before each sentence.
        batch_tokens: most tokens of a batch.
        done: told how many sentences each window had.
        moments: of earlier sentences, to go on from; they are updated.

    Raises:
        UserError: something that is not a text, or a vector that is not finite.
    """
    moments = Moments(pooled.dim) if moments is None else moments
    for x, weight in _weighted(pooled, sentences, prompt, batch_tokens, done):
        if len(x):
            moments.update(x, weight)
    return moments


def vectors_of(
    pooled: PooledTexts,
    sentences: Iterable[str],
    *,
    prompt: str = "",
    batch_tokens: int | None = None,
    done: Callable[[int], None] | None = None,
) -> tuple[Tensor, Tensor]:
    """Vectors of sentences, (n, dim), and how often each counts, (n,); blank ones left out.

    The arguments and errors are those of `moments_of`. Memory grows with the sentences.
    """
    parts, weights = [torch.zeros(0, pooled.dim)], [torch.zeros(0, dtype=torch.float64)]
    for x, weight in _weighted(pooled, sentences, prompt, batch_tokens, done):
        parts.append(x)
        weights.append(weight)
    return torch.cat(parts), torch.cat(weights)


def _weighted(
    pooled: PooledTexts,
    sentences: Iterable[str],
    prompt: str,
    batch_tokens: int | None,
    done: Callable[[int], None] | None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Vectors of each window's sentences, (n, dim), and how often each counts; no blank ones."""
    for window in windows(sentences):
        x, blank = pooled(list(window), prompt=prompt, batch_tokens=batch_tokens)
        filled = torch.from_numpy(~blank)
        weight = torch.tensor(list(window.values()), dtype=torch.float64)
        yield torch.from_numpy(x)[filled], weight[filled]
        if done is not None:
            done(window.total())


def moments_of_words(
    pooled: PooledTexts,
    sentences: Iterable[str],
    *,
    prompt: str = "",
    done: Callable[[int], None] | None = None,
) -> Moments:
    """Moments of the words of sentences, each sentence counted as often as it occurs.

    Args:
        pooled: the tokenizer, template and word vectors.
        sentences: see `moments_of`.
        prompt: put before each sentence.
        done: told how many sentences each window had.

    Raises:
        UserError: something that is not a text.
    """
    plm = pooled.plm
    counts = torch.zeros(plm.model.get_input_embeddings().weight.shape[0], dtype=torch.float64)
    for window in windows(sentences):
        counts += counted(plm, pooled.tokenize(list(window), prompt).ids, list(window.values()))
        if done is not None:
            done(window.total())
    return word_moments(plm, counts)


def windows(sentences: Iterable[str]) -> Iterator[Counter[str]]:
    """Sentences and how often each occurs, not over `WINDOW` different ones at a time."""
    if isinstance(sentences, Sequence):
        counts = iter(Counter(checked(sentences)).items())
        while some := dict(itertools.islice(counts, WINDOW)):
            yield Counter(some)
    else:
        texts = checked(sentences)
        while batch := list(itertools.islice(texts, WINDOW)):
            yield Counter(batch)
