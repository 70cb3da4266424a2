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
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.pooling.estimated import TokenCounts, estimated, is_estimated

log = logging.getLogger(__name__)


def count_tokens(
    corpus: Corpus, plm: FrozenPLM, max_length: int, window: int
) -> tuple[TokenCounts, dict[str, Any]]:
    """Count the token ids of a corpus, texts cut to ``max_length`` tokens.

    Args:
        corpus: the texts.
        plm: the model whose tokens they are.
        max_length: tokens per text, special ones included.
        window: texts read at a time.

    Returns:
        The counts, and what was read as `Reading.describe` has it.

    Raises:
        UserError: a fault in the corpus, or no text in it.
    """
    started = time.perf_counter()
    special = special_ids(plm)
    texts_with: Counter[int] = Counter()
    occurrences: Counter[int] = Counter()
    reading = corpus.read()
    while texts := [text.text for text in itertools.islice(reading, window)]:
        for ids in plm.tokenize(texts, max_length).ids:
            occurrences.update(ids)
            texts_with.update(set(ids))
    if not reading.used:
        raise UserError(f"corpus={corpus.name} has no text but blank ones: give one with text.")
    counts = TokenCounts(
        reading.used, _by_id(texts_with, special), _by_id(occurrences, special), special
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
    tokenizer = plm.tokenizer
    # The unknown token stands for words.
    special[[i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id]] = True
    return special


def _by_id(counter: Counter[int], special: Tensor) -> Tensor:
    """Counts as an array over the vocabulary, 0 for special tokens."""
    array = torch.zeros(len(special), dtype=torch.float64)
    array[list(counter)] = torch.tensor(list(counter.values()), dtype=torch.float64)
    return array.masked_fill(special, 0.0)


def with_corpus(
    pooling: Pooling, corpus: Corpus | None, plm: FrozenPLM, max_length: int, window: int
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
    counts, read = count_tokens(corpus, plm, max_length, window)
    return estimated(pooling, counts), read
