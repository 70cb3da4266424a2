"""Moments from batches, against one update over the repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.encoding import pack, unpack
from whitepool.fitting import FitSets, fit_each
from whitepool.whitening import Whitening

ROWS, DIM = 40, 5
COUNTS = {
    "a": np.arange(ROWS) % 3,
    "b": (np.arange(ROWS) > 30).astype(np.int64) * 2,
    "none": np.zeros(ROWS, dtype=np.int64),
}


def vectors() -> torch.Tensor:
    return torch.randn(ROWS, DIM, generator=torch.Generator().manual_seed(0)) + 3


def moments(batches: list[list[int]], chunk: int = 16) -> dict[str, np.ndarray]:
    x, sets = vectors(), FitSets(COUNTS, chunk)
    for rows in batches:
        sets.update(torch.tensor(rows), x[rows])
    return pack(sets.finish())


def test_each_row_counts_as_often_as_it_occurs() -> None:
    found = moments([list(range(25)), list(range(25, ROWS))])
    assert {name.split("/")[0] for name in found} == {"a", "b"}
    for name in ("a", "b"):
        repeated = np.repeat(vectors().double().numpy(), COUNTS[name], axis=0)
        assert found[f"{name}/count"] == len(repeated)
        np.testing.assert_allclose(found[f"{name}/mean"], repeated.mean(0), rtol=1e-12)
        covariance = found[f"{name}/scatter"] / (len(repeated) - 1)
        np.testing.assert_allclose(covariance, np.cov(repeated.T), rtol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), chunk=st.integers(1, 50))
def test_the_order_within_a_batch_changes_no_bit(seed: int, chunk: int) -> None:
    draw = np.random.default_rng(seed)
    batches = np.split(draw.permutation(ROWS), [7, 20, 33])
    shuffled = [draw.permutation(rows) for rows in batches]
    one = moments([rows.tolist() for rows in batches], chunk)
    two = moments([rows.tolist() for rows in shuffled], chunk)
    assert all(one[name].tobytes() == two[name].tobytes() for name in one)


def test_packed_moments_come_back() -> None:
    packed = moments([list(range(ROWS))])
    again = pack(unpack(packed, torch.device("cpu")))
    assert packed.keys() == again.keys()
    assert all(packed[name].tobytes() == again[name].tobytes() for name in packed)


@pytest.mark.parametrize("repeats", [1, 3])
def test_repeated_sentences_do_not_pass_for_many(
    caplog: pytest.LogCaptureFixture, repeats: int
) -> None:
    """Five vectors in ten dimensions, each once or several times: whitened, all are alike."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 10)))
    counts = {"mine": np.array([repeats, 1, 1, 1, 1])}
    sets = FitSets(counts)
    sets.update(torch.arange(5), x)
    fit_each(Whitening(), sets.finish(), counts)
    assert caplog.text.count("too few for 4 directions") == 1
    assert "mine: 5 vectors are too few" in caplog.text
    caplog.clear()
    many = {"mine": np.full(5, 1)}
    sets = FitSets(many)
    sets.update(torch.arange(5), x[:, :2])
    fit_each(Whitening(), sets.finish(), many)
    assert "too few" not in caplog.text
