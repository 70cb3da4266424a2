"""The spectrum in numbers, against eigenvalues that are known and numpy's."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.moments import Moments
from whitepool.spectrum import Spectrum


def test_known_eigenvalues() -> None:
    """Variances 50, 30, 19, 1 along the axes, one more axis without any."""
    variances = [50.0, 30.0, 19.0, 1.0, 0.0]
    x = torch.cat([torch.diag(torch.tensor(variances, dtype=torch.float64).sqrt()) * s
                   for s in (1, -1)])  # fmt: skip
    found = Spectrum.of(Moments(5).update(x))
    assert (found.count, found.dim, found.rank) == (10, 5, 4)
    assert math.isclose(found.condition, 50)
    assert found.directions == (1, 3, 3)


@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_equals_numpy(seed: int, n: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim)) * 10.0 ** rng.uniform(-3, 3, dim)
    found = Spectrum.of(Moments(dim).update(torch.from_numpy(x)))
    singular = np.linalg.svd(x - x.mean(0), compute_uv=False) ** 2
    keep = singular[singular > singular[0] * dim * np.finfo(float).eps]
    assert found.rank <= min(dim, n - 1)
    assert abs(found.rank - min(len(keep), n - 1)) <= 1
    for share, directions in zip((0.5, 0.9, 0.99), found.directions, strict=True):
        assert singular[:directions].sum() >= share * singular.sum() * (1 - 1e-9)
        assert singular[: directions - 1].sum() <= share * singular.sum() * (1 + 1e-9)


def test_no_variance() -> None:
    found = Spectrum.of(Moments(3).update(torch.ones(4, 3)))
    assert (found.rank, found.directions) == (0, (0, 0, 0))
    assert math.isnan(found.condition)
