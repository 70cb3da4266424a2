"""Similarity made up without labels, for choosing between heads: do vectors follow telling words?

Each of the sentences is paired with the `NEAR` that are nearest to it and `FAR` drawn at random.
The made gold score of a pair is the cosine of its tf-idf vectors,

    x[s, w] = count of w in s * (ln((1 + n) / (1 + n_w)) + 1)

over the n sentences, n_w of them with the token id w; special tokens are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from whitepool.data.pairs import PairSet
from whitepool.data.table import Tokenize
from whitepool.errors import UserError
from whitepool.geometry import Floats, unit
from whitepool.plm import FrozenPLM
from whitepool.token_counts import added_ids

CRITERION = "tf-idf cosines"
NEAR, FAR = 5, 5
FEWEST = 50


def pseudo_gold(plm: FrozenPLM, texts: Sequence[str], tokenize: Tokenize, seed: int = 0) -> PairSet:
    """Pairs of ``texts`` with made gold scores.

    Raises:
        UserError: fewer than `FEWEST` texts.
    """
    if len(texts) < FEWEST:
        raise UserError(
            f"pooling.head=unsupervised has {len(texts)} sentences to judge heads by: give data= "
            f"or corpus= with {FEWEST} or more, or pooling.block= and pooling.head=."
        )
    ids, _ = tokenize(texts)
    cosines = tfidf_cosines(ids, added_ids(plm.tokenizer))
    pairs = neighbours(cosines, np.random.default_rng(seed))
    first, second = (tuple(texts[row] for row in rows) for rows in pairs.T)
    gold = cosines[pairs[:, 0], pairs[:, 1]]
    return PairSet("unlabelled", "", "dev", first, second, gold, CRITERION, "")


def tfidf_cosines(ids: Sequence[Sequence[int]], special: Sequence[int]) -> Floats:
    """Cosines of the tf-idf vectors of all sentences, (n, n)."""
    left_out = set(special)
    words = [[token for token in sequence if token not in left_out] for sequence in ids]
    with_token = Counter(token for sequence in words for token in set(sequence))
    column = {token: place for place, token in enumerate(with_token)}
    n_w = np.array(list(with_token.values()), dtype=np.float64)
    bags = np.zeros((len(ids), len(column)))
    for row, sequence in enumerate(words):
        np.add.at(bags[row], [column[token] for token in sequence], 1.0)
    u = unit(bags * (np.log((1 + len(ids)) / (1 + n_w)) + 1))
    result: Floats = u @ u.T
    return result


def neighbours(cosines: Floats, draw: np.random.Generator) -> NDArray[np.int64]:
    """Pairs of each sentence with its `NEAR` nearest and `FAR` others, (pair, 2)."""
    n = len(cosines)
    apart = cosines - 2 * np.eye(n)
    near = np.argsort(-apart, axis=1, kind="stable")[:, :NEAR]
    far = (np.arange(n)[:, None] + draw.integers(1, n, (n, FAR))) % n
    second = np.concatenate([near, far], axis=1)
    return np.stack([np.repeat(np.arange(n), NEAR + FAR), second.ravel()], axis=1)
