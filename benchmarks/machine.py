"""The machine: what it is, and how fast it multiplies matrices."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from benchmarks.rounds import seconds
from whitepool.plm import FrozenPLM
from whitepool.precision import FAST_FLAGS

PACKAGES = (
    "whitepool",
    "torch",
    "transformers",
    "tokenizers",
    "sentence-transformers",
    "onnxruntime",
    "openvino",
)
FLAGS = ("avx2", "avx512f", *FAST_FLAGS)
# (rows, inner, columns): the last ones are the largest products of MiniLM and of a base model
PROBE = (256, 384, 384)
SHAPES = ((2048, 2048, 2048), (4096, 384, 1536), (4096, 1536, 384), (4096, 768, 3072))
SLOW = 10.0  # GFLOP/s of a number type without instructions of its own


def describe(cpuinfo: Path = Path("/proc/cpuinfo")) -> dict[str, Any]:
    """Processor, instructions, threads, system, versions and date."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    fields = {key.strip(): value for key, _, value in (line.partition(": ") for line in lines)}
    has = set(fields.get("flags", "").split())
    return {
        "date": date.today().isoformat(),
        "processor": fields.get("model name", platform.processor() or platform.machine()),
        "instructions": [flag for flag in FLAGS if flag in has],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0,
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()}, Python {platform.python_version()}",
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@torch.inference_mode()
def peak(dtype: torch.dtype, repeats: int = 8) -> float:
    """The most GFLOP/s of a matrix product, over some shapes and repeats."""
    found = _gflops(PROBE, dtype, repeats)
    if found < SLOW:
        return found
    return max(found, *(_gflops(shape, dtype, repeats) for shape in SHAPES))


def _gflops(shape: tuple[int, int, int], dtype: torch.dtype, repeats: int) -> float:
    rows, inner, columns = shape
    a, b = torch.ones(rows, inner, dtype=dtype), torch.ones(inner, columns, dtype=dtype)
    out = torch.empty(rows, columns, dtype=dtype)
    least = min(seconds(partial(torch.mm, a, b, out=out)) for _ in range(repeats))
    return 2e-9 * rows * inner * columns / least


def operations(plm: FrozenPLM, lengths: Sequence[int]) -> float:
    """GFLOP that the blocks must do for sentences of these lengths in tokens, padding left out.

    Two for each weight of a linear layer and token, and for each pair of tokens of a sentence two
    products of the width of the hidden states. The rest (softmax, norms) is not counted.
    """
    weights = sum(
        module.weight.numel()
        for name, module in plm.model.named_modules()
        if isinstance(module, torch.nn.Linear) and "pooler" not in name
    )
    width = int(plm.model.config.get_text_config().hidden_size)
    pairs = sum(n * n for n in lengths)
    return 1e-9 * (2 * weights * sum(lengths) + 4 * width * plm.depth * pairs)
