"""Which precision is chosen, and that the choice is said."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from whitepool import precision
from whitepool.errors import UserError
from whitepool.precision import fast_bfloat16_cpu, model_dtype


def test_named_precisions() -> None:
    assert model_dtype("32-true", "cpu") == "float32"
    assert model_dtype("bf16-true", "cpu") == "bfloat16"
    with pytest.raises(UserError, match=r"'16-mixed': choose one of 32-true, bf16-true, auto"):
        model_dtype("16-mixed", "cpu")


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("fpu avx2 fma", ""),
        ("avx512f avx512_bf16", "avx512_bf16"),
        ("amx_bf16 avx512_bf16 amx_tile", "amx_bf16"),
    ],
)
def test_auto_reads_the_processors_flags(
    flags: str,
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\nflags\t\t: {flags}\n")
    assert fast_bfloat16_cpu(file) == found
    assert fast_bfloat16_cpu(tmp_path / "absent") == ""
    monkeypatch.setattr(precision, "fast_bfloat16_cpu", lambda: found)
    caplog.set_level(logging.INFO, logger=precision.__name__)
    assert model_dtype("auto", "cpu") == ("bfloat16" if found else "float32")
    assert (found or "not fast here") in caplog.text


def test_auto_asks_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A100")
    assert model_dtype("auto", "gpu") == "bfloat16"
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert model_dtype("auto", "gpu") == "float32"
