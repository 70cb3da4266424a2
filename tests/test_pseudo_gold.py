"""Made gold scores, against loops written from their formulas."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.pseudo_gold import FAR, NEAR, neighbours, pseudo_gold, tfidf_cosines

from tiny import WORDS

TOKENS = st.lists(st.lists(st.integers(0, 6), max_size=6), min_size=1, max_size=8)


def cosines_by_loops(ids: list[list[int]], special: set[int]) -> np.ndarray[Any, Any]:
    n = len(ids)
    result = np.zeros((n, n))
    for i, one in enumerate(ids):
        for j, other in enumerate(ids):
            dot = squares = squares_other = 0.0
            for w in {t for some in ids for t in some} - special:
                n_w = sum(w in some for some in ids)
                idf = math.log((1 + n) / (1 + n_w)) + 1
                a, b = one.count(w) * idf, other.count(w) * idf
                dot, squares, squares_other = dot + a * b, squares + a * a, squares_other + b * b
            if squares and squares_other:
                result[i, j] = dot / math.sqrt(squares * squares_other)
    return result


@given(TOKENS)
def test_tfidf_cosines(ids: list[list[int]]) -> None:
    assert tfidf_cosines(ids, [0, 3]) == pytest.approx(cosines_by_loops(ids, {0, 3}), abs=1e-12)


def test_pairs_are_the_nearest_and_others() -> None:
    draw = np.random.default_rng(1)
    x = draw.normal(size=(40, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    cosines = x @ x.T
    pairs = neighbours(cosines, np.random.default_rng(0)).reshape(40, NEAR + FAR, 2)
    for i in range(40):
        others = sorted((j for j in range(40) if j != i), key=lambda j: -cosines[i, j])
        assert pairs[i, :NEAR, 1].tolist() == others[:NEAR]
    assert (pairs[..., 0] == np.arange(40)[:, None]).all()
    assert (pairs[..., 0] != pairs[..., 1]).all()
    assert len(np.unique(pairs[:, NEAR:, 1])) == 40  # drawn from all


def test_no_special_token_and_no_label_counts(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    draw = random.Random(0)
    texts = list({" ".join(draw.choices(WORDS, k=5)) for _ in range(60)})
    made = pseudo_gold(model, texts, lambda some: model.tokenize(some, 64))
    words = [[WORDS.index(word) for word in text.split()] for text in texts]
    expected = cosines_by_loops(words, set())
    row = {text: i for i, text in enumerate(texts)}
    assert len(made) == len(texts) * (NEAR + FAR)
    for a, b, gold in zip(made.first, made.second, made.gold, strict=True):
        assert gold == pytest.approx(expected[row[a], row[b]], abs=1e-12)


def test_too_few_sentences(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    with pytest.raises(UserError, match=r"has 2 sentences to judge heads by: give data= or corpus"):
        pseudo_gold(model, ["a dog", "a cat"], lambda some: model.tokenize(some, 64))
