"""Moments of words: what Zipfian whitening (`whitepool.maps.zipfian`) is fitted on.

    m = sum_w n_w x_w / n,   S = sum_w n_w (x_w - m)(x_w - m)'

with x_w the row of the word-embedding table and n_w how often the fit set has token w. Special
tokens that a tokenizer adds are no words and are not counted; the unknown token is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.errors import UserError
from whitepool.maps.zipfian import Zipfian
from whitepool.moments import Moments
from whitepool.plm import FrozenPLM
from whitepool.pooling import LinearPooling, Pooling, VocabularyWeights, Words
from whitepool.pooling.estimated import Estimated
from whitepool.token_counts import special_ids
from whitepool.whitening import PostProcess

STEP = 8192  # words of which the vectors are in float64 at a time


def of_words(post: PostProcess | None) -> bool:
    """Whether a step is fitted on the moments of words."""
    return isinstance(post, Zipfian)


def check_words(post: PostProcess | None, pooling: Pooling) -> None:
    """See that a step for words comes after a mean of their vectors, with weights that add to 1.

    Raises:
        UserError: it does not.
    """
    if not of_words(post):
        return
    static = isinstance(pooling, LinearPooling) and pooling.layers == ("static",)
    if not static:
        raise UserError(
            "whitening=zipfian whitens word vectors and the head is no mean of them: use "
            "pooling=static_words, or idf, sif or usif with pooling.layers=[static]."
        )
    assert isinstance(pooling, LinearPooling)
    if not isinstance(pooling.tokens, Words | VocabularyWeights | Estimated):
        # Their vectors, far from those of words, would be whitened to the largest of all.
        raise UserError(
            "whitening=zipfian counts words alone and the head averages special tokens too: use "
            "pooling=static_words, or idf, sif or usif with pooling.layers=[static]."
        )


def counted(
    plm: FrozenPLM, ids: Sequence[Sequence[int]], times: Sequence[int] | NDArray[np.int64]
) -> Tensor:
    """How often each token id occurs, (vocabulary,), float64, in texts that occur several times.

    Args:
        plm: whose tokens they are; its special tokens count 0.
        ids: token ids of each text.
        times: how often each text occurs.
    """
    special = special_ids(plm)
    lengths = [len(sequence) for sequence in ids]
    flat = np.fromiter((i for sequence in ids for i in sequence), np.int64, sum(lengths))
    weights = np.repeat(np.asarray(times, dtype=np.float64), lengths)
    counts = np.bincount(flat, weights, minlength=len(special))
    return torch.from_numpy(counts).masked_fill(special, 0.0)


def word_moments(plm: FrozenPLM, counts: Tensor) -> Moments:
    """Moments of the word vectors, each token id counted as often as ``counts``, (vocabulary,)."""
    table = plm.model.get_input_embeddings().weight.detach()
    moments = Moments(table.shape[1])
    for words in torch.split(counts.nonzero().flatten(), STEP):
        moments.update(table[words.to(table.device)].float().cpu(), counts[words])
    return moments


def moments_of_fit_sets(
    plm: FrozenPLM, ids: Sequence[Sequence[int]], counts: Mapping[str, NDArray[np.int64]]
) -> dict[str, Moments]:
    """Moments of the words of each fit set.

    Args:
        plm: the model.
        ids: token ids of each row.
        counts: how often each row occurs in each fit set, (row,), by its name.
    """
    return {
        name: word_moments(plm, counted(plm, ids, times))
        for name, times in counts.items()
        if times.any()
    }
