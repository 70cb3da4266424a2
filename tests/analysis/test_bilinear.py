"""Blocks of pairs, and each pair once."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from whitepool.analysis.bilinear import blocks, forms, unique_pairs


@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=12),
    chosen=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=40),
    tokens=st.integers(1, 200),
)
def test_each_pair_stands_in_one_block_once(
    lengths: list[int], chosen: list[tuple[int, int]], tokens: int
) -> None:
    long = np.array(lengths)
    pairs = np.array(chosen, dtype=np.int64).reshape(-1, 2) % len(lengths)
    unique, place = unique_pairs(pairs, long)
    assert {tuple(sorted(p)) for p in unique.tolist()} == {tuple(sorted(p)) for p in pairs.tolist()}
    assert len({tuple(sorted(p)) for p in unique.tolist()}) == len(unique)
    assert np.array_equal(np.sort(unique[place], axis=1), np.sort(pairs, axis=1))
    assert (long[unique[:, 0]] >= long[unique[:, 1]]).all()
    assert sorted(long[unique].tolist()) == long[unique].tolist()
    found = list(blocks(unique, long, tokens))
    assert [i for b in found for i in range(b.start, b.stop)] == list(range(len(unique)))
    for b in found:
        size = b.stop - b.start
        assert size == 1 or size * long[unique[b]].max(0).sum() <= tokens


def test_forms_equal_pooled_vectors() -> None:
    generator = torch.Generator().manual_seed(0)
    xa, xb = (torch.randn(5, t, 7, generator=generator).double() for t in (4, 6))
    da, db = (torch.rand(5, t, 3, generator=generator).double() for t in (4, 6))
    da[2, 3:] = 0  # padding, whatever its states
    wanted = ((da.transpose(1, 2) @ xa) * (db.transpose(1, 2) @ xb)).sum(-1)
    assert torch.allclose(forms(xa, da, xb, db), wanted, atol=1e-12)
    xa[2, 3:] = 1e3
    assert torch.allclose(forms(xa, da, xb, db), wanted, atol=1e-9)
