"""Made gold scores, against numpy written from their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.pseudo_gold import FAR, NEAR, neighbours, pseudo_gold, whitened_cosines


def by_loops(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """OAS (Chen et al. 2010) as its paper has it, the inverse in place of a basis."""
    x = x.astype(float)
    n, d = x.shape
    s = np.cov(x, rowvar=False)
    mu, trace = np.trace(s) / d, float((s @ s).trace())
    top = (1 - 2 / d) * trace + (mu * d) ** 2
    bottom = (n + 1 - 2 / d) * (trace - (mu * d) ** 2 / d)
    share = min(1.0, top / bottom)
    inverse = np.linalg.inv((1 - share) * s + share * mu * np.eye(d))
    result = np.zeros((n, n))
    for i, a in enumerate(x - x.mean(0)):
        for j, b in enumerate(x - x.mean(0)):
            result[i, j] = a @ inverse @ b / np.sqrt((a @ inverse @ a) * (b @ inverse @ b))
    return result


@given(st.integers(0, 1000), st.integers(4, 12))
def test_whitened_cosines(seed: int, n: int) -> None:
    draw = np.random.default_rng(seed)
    x = (draw.normal(size=(n, 5)) @ draw.normal(size=(5, 5)) + 3).astype(np.float32)
    assert whitened_cosines(x) == pytest.approx(by_loops(x), abs=1e-6)


@given(st.integers(0, 1000))
def test_neither_origin_nor_scale_matters(seed: int) -> None:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(9, 3))
    moved = (4 * x + draw.normal(size=3)).astype(np.float32)
    assert whitened_cosines(moved) == pytest.approx(
        whitened_cosines(x.astype(np.float32)), abs=1e-4
    )


def test_pairs_are_the_nearest_and_others() -> None:
    x = np.random.default_rng(1).normal(size=(40, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    cosines = x @ x.T
    pairs = neighbours(cosines, np.random.default_rng(0)).reshape(40, NEAR + FAR, 2)
    for i in range(40):
        others = sorted((j for j in range(40) if j != i), key=lambda j: -cosines[i, j])
        assert pairs[i, :NEAR, 1].tolist() == others[:NEAR]
    assert (pairs[..., 0] == np.arange(40)[:, None]).all()
    assert (pairs[..., 0] != pairs[..., 1]).all()
    assert len(np.unique(pairs[:, NEAR:, 1])) == 40  # drawn from all


def test_the_pairs_have_the_cosines_of_their_own_texts() -> None:
    x = np.random.default_rng(2).normal(size=(60, 4)).astype(np.float32)
    texts = [f"text {i}" for i in range(60)]
    made = pseudo_gold(texts, x)
    expected = by_loops(x)
    assert len(made) == 60 * (NEAR + FAR)
    for a, b, gold in zip(made.first, made.second, made.gold, strict=True):
        assert gold == pytest.approx(expected[texts.index(a), texts.index(b)], abs=1e-6)


def test_too_few_sentences() -> None:
    with pytest.raises(UserError, match=r"has 2 sentences to judge heads by: give data= or corpus"):
        pseudo_gold(["a dog", "a cat"], np.eye(2, dtype=np.float32))
