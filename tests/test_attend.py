"""Attention of short sentences against torch's own, and its diagonals against the full softmax."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from whitepool.attend import SHORT, SHORT_WITH_DIAGONALS, attend, attention_diagonal, is_short


@settings(max_examples=40, deadline=None)
@given(
    batch=st.integers(1, 3),
    heads=st.integers(1, 4),
    length=st.integers(1, 9),
    dim=st.sampled_from([4, 8]),
    causal=st.booleans(),
    scaling=st.sampled_from([None, 0.3]),
    seed=st.integers(0, 10**6),
)
def test_equal_to_torch(
    batch: int, heads: int, length: int, dim: int, causal: bool, scaling: float | None, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, batch, heads, length, dim, generator=generator)
    wanted_heads = list(range(heads))[::-1]
    output, diagonal = attend(q, k, v, wanted_heads, scaling=scaling, causal=causal)
    expected = scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scaling)
    torch.testing.assert_close(output, expected.transpose(1, 2), atol=2e-6, rtol=1e-5)

    scores = q.double() @ k.double().transpose(-1, -2) * (scaling or dim**-0.5)
    if causal:
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), float("-inf"))
    probabilities = scores.softmax(-1)
    loop = torch.stack([probabilities[:, h].diagonal(dim1=-2, dim2=-1) for h in wanted_heads], 1)
    assert diagonal is not None
    torch.testing.assert_close(diagonal.double(), loop, atol=2e-6, rtol=1e-5)
    other = attention_diagonal(q, k, wanted_heads, scaling=scaling, causal=causal)
    torch.testing.assert_close(other.double(), loop, atol=2e-6, rtol=1e-5)


def test_no_diagonal_where_none_is_asked() -> None:
    q = torch.randn(2, 3, 4, 8)
    assert attend(q, q, q, [])[1] is None


def test_bfloat16_is_close() -> None:
    q = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(0))
    half = q.bfloat16()
    output, diagonal = attend(half, half, half, [0, 1, 2])
    assert output.dtype == torch.bfloat16
    assert diagonal is not None
    assert diagonal.dtype == torch.float32
    expected, wanted = attend(q, q, q, [0, 1, 2])
    torch.testing.assert_close(output.float(), expected, atol=3e-2, rtol=3e-2)
    assert wanted is not None
    torch.testing.assert_close(diagonal, wanted, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize(
    ("length", "key_heads", "diagonals", "short"),
    [
        (SHORT, 4, False, True),
        (SHORT + 1, 4, False, False),
        (SHORT_WITH_DIAGONALS, 4, True, True),
        (SHORT_WITH_DIAGONALS + 1, 4, True, False),
        (5, 2, True, False),
    ],
    ids=["short", "long", "short with diagonals", "long with diagonals", "grouped heads"],
)
def test_when_it_is_used(length: int, key_heads: int, diagonals: bool, short: bool) -> None:
    query, key = torch.zeros(1, 4, length, 8), torch.zeros(1, key_heads, length, 8)
    assert is_short(query, key, diagonals=diagonals) is short
