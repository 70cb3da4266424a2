"""Moments: chunks, order, weights and merges change nothing; oracle numpy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.moments import Moments

SEEDS = st.integers(0, 2**32 - 1)


def data(seed: int, n: int, dim: int, offset: float = 0.0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, dim)) + offset)


def close(a: Moments, b: Moments, tolerance: float = 1e-10) -> bool:
    scale = max(1.0, float(b.scatter.abs().max()))
    return (
        a.count == b.count
        and bool((a.mean - b.mean).abs().max() <= tolerance * max(1.0, float(b.mean.abs().max())))
        and bool((a.scatter - b.scatter).abs().max() <= tolerance * scale)
    )


@given(SEEDS, st.integers(2, 60), st.integers(1, 8), st.data())
@settings(max_examples=60, deadline=None)
def test_chunks_equal_one_shot(seed: int, n: int, dim: int, draw: st.DataObject) -> None:
    x = data(seed, n, dim, offset=5.0)
    cuts = sorted(draw.draw(st.lists(st.integers(0, n), max_size=5)))
    chunked = Moments(dim)
    for start, stop in zip([0, *cuts], [*cuts, n], strict=True):
        chunked.update(x[start:stop])
    assert close(chunked, Moments(dim).update(x))


@given(SEEDS, st.integers(2, 40), st.integers(1, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_merge_in_any_order_equals_one_shot(
    seed: int, n: int, dim: int, draw: st.DataObject
) -> None:
    x = data(seed, n, dim)
    owner = torch.tensor(draw.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    parts = [Moments(dim).update(x[owner == part]) for part in range(4)]
    merged = Moments(dim)
    for part in draw.draw(st.permutations(parts)):
        merged.merge(part)
    assert close(merged, Moments(dim).update(x))


@given(SEEDS, st.integers(1, 30), st.integers(1, 6), st.data())
@settings(max_examples=60, deadline=None)
def test_weights_are_repeats(seed: int, n: int, dim: int, draw: st.DataObject) -> None:
    x = data(seed, n, dim)
    times = torch.tensor(draw.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    repeated = Moments(dim).update(x.repeat_interleave(times, 0))
    assert close(Moments(dim).update(x, times), repeated)


def test_equals_numpy() -> None:
    x = data(0, 500, 7, offset=3.0)
    moments = Moments(7).update(x)
    assert np.allclose(moments.mean, x.numpy().mean(0), atol=1e-12)
    assert np.allclose(moments.covariance(), np.cov(x.numpy(), rowvar=False), atol=1e-12)


def test_large_mean_keeps_its_digits() -> None:
    """E[xx'] - mm' would be off by about 1e-4 here: 1e12 * 2.2e-16."""
    x = data(1, 2000, 5)
    shifted = Moments(5)
    for chunk in (x + 1e6).split(170):
        shifted.update(chunk)
    exact = np.cov(x.numpy(), rowvar=False)
    assert np.abs(shifted.covariance().numpy() - exact).max() < 1e-9


def test_float32_vectors_are_accumulated_in_float64() -> None:
    x = data(2, 1000, 4).float()
    moments = Moments(4).update(x)
    assert moments.scatter.dtype == torch.float64
    assert np.allclose(moments.covariance(), np.cov(x.double().numpy(), rowvar=False), atol=1e-13)


def test_works_inside_inference_mode() -> None:
    with torch.inference_mode():
        moments = Moments(3).update(data(3, 10, 3))
    moments.update(data(4, 10, 3))  # outside: would fail if tensors were written in place
    assert moments.count == 20


def test_bad_vectors_are_named() -> None:
    x = data(5, 9, 3)
    x[2, 1], x[7, 0] = float("nan"), float("inf")
    with pytest.raises(UserError, match=r"2 of 9 vectors are not finite \(rows 2, 7\)"):
        Moments(3).update(x)


@pytest.mark.parametrize("n", [0, 1])
def test_a_covariance_needs_two_vectors(n: int) -> None:
    with pytest.raises(UserError, match=f"at least 2 vectors and {n} was given"):
        Moments(3).update(data(6, n, 3)).covariance()
