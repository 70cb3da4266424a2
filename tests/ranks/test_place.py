"""Vectors and moments brought together by real processes: 1, 2, 3 and 5 of them."""

from __future__ import annotations

import multiprocessing
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from together import WORLDS, moments_of, shares_of, vectors, work

from whitepool.moments import Moments
from whitepool.ranks.launch import PRELOAD


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first process of each world has got."""
    result = tmp_path_factory.mktemp("together")
    multiprocessing.set_forkserver_preload([PRELOAD])
    context = multiprocessing.get_context("forkserver")
    started = [context.Process(target=work, args=(rank, result)) for rank in range(max(WORLDS))]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    codes = [process.exitcode for process in started]
    for process in started:
        process.kill()
    assert codes == [0] * len(started)
    return result


@pytest.mark.parametrize("rows", [0, 1, 2, 13])
@pytest.mark.parametrize("ranks", WORLDS)
def test_vectors_come_by_row_to_the_last_bit(folder: Path, ranks: int, rows: int) -> None:
    found = np.load(folder / f"rows{ranks}-{rows}.npy")
    assert found.shape[0] == rows
    if rows:
        assert found.tobytes() == vectors()[:rows].tobytes()


@pytest.mark.parametrize("rows", [1, 2, 13])
@pytest.mark.parametrize("ranks", WORLDS)
def test_moments_are_those_of_the_whole(folder: Path, ranks: int, rows: int) -> None:
    found = np.load(folder / f"moments{ranks}-{rows}.npy")
    x = vectors()[:rows].astype(np.float64)
    mean = x.mean(0)
    scatter = (x - mean).T @ (x - mean)
    assert found[0] == rows
    assert np.abs(found[1:5] - mean).max() <= 1e-9
    assert np.abs(found[5:].reshape(4, 4) - scatter).max() <= 1e-9


def test_moments_are_merged_in_pairs_in_a_fixed_order(folder: Path) -> None:
    a, b, c, d, e = (moments_of(vectors()[rows]) or Moments(4) for rows in shares_of(13, 5))
    wanted = reduce(Moments.merge, [a.merge(b), c.merge(d), e])
    found = np.load(folder / "moments5-13.npy")
    assert found[5:].tobytes() == wanted.scatter.flatten().numpy().tobytes()
