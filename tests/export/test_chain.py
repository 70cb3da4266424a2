"""Which recipes sentence-transformers' own modules express, and with which modules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from whitepool.export.chain import float32_error, modules, obstacle
from whitepool.pooling import LinearPooling, VocabularyWeights
from whitepool.whitening import Affine, Whitening

from made import CHAINS, HEADS, OWN, encoder, model

pytest.importorskip(
    "sentence_transformers", reason='pip install "whitepool[sentence-transformers]"'
)
Checkpoint = Callable[[str], Path]


def names(folder: Path, head: str, post: str = "raw") -> list[str]:
    made = encoder(folder, head, post)
    return [type(m).__name__ for m in modules(made.recipe(), model(folder), made.pooled.dim)]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("avg", ["Pooling"]),
        ("last_token", ["Pooling"]),  # layer 3 of 3 blocks is the last
        ("one_layer", ["WeightedLayerPooling", "Pooling"]),
        ("weights_layers", ["WeightedLayerPooling", "WordWeights", "Pooling"]),
        ("pooler", ["Pooling", "Dense"]),
    ],
)
def test_only_the_modules_that_are_needed(
    checkpoint: Checkpoint, head: str, expected: list[str]
) -> None:
    assert names(checkpoint("bert"), head) == expected
    assert names(checkpoint("bert"), head, "pca") == [*expected, "Dense"]


@pytest.mark.parametrize("head", HEADS)
def test_obstacles(checkpoint: Checkpoint, head: str) -> None:
    folder = checkpoint("bert")
    reason = obstacle(encoder(folder, head).recipe(), model(folder))
    assert (reason is None) == (head in CHAINS)
    assert reason is None or reason.startswith("they ")
    assert head not in OWN or reason


def test_the_modules_computed_by_hand(checkpoint: Checkpoint) -> None:
    """Layers, word weights, mean and map of one batch with padding, from the formula."""
    folder = checkpoint("bert")
    made = encoder(folder, "weights_layers", "pca")
    recipe = made.recipe()
    draw = torch.Generator().manual_seed(1)
    hidden = [torch.randn(2, 5, 32, generator=draw, dtype=torch.float64) for _ in range(4)]
    ids = torch.tensor([[0, 7, 8, 9, 2], [0, 5, 2, 1, 1]])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    features: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    features["token_embeddings"] = hidden[-1].float()
    features["all_layer_embeddings"] = tuple(h.float() for h in hidden)
    for module in modules(recipe, model(folder), 32):
        features = module(features)
    weights = recipe.arrays["token_weights"][ids] * mask
    average = (hidden[1] + hidden[2]) / 2
    vectors = torch.stack(
        [
            sum(w * h for w, h in zip(row, states, strict=True)) / row.sum()
            for row, states in zip(weights, average, strict=True)
        ]
    )
    expected = (vectors - recipe.arrays["mean"]) @ recipe.arrays["basis"]
    found = features["sentence_embedding"].detach().numpy()
    assert np.abs(found - expected.numpy()).max() <= 1e-5 * expected.abs().max()


def test_every_id_has_its_weight_even_without_a_text(checkpoint: Checkpoint) -> None:
    """A model may have more embeddings than its tokenizer has tokens."""
    folder = checkpoint("bert")
    weights = torch.arange(30, dtype=torch.float64)
    recipe = encoder(folder, "weights").recipe()
    recipe = replace(recipe, arrays={"token_weights": weights})
    found = modules(recipe, model(folder), 32)[0]
    assert found.emb_layer.weight.flatten().tolist() == list(range(30))
    assert len(set(found.vocab)) == 30


def test_weights_too_small_to_divide_by(checkpoint: Checkpoint) -> None:
    folder = checkpoint("bert")
    tiny = torch.full((25,), 1e-12, dtype=torch.float64)
    recipe = encoder(folder, "weights").recipe()
    recipe = replace(recipe, arrays={"token_weights": tiny})
    assert LinearPooling(VocabularyWeights(tiny), [-1]).layers == (-1,)
    assert obstacle(recipe, model(folder)) == "they have no token weights below 1e-09"


def test_a_tokenizer_with_nothing_to_pad_with(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    plm = model(checkpoint("gpt2"))
    recipe = encoder(checkpoint("gpt2"), "avg").recipe()
    assert obstacle(recipe, plm) is None
    bare = copy.deepcopy(plm.tokenizer)
    bare.unk_token = None
    monkeypatch.setattr(plm, "tokenizer", bare)
    assert "the tokenizer has none" in str(obstacle(recipe, plm))


@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
def test_the_error_of_float32_is_about_what_it_is(spread: float) -> None:
    """The map in float32 beside float64, with one direction of little variance far from zero."""
    draw = torch.Generator().manual_seed(0)
    scale = torch.ones(16, dtype=torch.float64)
    scale[0] = spread
    x = torch.randn(4000, 16, generator=draw, dtype=torch.float64) * scale + 3
    turn = torch.linalg.qr(torch.randn(16, 16, generator=draw, dtype=torch.float64))[0]
    from whitepool.moments import Moments

    x = x @ turn
    affine: Affine = Whitening().fit(Moments(16).update(x))
    exact = (x - affine.mean) @ affine.basis
    bias = -(affine.mean @ affine.basis).float()
    coarse = torch.nn.functional.linear(x.float(), affine.basis.T.float(), bias).double()
    a, b = (torch.nn.functional.normalize(z[:200]) for z in (exact, coarse))
    found = float((a @ a.T - b @ b.T).abs().max())
    assert found / 10 < float32_error(affine) < found * 10
