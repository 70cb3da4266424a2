"""Every step against a slow reference written from its paper, and what must hold for all."""

from __future__ import annotations

import logging
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import fractional_matrix_power
from sklearn.covariance import oas as sklearn_oas
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import StandardScaler

from whitepool.errors import UserError
from whitepool.maps import (
    Affine,
    Center,
    RemoveCommon,
    RemoveTop,
    Shrinkage,
    Soft,
    Standardize,
    Tempered,
    Zca,
    Zipfian,
)
from whitepool.maps.axes import AlongAxes
from whitepool.maps.names import POST_PROCESSES
from whitepool.maps.spectral import oas
from whitepool.moments import Moments
from whitepool.whitening import Whitening

Floats = NDArray[np.float64]
EVERY: list[Any] = [made() for kind, made in POST_PROCESSES.items() if kind != "flow"]
SEEDS = st.integers(0, 2**32 - 1)


def vectors(seed: int, n: int, dim: int, rank: int | None = None, mean: float = 2.0) -> Floats:
    """Correlated vectors with a mean far from 0, in a subspace if ``rank`` is below ``dim``."""
    generator = np.random.default_rng(seed)
    rank = rank or dim
    spread = generator.normal(size=(n, rank)) * np.arange(1, rank + 1) ** -0.7
    return spread @ generator.normal(size=(rank, dim)) + mean * generator.normal(size=dim)


def fit(step: Any, x: Floats) -> Affine:
    affine: Affine = step.fit(Moments(x.shape[1]).update(torch.from_numpy(x)))
    return affine


def mapped(step: Any, x: Floats, new: Floats | None = None) -> Floats:
    z: Floats = fit(step, x)(torch.from_numpy(x if new is None else new)).numpy()
    return z


def cosines(z: Floats) -> Floats:
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    return z @ z.T


def mean_and_covariance(x: Floats) -> tuple[Floats, Floats]:
    """As a plain loop, n - 1."""
    mean = sum(row for row in x) / len(x)
    covariance = np.zeros((x.shape[1], x.shape[1]))
    for row in x:
        for i in range(len(mean)):
            for j in range(len(mean)):
                covariance[i, j] += (row[i] - mean[i]) * (row[j] - mean[j]) / (len(x) - 1)
    return mean, covariance


# References, (n, dim), each from its paper.


def zca(x: Floats) -> Floats:
    mean, covariance = mean_and_covariance(x)
    return (x - mean) @ fractional_matrix_power(covariance, -0.5)


def soft_zca(x: Floats, eps: float) -> Floats:
    mean, covariance = mean_and_covariance(x)
    return (x - mean) @ fractional_matrix_power(covariance + eps * np.eye(len(mean)), -0.5)


def shrunk(x: Floats) -> Floats:
    mean, covariance = mean_and_covariance(x)
    share = chen(covariance, len(x))
    target = np.trace(covariance) / len(mean) * np.eye(len(mean))
    return (x - mean) @ fractional_matrix_power((1 - share) * covariance + share * target, -0.5)


def chen(covariance: Floats, n: int) -> float:
    """Equation 23 of Chen, Wiesel, Eldar and Hero 2010."""
    p, whole, square = len(covariance), np.trace(covariance), np.trace(covariance @ covariance)
    top = (1 - 2 / p) * square + whole**2
    bottom = (n + 1 - 2 / p) * (square - whole**2 / p)
    return float(min(top / bottom, 1.0))


def tempered(x: Floats, gamma: float) -> Floats:
    mean, covariance = mean_and_covariance(x)
    return (x - mean) @ fractional_matrix_power(covariance, -gamma / 2)


def all_but_the_top(x: Floats, remove: int) -> Floats:
    mean = sum(row for row in x) / len(x)
    centred = [row - mean for row in x]
    _, _, axes = np.linalg.svd(np.stack(centred))
    result = []
    for row in centred:
        left = row.copy()
        for axis in axes[:remove]:
            left -= (axis @ row) * axis
        result.append(left)
    return np.stack(result)


def common_removed(x: Floats, remove: int) -> Floats:
    """uSIF's piecewise removal; with one component its weight is 1, which is SIF's."""
    found = TruncatedSVD(n_components=remove, algorithm="arpack", random_state=0).fit(x)
    squares = found.singular_values_**2
    result = x
    for component, square in zip(found.components_, squares, strict=True):
        share = square / squares.sum()
        result = np.stack([row - share * (row @ component) * component for row in result])
    return result


REFERENCES: list[tuple[Any, Any]] = [
    (Zca(), zca),
    (Soft(eps=0.3), lambda x: soft_zca(x, 0.3)),
    (Shrinkage(), shrunk),
    (Tempered(gamma=0.3), lambda x: tempered(x, 0.3)),
    (Center(), lambda x: x - mean_and_covariance(x)[0]),
    (Standardize(), lambda x: StandardScaler().fit_transform(x) * math.sqrt(1 - 1 / len(x))),
    (RemoveTop(remove=2), lambda x: all_but_the_top(x, 2)),
    (RemoveCommon(), lambda x: common_removed(x, 1)),
    (RemoveCommon(remove=5), lambda x: common_removed(x, 5)),
]
SAME_COORDINATES = (Zca, Center, Standardize, RemoveTop, RemoveCommon)


@pytest.mark.parametrize(
    ("step", "reference"), REFERENCES, ids=lambda x: getattr(x, "__name__", str(x)[:30])
)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_its_paper(step: Any, reference: Any, seed: int) -> None:
    x = vectors(seed, 60, 9)
    wanted = reference(x)
    z = mapped(step, x)
    if isinstance(step, SAME_COORDINATES):
        assert np.allclose(z, wanted, atol=1e-9)
    # Another rotation of the same vectors has the same inner products.
    assert np.allclose(z @ z.T, wanted @ wanted.T, atol=1e-8)


def test_the_default_takes_a_hundredth_of_the_dimensions() -> None:
    x = vectors(0, 400, 300)
    assert np.allclose(mapped(RemoveTop(), x), all_but_the_top(x, 3), atol=1e-9)
    small = vectors(0, 40, 5)
    assert np.allclose(mapped(RemoveTop(), small), all_but_the_top(small, 1), atol=1e-9)


@given(SEEDS, st.integers(2, 8), st.integers(3, 40))
@settings(max_examples=60, deadline=None)
def test_shrinkage_is_that_of_its_paper(seed: int, dim: int, n: int) -> None:
    x = vectors(seed, n, dim)
    moments = Moments(dim).update(torch.from_numpy(x))
    found, mean = oas(moments.covariance(), moments.count)
    assert found == pytest.approx(chen(np.cov(x, rowvar=False), n), rel=1e-9, abs=1e-12)
    assert mean == pytest.approx(x.var(0, ddof=1).mean())


def test_shrinkage_of_many_dimensions_is_that_of_scikit_learn() -> None:
    """Which leaves out what is small then."""
    x = vectors(0, 300, 400)
    moments = Moments(400).update(torch.from_numpy(x))
    _, share = sklearn_oas(x)
    assert oas(moments.covariance(), moments.count)[0] == pytest.approx(share, rel=0.01)


def test_shrinkage_of_equal_variances_is_whole() -> None:
    assert oas(torch.eye(4, dtype=torch.float64) * 3, 100) == (1.0, 3.0)


@given(SEEDS, st.integers(1, 8), st.integers(20, 60))
@settings(max_examples=40, deadline=None)
def test_whitened_covariance_is_one(seed: int, dim: int, n: int) -> None:
    x = vectors(seed, n, dim)
    for step in (Zca(), Tempered(gamma=1)):
        z = mapped(step, x)
        assert np.abs(z.mean(0)).max() < 1e-8
        assert np.abs(np.atleast_2d(np.cov(z.T)) - np.eye(dim)).max() < 1e-7


@given(SEEDS, st.integers(2, 8), st.floats(0, 1))
@settings(max_examples=40, deadline=None)
def test_tempering_goes_from_rotation_to_whitening(seed: int, dim: int, gamma: float) -> None:
    x = vectors(seed, 40, dim)
    covariance = np.cov(mapped(Tempered(gamma=gamma), x).T)
    values = np.sort(np.linalg.eigvalsh(np.cov(x.T)))[::-1]
    assert np.allclose(covariance, np.diag(values ** (1 - gamma)), rtol=1e-6, atol=1e-7)
    rotated = mapped(Tempered(gamma=0), x)
    centred = x - x.mean(0)
    assert np.allclose(rotated @ rotated.T, centred @ centred.T, atol=1e-8)
    assert np.allclose(mapped(Tempered(gamma=1), x), mapped(Whitening(), x), rtol=1e-9)


@given(SEEDS, st.integers(2, 8), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_zca_is_symmetric_and_has_the_cosines_of_pca(seed: int, dim: int, k: int) -> None:
    x = vectors(seed, 40, dim)
    k = min(k, dim)
    basis = fit(Zca(k), x).basis
    assert basis.shape == (dim, dim)
    assert torch.allclose(basis, basis.T, atol=1e-9)
    assert np.allclose(cosines(mapped(Zca(k), x)), cosines(mapped(Whitening(k), x)), atol=1e-7)


@given(SEEDS, st.floats(0.05, 20))
@settings(max_examples=30, deadline=None)
def test_scale_does_not_matter(seed: int, scale: float) -> None:
    """For cosines; eps is in the units of the variances."""
    x = vectors(seed, 50, 6)
    for step in EVERY:
        other = Soft(eps=step.eps * scale**2) if isinstance(step, Soft) else step
        assert np.allclose(
            cosines(mapped(other, scale * x)), cosines(mapped(step, x)), atol=1e-6
        ), step


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_rotation_does_not_matter_but_for_standardize(seed: int) -> None:
    x = vectors(seed, 50, 6)
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))
    for step in EVERY:
        same = np.allclose(cosines(mapped(step, x @ rotation)), cosines(mapped(step, x)), atol=1e-6)
        assert same != isinstance(step, Standardize), step


@given(SEEDS, st.floats(-30, 30))
@settings(max_examples=30, deadline=None)
def test_a_shift_does_not_matter_where_there_is_a_mean(seed: int, shift: float) -> None:
    x = vectors(seed, 50, 6)
    for step in EVERY:
        if not isinstance(step, RemoveCommon):
            assert np.allclose(mapped(step, x + shift), mapped(step, x), atol=1e-5), step
    assert not fit(RemoveCommon(), x).mean.any()


@given(SEEDS, st.integers(2, 30), st.integers(2, 12), st.integers(2, 12), st.booleans())
@settings(max_examples=80, deadline=None)
def test_nothing_infinite(seed: int, n: int, dim: int, rank: int, dead: bool) -> None:
    """Few vectors, few directions, a dead dimension; held-out vectors leave the subspace."""
    x = vectors(seed, n, dim, min(rank, dim))
    if dead:
        x[:, 0] = 7.0
    new = vectors(seed + 1, 20, dim)
    for step in EVERY:
        if min(n - 1, rank, dim - dead) < 2 and isinstance(step, RemoveTop | RemoveCommon):
            continue  # of which nothing may be left
        affine = fit(step, x)
        assert affine.rank == min(n - 1, rank, dim - dead), step
        for y in (x, new):
            assert np.isfinite(affine(torch.from_numpy(y)).numpy()).all(), step


def test_small_directions_stay_small() -> None:
    """100 vectors in 300 dimensions: held-out norms are near those of the fitted ones."""
    x = vectors(3, 300, 300)
    for step in EVERY:
        affine = fit(step, x[:100])
        fitted, new = (affine(torch.from_numpy(part)).norm(dim=1) for part in (x[:100], x[100:]))
        assert new.max() < 50 * fitted.max(), step


@pytest.mark.parametrize("step", EVERY, ids=lambda step: type(step).__name__)
def test_equal_and_single_vectors_are_refused(step: Any) -> None:
    with pytest.raises(UserError, match="all 5 vectors are equal"):
        fit(step, np.full((5, 3), 0.1))
    with pytest.raises(UserError, match="at least 2 vectors and 1 was given"):
        fit(step, np.ones((1, 3)))


@pytest.mark.parametrize("step", [Whitening, Zca, Tempered, Soft, Shrinkage, Zipfian])
def test_k(step: Any) -> None:
    x = vectors(4, 11, 20)  # rank 10
    flat = step in (Soft, Shrinkage)
    everything = 20 if flat or step is Zca else 10
    assert fit(step(), x).basis.shape == (20, everything)
    assert fit(step(20), x).basis.shape == (20, everything)
    some = fit(step(3), x).basis
    assert torch.linalg.matrix_rank(some) == 3
    if step is not Zca:
        assert torch.allclose(some, fit(step(), x).basis[:, :3])
    with pytest.raises(
        UserError, match=f"k=11 is over the effective rank 10 .* all {20 if flat else 10} "
    ):
        fit(step(11), x)
    with pytest.raises(UserError, match=r"whitening.k=21 is over the 20 dimensions"):
        fit(step(21), x)
    with pytest.raises(UserError, match=r"whitening.k is 0: give a whole number from 1"):
        step(0)


@pytest.mark.parametrize(
    ("step", "options", "message"),
    [
        (Tempered, {"gamma": 1.01}, "whitening.gamma is 1.01: give a number from 0, which rotates"),
        (Tempered, {"gamma": None}, "whitening.gamma is None"),
        (Tempered, {"gamma": True}, "whitening.gamma is True"),
        (Tempered, {"gamma": math.nan}, "whitening.gamma is nan"),
        (Soft, {"eps": 0}, "whitening.eps is 0: give a number above 0"),
        (Soft, {"eps": math.inf}, "whitening.eps is inf"),
        (Soft, {"eps": None}, "whitening.eps is None"),
        (RemoveTop, {"remove": 0}, "whitening.remove is 0: give a whole number from 1"),
        (RemoveTop, {"remove": 1.0}, "whitening.remove is 1.0"),
        (RemoveCommon, {"remove": None}, "whitening.remove is None"),
        (RemoveCommon, {"remove": True}, "whitening.remove is True"),
    ],
)
def test_options_out_of_range(step: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        step(**options)


def test_something_must_be_left() -> None:
    x = vectors(0, 5, 8)  # rank 4, 5 not centred
    with pytest.raises(UserError, match=r"whitening.remove=4 leaves nothing of 5 vectors"):
        fit(RemoveTop(remove=4), x)
    with pytest.raises(UserError, match=r"whitening.remove=5 leaves nothing .* effective rank 5"):
        fit(RemoveCommon(remove=5), x)


def test_few_vectors_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    x = vectors(3, 10, 20)
    with caplog.at_level(logging.WARNING):
        for step in EVERY:
            if not isinstance(step, AlongAxes):
                fit(step, x)
        assert not caplog.records
        fit(Zca(), x)
    assert "the 10 vectors span 9 of 20 dimensions (effective rank): 11 without" in caplog.text
    assert "give a whitening.k far below 10, or choose whitening=shrinkage" in caplog.text
