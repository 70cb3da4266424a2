"""What is read back is compared, and a difference is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from whitepool.errors import UserError
from whitepool.export.check import check, compare

from made import encoder

X = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)


@pytest.mark.parametrize(("factor", "passes"), [(1e-6, True), (1e-3, False)])
def test_differences_of_components_and_cosines(factor: float, passes: bool) -> None:
    moved = X.copy()
    moved[3, 2] += factor * np.abs(X).max()
    if passes:
        compare(X, moved)
    else:
        with pytest.raises(UserError, match=r"components differ by 0\.001 of the largest"):
            compare(X, moved)
        compare(X, moved, noise=1e-3)
    with pytest.raises(UserError, match="so nothing is exported"):
        compare(X, 1.01 * X)  # the same cosines
    with pytest.raises(UserError, match="cosines by nan"):
        compare(X, np.full_like(X, np.nan))


@pytest.mark.parametrize("file", ["2_Dense/model.safetensors", "model.safetensors"])
def test_a_folder_that_was_tampered_with(
    checkpoint: Callable[[str], Path], tmp_path: Path, file: str
) -> None:
    pytest.importorskip("sentence_transformers")
    made = encoder(checkpoint("bert"), "avg", "pca")
    folder = made.export(tmp_path / "out")
    check(made, folder)
    arrays = load_file(folder / file)
    name = next(name for name in arrays if arrays[name].dim() == 1)
    arrays[name] += 0.1 * torch.arange(len(arrays[name]))
    save_file(arrays, folder / file, metadata={"format": "pt"})
    with pytest.raises(UserError, match="sentence-transformers gives other vectors"):
        check(made, folder)
