"""Tiny models with a mask token."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MASK = ","  # of the tiny vocabulary, and in none of the texts


@pytest.fixture(scope="session")
def masked(
    checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Folder of the tiny checkpoint of a family whose mask token is `MASK`."""
    from transformers import AutoTokenizer

    made: dict[str, Path] = {}

    def get(family: str) -> Path:
        if family not in made:
            folder = tmp_path_factory.mktemp(f"masked_{family}") / family
            shutil.copytree(checkpoint(family), folder)
            tokenizer: Any = AutoTokenizer.from_pretrained(folder)
            tokenizer.mask_token = MASK
            tokenizer.save_pretrained(folder)
            made[family] = folder
        return made[family]

    return get
