"""Cosines: zero vectors, exact ties, chunks."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.similarity import cosine


def test_equals_the_formula() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(30, 8))
    pairs = generator.integers(0, 30, size=(50, 2))
    wanted = [x[a] @ x[b] / np.sqrt((x[a] @ x[a]) * (x[b] @ x[b])) for a, b in pairs]
    assert np.allclose(cosine(x, pairs), wanted, atol=1e-12)
    assert np.array_equal(cosine(x, pairs, chunk=7), cosine(x, pairs))


def test_zero_vectors_have_cosine_zero() -> None:
    x = np.array([[0.0, 0.0], [1.0, 2.0]])
    assert cosine(x, np.array([[0, 1], [1, 0], [0, 0], [1, 1]])).tolist() == [0, 0, 0, 1]


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
@settings(max_examples=50, deadline=None)
def test_equal_sentences_tie_exactly(seed: int, scale: float) -> None:
    """Every pair of a row with itself is 1.0 to the last bit; so are pairs of its multiples."""
    x = np.random.default_rng(seed).normal(size=(20, 384)).astype(np.float32) * scale
    same = np.repeat(np.arange(20)[:, None], 2, axis=1)
    assert (cosine(x, same) == 1.0).all()
    both = np.concatenate([x, 3 * x])
    assert (cosine(both, np.stack([np.arange(20), np.arange(20, 40)], 1)) == 1.0).all()
