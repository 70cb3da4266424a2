"""Prepacked linear layers give what torch's give, or are not used and say so."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys

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


def test_few_kernels_are_kept_unless_it_is_said_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"LRU_CACHE_CAPACITY": "7"}
    monkeypatch.setattr(os, "environ", environment)
    linears.keep_few_kernels()
    kept = {"LRU_CACHE_CAPACITY": "7", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": linears.KERNELS}
    assert environment == kept


GROWTH = """
import ctypes, sys, torch
from torch import nn
from whitepool.linears import PrepackedLinear, keep_few_kernels

class Heap(ctypes.Structure):
    _fields_ = [(f"field{i}", ctypes.c_size_t) for i in range(10)]

heap = ctypes.CDLL(None).mallinfo2
heap.restype = Heap
if sys.argv[1] == "few":
    keep_few_kernels()
torch.set_num_threads(1)
layer = PrepackedLinear(nn.Linear(64, 64))
with torch.no_grad():
    layer(torch.ones(1, 64))
    before = heap().field7  # bytes in use
    for rows in range(2, 602):
        layer(torch.ones(rows, 64))
print(heap().field7 - before)
"""


@pytest.mark.slow  # two processes
def test_what_is_kept_of_many_numbers_of_rows() -> None:
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("the C library does not tell what is in use")
    grown = {}
    for kept in ("few", "all"):
        environment = {k: v for k, v in os.environ.items() if not k.endswith("CACHE_CAPACITY")}
        command = [sys.executable, "-c", GROWTH, kept]
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        grown[kept] = int(run.stdout)
    assert grown["few"] < grown["all"] / 3, grown
