"""What is timed of whitepool: texts in, vectors out, with a mean over tokens of some layers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.batches import BATCH_TOKENS, plan_batches
from whitepool.plm import FrozenPLM
from whitepool.pooling import LinearPooling, Pooling, Uniform
from whitepool.precision import DTYPES
from whitepool.states import Batch, Needs, States

Floats = NDArray[np.float32]


def load(folder: Path, precision: str) -> FrozenPLM:
    """The model in a folder, in ``32-true`` or ``bf16-true``."""
    return FrozenPLM.from_pretrained(path=folder, dtype=DTYPES[precision])


def mean(*layers: int) -> LinearPooling:
    """The mean over all tokens and the given layers."""
    return LinearPooling(Uniform(), layers)


class Timed:
    """A head whose calls go through another function."""

    def __init__(self, pooling: Pooling, call: Callable[[States], Tensor]) -> None:
        self.needs: Needs = pooling.needs
        self._call = call

    def __call__(self, states: States) -> Tensor:
        """Sentence vectors, (batch, dim)."""
        return self._call(states)


@torch.inference_mode()
def encode(
    plm: FrozenPLM,
    texts: Sequence[str],
    pooling: Pooling,
    batch_tokens: int = BATCH_TOKENS,
) -> Floats:
    """Vectors of texts, none of them blank, (sentence, dim): tokenising, model and pooling."""
    ids = plm.tokenize(texts).ids
    result: Floats | None = None
    for chosen in plan_batches([len(sequence) for sequence in ids], batch_tokens):
        sequences = [ids[row] for row in chosen]
        batch = Batch(
            torch.tensor(chosen),
            torch.tensor(list(itertools.chain.from_iterable(sequences))),
            tuple(map(len, sequences)),
        )
        for rows, states in plm.states(batch, pooling.needs):
            vectors = pooling(states).numpy()
            if result is None:
                result = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
            result[rows.numpy()] = vectors
    assert result is not None
    return result
