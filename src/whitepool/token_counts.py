"""The tokens of a corpus, counted in one pass; the model does not run."""

from __future__ import annotations

import itertools
import logging
import time
from collections import Counter
from typing import Any

import torch
from torch import Tensor

from whitepool.data.corpus import Corpus
from whitepool.errors import UserError
from whitepool.framing import Frame
from whitepool.longtext import framed
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.estimated import TokenCounts, estimated, is_estimated
from whitepool.tokenizing import added_ids

log = logging.getLogger(__name__)

STARTS = ("\u0120", "\u2581")  # mark of the first token of a word: byte-level BPE, SentencePiece
WITHIN = "##"  # mark of the others: WordPiece


def count_tokens(
    corpus: Corpus, plm: FrozenPLM, max_length: int, window: int, frame: Frame | None = None
) -> tuple[TokenCounts, dict[str, Any]]:
    """Count the token ids of a corpus, texts cut to ``max_length`` tokens.

    Args:
        corpus: the texts.
        plm: the model whose tokens they are.
        max_length: tokens per text, special ones included.
        window: texts read at a time.
        frame: what is put around texts, and counted too; None for nothing.

    Returns:
        The counts, and what was read as `Reading.describe` has it.

    Raises:
        UserError: a fault in the corpus, or no text in it.
    """
    started = time.perf_counter()
    special = special_ids(plm)
    texts_with: Counter[int] = Counter()
    occurrences: Counter[int] = Counter()
    tokenize = framed(plm, max_length, frame or Frame())
    reading = corpus.read()
    while texts := [text.text for text in itertools.islice(reading, window)]:
        for ids in tokenize(texts).ids:
            occurrences.update(ids)
            texts_with.update(set(ids))
    if not reading.used:
        raise UserError(f"corpus={corpus.name} has no text but blank ones: give one with text.")
    counts = TokenCounts(
        reading.used,
        _by_id(texts_with, special),
        _by_id(occurrences, special),
        special,
        plain_ids(plm),
    )
    log.info(
        "%s tokens of %s texts of corpus %s counted in %.1f s",
        f"{counts.occurrences.sum():,.0f}",
        f"{reading.used:,}",
        corpus.name,
        time.perf_counter() - started,
    )
    return counts, reading.describe()


def special_ids(plm: FrozenPLM) -> Tensor:
    """Whether each token id is a special token, (vocabulary,), bool."""
    special = torch.zeros(plm.model.get_input_embeddings().weight.shape[0], dtype=torch.bool)
    special[added_ids(plm.tokenizer)] = True
    return special


def plain_ids(plm: FrozenPLM) -> Tensor:
    """Whether each token id begins a word and is letters and digits, no capital, (vocabulary,).

    What marks a token is told from the vocabulary: WordPiece marks those within a word by ``##``,
    byte-level and SentencePiece vocabularies those that begin one.
    """
    special = special_ids(plm)
    plain = torch.zeros_like(special)
    tokens = plm.tokenizer.get_vocab()
    starts = next((mark for mark in STARTS if sum(t.startswith(mark) for t in tokens) > 1), "")
    for token, i in tokens.items():
        if i >= len(plain) or special[i] or not token.startswith(starts) or token[:2] == WITHIN:
            continue
        word = token.removeprefix(starts)
        if starts == STARTS[0] and not word.isascii():  # bytes that stand for letters
            word = plm.tokenizer.convert_tokens_to_string([token]).strip()
        plain[i] = word.isalnum() and word == word.lower()
    return plain


def _by_id(counter: Counter[int], special: Tensor) -> Tensor:
    """Counts as an array over the vocabulary, 0 for special tokens."""
    array = torch.zeros(len(special), dtype=torch.float64)
    array[list(counter)] = torch.tensor(list(counter.values()), dtype=torch.float64)
    return array.masked_fill(special, 0.0)


def with_corpus(
    pooling: Pooling,
    corpus: Corpus | None,
    plm: FrozenPLM,
    max_length: int,
    window: int,
    frame: Frame | None = None,
) -> tuple[Pooling, dict[str, Any] | None]:
    """The head, its token weights estimated on the corpus where it needs that.

    Returns:
        The head, and what was read for it; None where it needs no corpus.

    Raises:
        UserError: it needs one and there is none.
    """
    if not is_estimated(pooling):
        return pooling, None
    if corpus is None:
        raise UserError(
            "this pooling weighs tokens by how often a corpus has them: choose one, as "
            "corpus=text corpus.path=FILE."
        )
    counts, read = count_tokens(corpus, plm, max_length, window, frame)
    return estimated(pooling, counts), read
