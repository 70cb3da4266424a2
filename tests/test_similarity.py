"""Cosines: zero vectors, exact ties, chunks."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.similarity import cosine, in_units


def test_equals_the_formula() -> None:
    generator = np.random.default_rng(0)
    x = generator.normal(size=(30, 8))
    pairs = generator.integers(0, 30, size=(50, 2))
    wanted = [x[a] @ x[b] / np.sqrt((x[a] @ x[a]) * (x[b] @ x[b])) for a, b in pairs]
    assert np.allclose(cosine(x, pairs), wanted, atol=1e-12)
    assert np.array_equal(cosine(x, pairs, chunk=7), cosine(x, pairs))
    assert cosine(x, pairs[:0]).shape == (0,)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 60))
@settings(max_examples=50, deadline=None)
def test_a_step_goes_before_and_chunks_and_repeats_do_not_show(
    seed: int, chunk: int, count: int
) -> None:
    generator = np.random.default_rng(seed)
    x, basis = generator.normal(size=(12, 33)), generator.normal(size=(33, 20))
    pairs = generator.integers(0, 12, size=(count, 2))
    seen: list[int] = []

    def through(some: np.ndarray, rows: np.ndarray) -> np.ndarray:
        assert np.array_equal(some, x[rows])
        seen.extend(rows)
        mapped = some @ basis
        mapped[rows == 3] = 0.0
        return mapped

    before, z = x.copy(), x @ basis
    z[3] = 0.0
    found = cosine(x, pairs, chunk, through)
    wanted = [0.0 if 3 in p else z[p[0]] @ z[p[1]] for p in pairs]
    wanted /= np.prod(np.maximum(np.linalg.norm(z[pairs], axis=2), 1e-9), axis=1)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-12)
    assert np.array_equal(x, before)
    assert set(seen) == set(pairs.ravel())
    again = cosine(x, np.concatenate([pairs, pairs[::-1, ::-1]]), chunk, through)
    assert np.array_equal(again[:count], again[count:][::-1])


def test_memory_does_not_grow_with_the_pairs() -> None:
    x = np.random.default_rng(0).normal(size=(6000, 256)).astype(np.float32)
    peaks = []
    for count in (1500, 3000):
        pairs = np.arange(2 * count).reshape(count, 2)
        tracemalloc.start()
        cosine(x, pairs, 500, lambda some, _: some - 1.0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    own = 3 * 1000 * 256 * 8  # vectors, mapped vectors and those laid side by side
    assert peaks[1] < peaks[0] + 1500 * 100 < 2 * own


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


@given(
    st.lists(st.floats(-1, 1) | st.integers(-(2**52), 2**52).map(lambda i: i / 2**52), min_size=1)
)
@settings(max_examples=200, deadline=None)
def test_units_are_rounded_as_cosines_are(values: list[float]) -> None:
    x = np.array([*values, 1.0, -1.0, 0.0, -0.0, 5e-13, -5e-13, 1.5e-12, 2.5e-12])
    units = in_units(x.copy())
    assert units.dtype == np.int64
    assert np.array_equal(units, np.rint(x * 1e12))
    assert np.array_equal(units / 1e12, np.round(x, 12))
