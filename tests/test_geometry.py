"""Geometry of vectors against loops written from the papers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.geometry import alignment, anisotropy, entropy_rank, isoscore, uniformity


def cloud(seed: int, n: int = 40, dim: int = 7) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(n, dim)) * generator.uniform(0.1, 3, dim) + generator.normal()


def isoscore_of_the_paper(x: np.ndarray) -> float:
    """The seven steps of Rudman et al. 2022, in their order."""
    values = np.linalg.eigvalsh(np.cov(x.T))  # variances along the principal axes
    n = len(values)
    scaled = np.sqrt(n) * values / np.linalg.norm(values)
    defect = np.linalg.norm(scaled - 1) / np.sqrt(2 * (n - np.sqrt(n)))
    share = (n - defect**2 * (n - np.sqrt(n))) ** 2 / n**2
    return float((n * share - 1) / (n - 1))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_against_loops(seed: int) -> None:
    x = cloud(seed)
    u = x / np.linalg.norm(x, axis=1)[:, None]
    apart = [(i, j) for i in range(len(x)) for j in range(len(x)) if i != j]
    assert anisotropy(x) == pytest.approx(np.mean([u[i] @ u[j] for i, j in apart]), abs=1e-12)
    near = [np.exp(-2 * np.sum((u[i] - u[j]) ** 2)) for i, j in apart]
    assert uniformity(x) == pytest.approx(np.log(np.mean(near)), abs=1e-12)
    pairs = np.array(apart[::7])
    close = [np.sum((u[i] - u[j]) ** 2) for i, j in pairs]
    assert alignment(x, pairs) == pytest.approx(np.mean(close), abs=1e-12)
    assert isoscore(np.cov(x.T)) == pytest.approx(isoscore_of_the_paper(x), abs=1e-9)


def test_uniformity_in_blocks_leaves_out_each_row_once() -> None:
    x = cloud(3, n=2050, dim=3)
    u = x / np.linalg.norm(x, axis=1)[:, None]
    near = np.exp(-2 * np.sum((u[:, None] - u[None]) ** 2, axis=-1))
    np.fill_diagonal(near, 0)
    assert uniformity(x) == pytest.approx(np.log(near.sum() / (2050 * 2049)), abs=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_invariances(seed: int, scale: float) -> None:
    x = cloud(seed)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(7, 7)))
    turned = scale * x @ rotation
    assert anisotropy(turned) == pytest.approx(anisotropy(x), abs=1e-9)
    assert uniformity(turned) == pytest.approx(uniformity(x), abs=1e-9)
    assert isoscore(np.cov(turned.T)) == pytest.approx(isoscore(np.cov(x.T)), abs=1e-9)


@pytest.mark.parametrize("dim", [2, 16, 384])
def test_ends_of_the_scales(dim: int) -> None:
    assert isoscore(3 * np.eye(dim)) == pytest.approx(1)
    one = np.zeros((dim, dim))
    one[0, 0] = 5
    assert isoscore(one) == pytest.approx(0, abs=1e-12)
    assert entropy_rank(np.full(dim, 2.0)) == pytest.approx(dim)
    assert entropy_rank(np.eye(dim)[0]) == pytest.approx(1)


def test_what_has_no_value() -> None:
    assert np.isnan(anisotropy(np.ones((1, 3))))
    assert np.isnan(uniformity(np.ones((1, 3))))
    assert np.isnan(alignment(np.ones((2, 3)), np.zeros((0, 2), dtype=np.int64)))
    with pytest.raises(UserError, match="IsoScore"):
        isoscore(np.zeros((3, 3)))
    with pytest.raises(UserError, match="rank"):
        entropy_rank(np.zeros(3))


def test_a_zero_vector_has_cosine_zero() -> None:
    assert anisotropy(np.array([[1.0, 0], [0, 0], [1, 0]])) == pytest.approx(2 / 6)
