"""NEZHA against a slow loop over tokens, heads and dimensions written from the paper's formula."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from whitepool.errors import UserError
from whitepool.nezha import sinusoids
from whitepool.plm import FrozenPLM
from whitepool.states import Needs, pad

from tiny import make_checkpoint

TEXT = "the cat is not on the food , the dog eats the food ."


def angles(p: int, dim: int) -> np.ndarray:
    a = np.zeros(dim)
    for k in range(dim // 2):
        a[2 * k] = math.sin(p / 10000 ** (2 * k / dim))
        a[2 * k + 1] = math.cos(p / 10000 ** (2 * k / dim))
    return a


def norm(x: np.ndarray, weights: dict[str, Any], name: str, eps: float) -> np.ndarray:
    x = (x - x.mean()) / math.sqrt(x.var() + eps)
    return x * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def slow(model: Any, ids: tuple[int, ...]) -> tuple[list[np.ndarray], np.ndarray]:
    """Every layer, (token, dim), and the attention diagonals (block, head, token)."""
    w = {k: v.double().numpy() for k, v in model.state_dict().items()}
    c = model.config
    d, reach = c.hidden_size // c.num_attention_heads, c.max_relative_position
    x = np.stack(
        [
            norm(
                w["embeddings.word_embeddings.weight"][i]
                + w["embeddings.token_type_embeddings.weight"][0],
                w, "embeddings.LayerNorm", c.layer_norm_eps,
            )
            for i in ids
        ]
    )  # fmt: skip
    layers, diagonals = [x], np.zeros((c.num_hidden_layers, c.num_attention_heads, len(ids)))

    def linear(name: str, v: np.ndarray) -> np.ndarray:
        return w[f"{name}.weight"] @ v + w[f"{name}.bias"]

    for block in range(c.num_hidden_layers):
        at = f"encoder.layer.{block}"
        attended = np.zeros_like(x)
        for head in range(c.num_attention_heads):
            own = slice(head * d, (head + 1) * d)
            for i in range(len(ids)):
                query = linear(f"{at}.attention.self.query", x[i])[own]
                scores, values = [], []
                for j in range(len(ids)):
                    a = angles(max(-reach, min(reach, j - i)) + reach, d)
                    key = linear(f"{at}.attention.self.key", x[j])[own] + a
                    values.append(linear(f"{at}.attention.self.value", x[j])[own] + a)
                    scores.append(query @ key / math.sqrt(d))
                alpha = np.exp(scores) / np.exp(scores).sum()
                diagonals[block, head, i] = alpha[i]
                attended[i, own] = sum(p * v for p, v in zip(alpha, values, strict=True))
        rows = []
        for i in range(len(ids)):
            y = linear(f"{at}.attention.output.dense", attended[i]) + x[i]
            y = norm(y, w, f"{at}.attention.output.LayerNorm", c.layer_norm_eps)
            inner = linear(f"{at}.intermediate.dense", y)
            inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / math.sqrt(2)))
            y = linear(f"{at}.output.dense", inner) + y
            rows.append(norm(y, w, f"{at}.output.LayerNorm", c.layer_norm_eps))
        x = np.stack(rows)
        layers.append(x)
    return layers, diagonals


def test_every_layer_and_diagonal_is_the_loops(plm: Any) -> None:
    """Sentences are longer than the reach of 4, so that distances are clipped on both sides."""
    model = plm("nezha")
    (ids,) = model.tokenize([TEXT]).ids
    assert len(ids) > 2 * model.model.config.max_relative_position
    pairs = tuple((block, head) for block in range(3) for head in range(4))
    states = model(pad([ids], 0), Needs((0, 1, 2, 3), pairs))
    layers, diagonals = slow(model.model, ids)
    for layer, wanted in enumerate(layers):
        np.testing.assert_allclose(states.hidden[layer][0].numpy(), wanted, atol=2e-5)
    for (block, head), found in states.diagonals.items():
        np.testing.assert_allclose(found[0].numpy(), diagonals[block, head], atol=1e-5)


def test_positions_matter_by_their_distance_alone(plm: Any) -> None:
    """There is no position table: where a sentence stands cannot be told, its order can."""
    model = plm("nezha")
    assert "position" not in " ".join(model.model.state_dict())
    one, other = (model.tokenize([t]).ids[0] for t in ("dog eats cat", "cat eats dog"))
    a, b = (model(pad([ids], 0), Needs((-1,))).hidden[3][0, 0] for ids in (one, other))
    assert (a - b).abs().max() > 1e-3


def test_sinusoids() -> None:
    table = sinusoids(129, 64)
    for p in (0, 1, 64, 128):
        np.testing.assert_allclose(table[p].numpy(), angles(p, 64), atol=1e-6)


def test_released_checkpoints_load_by_their_names(tmp_path: Path, checkpoint: Any) -> None:
    """They have a prefix, a head for masked words and a table of sinusoids beside the weights."""
    folder = make_checkpoint("nezha", tmp_path / "released")
    weights = load_file(folder / "model.safetensors")
    released = {f"nezha.{name}": tensor for name, tensor in weights.items()}
    released["cls.predictions.bias"] = torch.zeros(3)
    table = "nezha.encoder.layer.0.attention.self.relative_positions_encoding.positions_encoding"
    released[table] = torch.zeros(2, 2, 8)
    save_file(released, folder / "model.safetensors", metadata={"format": "pt"})
    plain, prefixed = (
        FrozenPLM.from_pretrained(path=path) for path in (checkpoint("nezha"), folder)
    )
    for name, tensor in plain.model.state_dict().items():
        assert torch.equal(tensor, prefixed.model.state_dict()[name]), name
    assert prefixed.limit == 64


def test_a_checkpoint_that_lacks_a_weight(tmp_path: Path) -> None:
    folder = make_checkpoint("nezha", tmp_path / "broken")
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.attention.self.key.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"lacks 1 weights of a NezhaModel \(first: encoder\.layer"):
        FrozenPLM.from_pretrained(path=folder)
