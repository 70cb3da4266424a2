"""Prepacked linear layers give what torch's give, or are not used and say so."""

from __future__ import annotations

import logging

import pytest
import torch
from torch import Tensor, nn

from whitepool import linears
from whitepool.linears import PrepackedLinear, prepack


def model() -> nn.Sequential:
    torch.manual_seed(0)
    shared = nn.Linear(8, 8)
    return nn.Sequential(shared, nn.GELU(), nn.Linear(8, 5, bias=False), nn.Linear(5, 8), shared)


@torch.no_grad()
@pytest.mark.parametrize("shape", [(3, 8), (2, 7, 8), (1, 300, 8)])
def test_same_results(shape: tuple[int, ...]) -> None:
    plain, packed = model(), model()
    assert prepack(packed) == 3
    assert packed[0] is packed[4]
    assert all(isinstance(packed[i], PrepackedLinear) for i in (0, 2, 3))
    x = torch.randn(shape)
    torch.testing.assert_close(packed(x), plain(x), atol=1e-6, rtol=1e-5)
    assert {k: v.tolist() for k, v in packed.state_dict().items()} == {
        k: v.tolist() for k, v in plain.state_dict().items()
    }
    assert prepack(packed) == 0


def test_wrong_results_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(PrepackedLinear, "forward", lambda self, x: nn.Linear.forward(self, x) + 1)
    some = model()
    assert prepack(some) == 0
    assert type(some[0]) is nn.Linear
    assert "gives other results" in caplog.text


def test_a_missing_operator_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def absent(self: PrepackedLinear, linear: nn.Linear) -> None:
        raise AttributeError("no such operator")

    monkeypatch.setattr(PrepackedLinear, "__init__", absent)
    caplog.set_level(logging.INFO, logger=linears.__name__)
    assert prepack(model()) == 0
    assert "not laid out in advance: no such operator" in caplog.text


def test_a_model_that_moved_uses_its_own_weights() -> None:
    packed = model()
    prepack(packed)
    packed.to("meta")
    result: Tensor = packed(torch.empty(2, 8, device="meta"))
    assert result.shape == (2, 8)
