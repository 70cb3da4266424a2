"""Versions that a score depends on."""

from __future__ import annotations

import sys
from importlib.metadata import version

PACKAGES = (
    "whitepool", "torch", "transformers", "tokenizers", "safetensors", "pytorch-lightning",
    "torchmetrics", "hydra-core", "numpy",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Of Python and the packages, by name."""
    return {"python": sys.version.split()[0], **{name: version(name) for name in PACKAGES}}
