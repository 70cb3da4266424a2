"""Encoders of tiny models, and what to compare their exports on."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from whitepool.encoder import Encoder
from whitepool.plm import FrozenPLM
from whitepool.pooling import (
    AttentionDiagonal,
    FirstToken,
    LastToken,
    LinearPooling,
    MaxPooling,
    ModelPooler,
    Pooling,
    Uniform,
    VocabularyWeights,
)
from whitepool.recipe_model import describe_model
from whitepool.whitening import Whitening

from tiny import WORDS

MAX_LENGTH = 20
WEIGHTS = torch.rand(25, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
WEIGHTS[[0, 2]] = 0.0  # [CLS] and [SEP], as idf and SIF have them

# What sentence-transformers' own modules do, and what they do not.
CHAINS: dict[str, Pooling] = {
    "avg": LinearPooling(Uniform(), [-1]),
    "cls": LinearPooling(FirstToken(), [-1]),
    "last_token": LinearPooling(LastToken(), [3]),
    "first_last": LinearPooling(Uniform(), [1, -1]),
    "first_last_0": LinearPooling(Uniform(), [0, -1]),
    "one_layer": LinearPooling(Uniform(), [-2]),
    "layers": LinearPooling(LastToken(), [2, 0, 2]),
    "weights": LinearPooling(VocabularyWeights(WEIGHTS), [-1]),
    "weights_layers": LinearPooling(VocabularyWeights(WEIGHTS), [1, 2]),
    "max": MaxPooling([-1]),
    "max_layer": MaxPooling([1]),
    "pooler": ModelPooler(),
    "pooler_none": ModelPooler("none"),
}
OWN: dict[str, Pooling] = {
    "static": LinearPooling(Uniform(), ["static"]),
    "static_last": LinearPooling(Uniform(), ["static", -1]),
    "max_layers": MaxPooling([1, -1]),
    "ditto": LinearPooling(AttentionDiagonal(1, 2), [0, -1]),
    "ditto_normalized": LinearPooling(AttentionDiagonal(0, 3, normalize=True), [0, -1]),
}
HEADS = CHAINS | OWN
POSTS = {"raw": None, "pca": Whitening(12), "pca_all": Whitening()}


def texts(n: int, seed: int = 0) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(n)]


FIT = texts(120, seed=1)
TEXTS = [*texts(30), "  a dog , runs .  ", "not a WORD it knows"]  # some over MAX_LENGTH


@cache
def model(folder: Path) -> FrozenPLM:
    """A tiny model, loaded once."""
    return FrozenPLM.from_pretrained(path=folder, name="tiny")


def encoder(folder: Path, head: str, post: str = "raw", **options: Any) -> Encoder:
    """An encoder of a tiny model, whitened if ``post`` says so."""
    plm = model(folder)
    made = Encoder(
        plm,
        HEADS[head],
        model=describe_model(plm, path=folder),
        post=POSTS[post],
        **{"max_length": MAX_LENGTH, **options},
    )
    return made.fit(FIT) if post != "raw" else made


def gaps(ours: Any, theirs: Any) -> tuple[float, float]:
    """Largest difference of components, in units of the largest, and of cosines."""
    a, b = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    units = [
        x / np.where((n := np.linalg.norm(x, axis=1, keepdims=True)) > 0, n, 1) for x in (a, b)
    ]
    cosines = [unit @ unit.T for unit in units]
    return np.abs(a - b).max() / np.abs(a).max(), np.abs(cosines[0] - cosines[1]).max()


def same(ours: Any, theirs: Any) -> bool:
    """Cosines equal to 1e-5, components to 1e-4 of the largest."""
    components, cosines = gaps(ours, theirs)
    return components <= 1e-4 and cosines <= 1e-5
