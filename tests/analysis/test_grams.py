"""Cosines and ranks of all mixes against loops over the vectors themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from whitepool.analysis import grams
from whitepool.analysis.grams import design, mix_cosines, products
from whitepool.analysis.whitened import by_cholesky
from whitepool.moments import LayerMoments, Moments
from whitepool.similarity import cosine
from whitepool.whitening import Whitening


def vectors(seed: int, n: int, slots: int, dim: int) -> NDArray[np.float32]:
    draw = np.random.default_rng(seed)
    common = draw.normal(size=(n, 1, dim)) + 3
    return (common + draw.normal(size=(n, slots, dim))).astype(np.float32)


def subsets(slots: int) -> list[tuple[int, ...]]:
    return [m for n in range(1, slots + 1) for m in itertools.combinations(range(slots), n)]


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 10**6),
    st.integers(1, 12),
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(1, 25),
)
def test_gram_cosines_are_the_cosines_of_the_mixed_vectors(
    seed: int, n: int, slots: int, dim: int, step: int
) -> None:
    x = vectors(seed, n, slots, dim)
    pairs = np.random.default_rng(seed).integers(0, n, (20, 2))
    a, b = torch.from_numpy(x[pairs].astype(np.float64)).unbind(1)
    mixes = subsets(slots)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grams, "_PAIRS", step)
        found = mix_cosines(design(mixes, slots), products(a, b), products(a, a), products(b, b))
    for mix, values in zip(mixes, found, strict=True):
        mixed = x.astype(np.float64)[:, list(mix)].mean(1)
        np.testing.assert_allclose(1e-12 * values, cosine(mixed, pairs), rtol=0, atol=3e-12)


def test_equal_sentences_tie_and_zero_vectors_have_cosine_zero() -> None:
    x = vectors(0, 6, 3, 8)
    x[5] = 0
    pairs = np.array([[0, 0], [3, 3], [1, 2], [2, 1], [1, 5], [5, 5]])
    a, b = torch.from_numpy(x[pairs].astype(np.float64)).unbind(1)
    found = mix_cosines(design(subsets(3), 3), products(a, b), products(a, a), products(b, b))
    assert (found[:, :2] == 10**12).all()
    assert (found[:, 2] == found[:, 3]).all()
    assert (found[:, 4:] == 0).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 40))
def test_moments_of_a_mix_are_those_of_the_mixed_vectors(seed: int, slots: int, cut: int) -> None:
    x = torch.from_numpy(vectors(seed, 50, slots, 5))
    counts = torch.from_numpy(np.random.default_rng(seed).integers(0, 4, 50))
    weights = np.random.default_rng(seed).normal(size=slots)
    weights[0] = 0.0 if slots > 1 else 1.0
    both = LayerMoments(slots, 5)
    both.update(x[:cut], counts[:cut]).update(x[cut:], counts[cut:])
    mixed = torch.einsum("nld,l->nd", x.double(), torch.from_numpy(weights))
    wanted = Moments(5).update(mixed, counts)
    found = both.mix(weights.tolist())
    assert found.count == wanted.count
    torch.testing.assert_close(found.mean, wanted.mean, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found.scatter, wanted.scatter, rtol=1e-9, atol=1e-8)


def test_layer_moments_leave_their_input_alone() -> None:
    x = torch.arange(12, dtype=torch.float64).reshape(4, 1, 3)
    before = x.clone()
    LayerMoments(1, 3).update(x, torch.ones(4))
    assert torch.equal(x, before)


def test_moments_without_crossed_blocks_refuse_a_mix() -> None:
    moments = LayerMoments(2, 3, crossed=False)
    assert set(moments.blocks) == {(0, 0), (1, 1)}
    with pytest.raises(KeyError):
        moments.mix([0.5, 0.5])


def test_cholesky_gives_the_cosines_of_full_whitening() -> None:
    x = torch.from_numpy(vectors(1, 300, 1, 20)[:, 0])
    moments = Moments(20).update(x)
    by = by_cholesky(moments)
    assert by is not None
    pairs = np.random.default_rng(0).integers(0, 300, (100, 2))
    found, wanted = (cosine(f(x.double()).numpy(), pairs) for f in (by, Whitening().fit(moments)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11)


@pytest.mark.parametrize("n", [15, 300])
def test_cholesky_is_left_where_the_rank_cut_would_drop_directions(n: int) -> None:
    """Too few vectors; or enough, of which one direction is no more than rounding noise."""
    x = torch.from_numpy(vectors(2, n, 1, 20)[:, 0]).double()
    x[:, -1] = x[:, :-1].sum(1) + 1e-10 * torch.randn(n, dtype=torch.float64)
    moments = Moments(20).update(x)
    assert Whitening().fit(moments).rank < 20
    assert by_cholesky(moments) is None
