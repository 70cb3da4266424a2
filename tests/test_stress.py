"""Moments, maps and correlations where float64 is pressed, beside 60 digits of mpmath.

Bounds are multiples of float64's eps (2.2e-16) and, for whitening, of the condition number: no
method that sees the same covariance in float64 can do better than that.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from numpy.typing import NDArray

from whitepool.analysis.whitened import by_cholesky
from whitepool.correlation import pearson, spearman
from whitepool.errors import UserError
from whitepool.maps import Center, RemoveTop, Shrinkage, Soft, Standardize, Tempered, Zca
from whitepool.moments import LayerMoments, Moments
from whitepool.similarity import cosine, cosine_matrix, cosine_rows
from whitepool.spectrum import Spectrum
from whitepool.whitening import PostProcess, Whitening

Floats = NDArray[np.float64]
EPS = float(np.finfo(np.float64).eps)
SEEDS = st.integers(0, 2**31)
EVERY: tuple[PostProcess, ...] = (
    Whitening(), Zca(), Tempered(), Soft(), Shrinkage(), Center(), Standardize(), RemoveTop(),
)  # fmt: skip


def conditioned(seed: int, n: int, dim: int, power: float, mean: float = 0.0) -> Floats:
    """Vectors whose covariance has eigenvalues from about 1 down to 10^-power, turned at random."""
    draw = np.random.default_rng(seed)
    scales = 10.0 ** (-power / 2 * np.arange(dim) / max(1, dim - 1))
    turn = np.linalg.qr(draw.normal(size=(dim, dim)))[0]
    return np.asarray((draw.normal(size=(n, dim)) * scales) @ turn + mean)


def moments_of(x: Floats, *chunks: int) -> Moments:
    moments = Moments(x.shape[1])
    for part in np.split(x, sorted(chunks)):
        moments.update(torch.from_numpy(part))
    return moments


def exact(x: Floats) -> tuple[mpmath.matrix, mpmath.matrix]:
    """Deviations, (n, dim), and covariance, (dim, dim), with 60 digits."""
    rows = [[mpmath.mpf(float(value)) for value in row] for row in x]
    n = len(rows)
    means = [mpmath.fsum(column) / n for column in zip(*rows, strict=True)]
    deviations = mp.matrix([[v - m for v, m in zip(row, means, strict=True)] for row in rows])
    return deviations, deviations.T * deviations / (n - 1)


def to_numpy(matrix: mpmath.matrix) -> Floats:
    return np.array(matrix.tolist(), dtype=np.float64)


@pytest.fixture(autouse=True, scope="module")
def digits() -> None:
    mp.dps = 60


@given(SEEDS, st.integers(2, 40), st.integers(1, 5), st.sampled_from([0.0, 1.0, 1e6, -1e9]),
       st.lists(st.integers(1, 40), max_size=4))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_large_mean_costs_few_digits(
    seed: int, n: int, dim: int, mean: float, chunks: list[int]
) -> None:
    """Deviations of 1 around a mean of up to 1e9: one chunk is exact, and a merge nearly so."""
    x = np.random.default_rng(seed).normal(mean, 1.0, (n, dim))
    _, covariance = exact(x)
    got = moments_of(x, *chunks).covariance().numpy()
    size = float(mpmath.norm(covariance, mpmath.inf))
    known = EPS * abs(mean)  # to which a mean can be known; the gap of two chunks' means feels it
    merged = known * size**0.5 if chunks else 0.0
    error = np.abs(got - to_numpy(covariance)).max()
    assert error <= 8 * n * (EPS * size + known**2 + merged)


@given(SEEDS, st.integers(2, 5), st.floats(0, 12), st.sampled_from([0.0, 1e3]))
@settings(max_examples=60, deadline=None)
def test_whitening_loses_digits_as_the_condition_number_says(
    seed: int, dim: int, power: float, mean: float
) -> None:
    """z'z of whitened vectors is x' C^-1 x, for condition numbers to 1e12, by both ways."""
    x = conditioned(seed, 10 * dim, dim, power, mean)
    moments = moments_of(x, 3, 17)
    deviations, covariance = exact(x)
    expected = to_numpy(deviations * mpmath.inverse(covariance) * deviations.T)
    values = sorted(map(float, mp.eigsy(covariance, eigvals_only=True)))
    condition = values[-1] / values[0]
    lost = condition + mean * condition**0.5  # the mean is known to eps times itself
    bound = 100 * dim * EPS * lost * np.abs(expected).max()
    affine = Whitening().fit(moments)
    assert affine.rank == dim
    assert Spectrum.of(moments).condition == pytest.approx(condition, rel=100 * dim * EPS * lost)
    for each in (affine, by_cholesky(moments)):
        if each is not None:  # Cholesky only where the rank is full beyond doubt
            z = each(torch.from_numpy(x)).numpy()
            assert np.abs(z @ z.T - expected).max() <= bound


@given(SEEDS, st.integers(2, 5), st.floats(0, 10))
@settings(max_examples=30, deadline=None)
def test_mixed_layers_are_as_exact_as_one(seed: int, dim: int, power: float) -> None:
    """A mix of two layers whose means are large and opposite, so that they cancel."""
    one, other = (conditioned(seed + i, 10 * dim, dim, power, (-1) ** i * 1e6) for i in (0, 1))
    both = torch.from_numpy(np.stack([one, other], axis=1))
    layers = LayerMoments(2, dim)
    for part in both.split(7):
        layers.update(part, torch.ones(len(part)))
    _, covariance = exact((one + other) / 2)
    got = layers.mix([0.5, 0.5]).covariance().numpy()
    # Each vector of a million is itself a whole multiple of 1e-10; so is the half of their sum.
    assert np.abs(got - to_numpy(covariance)).max() <= 1e-10 + 100 * EPS


@pytest.mark.parametrize("dim", [2, 5, 24])
@pytest.mark.parametrize("n", ["1", "2", "d - 1", "d", "d + 1", "10 d"])
def test_any_number_of_vectors(n: str, dim: int) -> None:
    """Fitted vectors have covariance 1 in each direction kept; one vector is refused."""
    count = {"1": 1, "2": 2, "d - 1": dim - 1, "d": dim, "d + 1": dim + 1, "10 d": 10 * dim}[n]
    x = conditioned(count, count, dim, 2.0, 5.0)
    if count < 2:
        with pytest.raises(UserError, match="at least 2 vectors"):
            Whitening().fit(moments_of(x))
        return
    affine = Whitening().fit(moments_of(x))
    assert affine.rank == min(count - 1, dim)
    z = affine(torch.from_numpy(x)).numpy()
    covariance = np.atleast_2d(np.cov(z.T))
    assert np.abs(covariance - np.eye(affine.rank)).max() < 1e-9


@given(SEEDS, st.integers(1, 4), st.integers(0, 3), st.integers(0, 3), st.floats(-1e6, 1e6))
@settings(max_examples=60, deadline=None)
def test_dead_and_doubled_dimensions_are_no_directions(
    seed: int, dim: int, dead: int, doubled: int, value: float
) -> None:
    """Neither changes the cosines of whitened vectors, nor adds to the rank."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(12 * dim, dim))
    doubled = min(doubled, dim)
    wide = np.hstack([x, np.full((len(x), dead), value), x[:, :doubled]])
    wide = wide[:, draw.permutation(wide.shape[1])]
    narrow, other = Whitening().fit(moments_of(x)), Whitening().fit(moments_of(wide))
    assert narrow.rank == other.rank == dim
    a, b = narrow(torch.from_numpy(x)).numpy(), other(torch.from_numpy(wide)).numpy()
    assert np.abs(a @ a.T - b @ b.T).max() < 1e-9


@given(SEEDS, st.integers(2, 40), st.integers(3, 6), st.floats(-37, 37), st.floats(0, 6))
@settings(max_examples=80, deadline=None)
def test_nothing_that_is_not_finite_leaves(
    seed: int, n: int, dim: int, size: float, power: float
) -> None:
    """float32 vectors of any size that it has: a finite result, or a refusal."""
    x = (conditioned(seed, n, dim, power, 1.0) * 10.0**size).astype(np.float32)
    new = torch.from_numpy(np.roll(x, 1, axis=1))
    moments = Moments(dim).update(torch.from_numpy(x))
    for step in EVERY:
        try:
            affine = step.fit(moments)
        except UserError:
            continue
        for y in (torch.from_numpy(x), new):
            z = affine(y)
            assert torch.isfinite(z).all(), step
            pairs = np.array([[0, 1], [1, 1]])
            values = cosine(z.numpy(), pairs)
            assert (np.abs(values) <= 1 + 1e-12).all(), step


@given(SEEDS, st.integers(2, 30), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_bfloat16_vectors_are_what_they_say(seed: int, n: int, dim: int) -> None:
    """Moments of bfloat16 vectors are those of the numbers that they hold, to the last bit."""
    x = torch.from_numpy(np.random.default_rng(seed).normal(3, 1, (n, dim))).bfloat16()
    short, long = Moments(dim).update(x), Moments(dim).update(x.double())
    assert torch.equal(short.mean, long.mean)
    assert torch.equal(short.scatter, long.scatter)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1e-170, 1e-30, 1.0, 1e30, 1e160, 1e300])
def test_cosines_do_not_depend_on_length(size: float) -> None:
    a, b = np.array([3.0, 4.0]) * size, np.array([4.0, 3.0]) * size
    digits = 1e-3 if size < 1e-310 else 1e-12  # a subnormal number has few
    assert cosine_rows(a, b)[0] == pytest.approx(0.96, abs=digits)
    assert cosine_matrix(a, b * -1)[0, 0] == pytest.approx(-0.96, abs=digits)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_cosines_of_what_is_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(UserError, match=r"row 1 .* not finite"):
        cosine_matrix([[1.0, 2.0], [1.0, bad]], [[1.0, 1.0]])


@given(SEEDS, st.integers(3, 40), st.integers(0, 9), st.floats(-1, 1))
@settings(max_examples=60, deadline=None)
def test_pearson_of_nearly_equal_cosines(seed: int, n: int, power: int, level: float) -> None:
    """Cosines that differ in their last digits alone: anisotropic vectors have such."""
    draw = np.random.default_rng(seed)
    x = np.round(level + draw.normal(size=n) * 10.0**-power, 12)
    y = draw.integers(0, 6, n).astype(float)
    if len(set(x)) < 2 or len(set(y)) < 2:
        return
    a, b = ([mpmath.mpf(float(v)) for v in values] for values in (x, y))
    first, second = ([v - mpmath.fsum(values) / n for v in values] for values in (a, b))
    exactly = mpmath.fdot(first, second) / mpmath.sqrt(
        mpmath.fdot(first, first) * mpmath.fdot(second, second)
    )
    assert pearson(x, y) == pytest.approx(
        float(exactly), abs=20 * EPS * (1 + abs(level) * 10.0**power)
    )
    assert spearman(x, y) == pytest.approx(spearman(x * 2.0**40, y), abs=1e-9)
