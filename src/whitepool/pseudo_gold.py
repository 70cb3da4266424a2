"""Similarity made up without labels, for choosing between heads: that of whitened means.

Each sentence is paired with the `NEAR` that are nearest to it and with `FAR` others, drawn at
random. The made gold score of a pair is the cosine of its whitened vectors,

    cos(B'(v_i - m), B'(v_j - m)),   v = 1/L sum_l 1/T sum_t h[l, t]

with the layers that the heads weigh tokens of, and m and B of whitening (`Shrinkage`, since the
sentences may be few). A head is good if weighing tokens by it brings raw cosines near to those of
whitened means: both counter the few directions that all tokens share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from whitepool.data.pairs import PairSet
from whitepool.errors import UserError
from whitepool.geometry import Floats
from whitepool.maps import Shrinkage
from whitepool.moments import Moments
from whitepool.similarity import unit

CRITERION = "whitened cosines"
NEAR, FAR = 5, 10
FEWEST = 50


def pseudo_gold(texts: Sequence[str], vectors: NDArray[np.float32], seed: int = 0) -> PairSet:
    """Pairs of ``texts`` with made gold scores, from their means ``vectors``, (text, dim).

    Raises:
        UserError: fewer than `FEWEST` texts.
    """
    if len(texts) < FEWEST:
        raise UserError(
            f"pooling.head=unsupervised has {len(texts)} sentences to judge heads by: give data= "
            f"or corpus= with {FEWEST} or more, or pooling.block= and pooling.head=."
        )
    cosines = whitened_cosines(vectors)
    return as_pairs(texts, cosines, neighbours(cosines, np.random.default_rng(seed)))


def whitened_cosines(vectors: NDArray[np.float32]) -> Floats:
    """Cosines of all vectors, (n, dim), whitened on themselves: (n, n)."""
    x = torch.from_numpy(vectors).double()
    u = unit(Shrinkage().fit(Moments(x.shape[1]).update(x))(x).numpy())
    result: Floats = u @ u.T
    return result


def neighbours(cosines: Floats, draw: np.random.Generator) -> NDArray[np.int64]:
    """Pairs of each sentence with its `NEAR` nearest and `FAR` others, (pair, 2)."""
    n = len(cosines)
    apart = cosines - 3 * np.eye(n)
    near = np.argsort(-apart, axis=1, kind="stable")[:, :NEAR]
    far = (np.arange(n)[:, None] + draw.integers(1, n, (n, FAR))) % n
    second = np.concatenate([near, far], axis=1)
    return np.stack([np.repeat(np.arange(n), NEAR + FAR), second.ravel()], axis=1)


def as_pairs(texts: Sequence[str], cosines: Floats, pairs: NDArray[np.int64]) -> PairSet:
    """Pairs of texts, (pair, 2), with their cosines for gold scores."""
    first, second = (tuple(texts[row] for row in rows) for rows in pairs.T)
    gold = cosines[pairs[:, 0], pairs[:, 1]]
    return PairSet("unlabelled", "", "dev", first, second, gold, "made without labels", "")
