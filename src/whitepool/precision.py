"""Which number type the model runs in, and where bfloat16 is fast."""

from __future__ import annotations

import logging
from pathlib import Path

import torch

from whitepool.errors import UserError

log = logging.getLogger(__name__)

DTYPES = {"32-true": "float32", "bf16-true": "bfloat16"}
FAST_FLAGS = ("amx_bf16", "avx512_bf16")


def model_dtype(precision: str, accelerator: str) -> str:
    """The model's number type, ``float32`` or ``bfloat16``.

    Args:
        precision: ``32-true``, ``bf16-true``, or ``auto`` for bfloat16 where it is fast.
        accelerator: Lightning's name of where the model will run.

    Pooled vectors, moments, maps and scores are in float32 and float64 either way.

    Raises:
        UserError: another precision.
    """
    if precision in DTYPES:
        return DTYPES[precision]
    if precision != "auto":
        choices = ", ".join((*DTYPES, "auto"))
        raise UserError(f"trainer.precision is {precision!r}: choose one of {choices}.")
    on_gpu = accelerator in ("gpu", "cuda", "auto") and torch.cuda.is_available()
    reason = fast_bfloat16_gpu() if on_gpu else fast_bfloat16_cpu()
    if reason:
        log.info("precision auto: bfloat16, which is fast here (%s).", reason)
        return "bfloat16"
    log.info("precision auto: float32, since bfloat16 is not fast here.")
    return "float32"


def fast_bfloat16_gpu() -> str:
    """The GPU's name if it computes in bfloat16 itself, else an empty string."""
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.cuda.get_device_name() if native else ""


def fast_bfloat16_cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's bfloat16 instructions, an empty string if none are known."""
    text = cpuinfo.read_text() if cpuinfo.exists() else ""
    flags = next((line.split() for line in text.splitlines() if line.startswith("flags")), [])
    return next((flag for flag in FAST_FLAGS if flag in flags), "")
