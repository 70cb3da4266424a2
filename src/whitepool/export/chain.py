"""Recipes as modules of sentence-transformers, where those give the same vectors.

    Transformer -> WeightedLayerPooling -> WordWeights -> Pooling -> Dense -> Dense

The first holds model, tokenizer and maximum length; the second averages layers, the third weighs
tokens by their id, the fourth pools (special tokens included, as here), one Dense is the model's
pooler, and the other the fitted map z = B'v - B'm. Each of them but the first and the fourth is
there only where it is needed. Read from the source of sentence-transformers 6.2.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn

from whitepool import blocks
from whitepool.plm import FrozenPLM
from whitepool.pooling.spec import (
    ByTokenId,
    Even,
    First,
    Last,
    Linear,
    Max,
    Pooler,
    PoolingSpec,
    Position,
)
from whitepool.recipe import SLOT, Recipe
from whitepool.states import resolve_layer
from whitepool.whitening import Affine

MODES: dict[type, str] = {
    First: "cls",
    Last: "lasttoken",
    Even: "mean",
    ByTokenId: "mean",
    Position: "weightedmean",
    Max: "max",
    Pooler: "cls",
}
LEAST_SUM = 1e-9  # Pooling divides by no sum of token weights below this
COARSEST = 1e-5  # change of a cosine


def obstacle(recipe: Recipe, plm: FrozenPLM) -> str | None:
    """Why sentence-transformers' own modules cannot do what the recipe does; None if they can.

    Args:
        recipe: what is to be done.
        plm: its model.
    """
    reason = _of_model(recipe, plm) or _of_texts(recipe) or _of_head(recipe)
    if reason is None and recipe.post is not None and recipe.post.kind == "flow":
        reason = "they have no flow"
    if reason is None and recipe.affine is not None:
        error = float32_error(recipe.affine)
        if error > COARSEST:
            reason = f"with this whitening their float32 would move cosines by {error:.0g}"
    return reason


def _of_model(recipe: Recipe, plm: FrozenPLM) -> str | None:
    if not type(plm.model).__module__.startswith("transformers."):
        return f"they know no models of the family {plm.model.config.model_type}"
    if recipe.model.dtype != "float32":
        return f"they would round its vectors to {recipe.model.dtype}"
    tokenizer = plm.tokenizer
    if tokenizer.pad_token is tokenizer.eos_token is tokenizer.unk_token is None:
        return "they need a padding token, and the tokenizer has none"
    return None


def _of_texts(recipe: Recipe) -> str | None:
    if recipe.template != SLOT:
        return "they have no templates"
    if recipe.full_stop:
        return "they put no full stop behind a text"
    if recipe.long_text != "truncate":
        return f"they have no long_text={recipe.long_text}"
    return None


def _of_head(recipe: Recipe) -> str | None:
    head = recipe.pooling
    if _kind(head) not in MODES:
        return f"they have no {getattr(head, 'tokens', head).kind} pooling"
    if isinstance(head, Linear | Max) and "static" in head.layers:
        return "they have no raw word embeddings as a layer"
    if isinstance(head, Max) and len(head.layers) > 1:
        return "they take the maximum of a mean over layers, not the mean of maxima"
    weights = recipe.arrays.get("token_weights")
    if weights is not None and bool(((weights > 0) & (weights < LEAST_SUM)).any()):
        return f"they have no token weights below {LEAST_SUM}"
    return None


def _kind(head: PoolingSpec) -> type:
    return type(head.tokens) if isinstance(head, Linear) else type(head)


def float32_error(affine: Affine) -> float:
    """By how much the rounding of v to float32 moves a cosine of z = (v - m) B at most, about.

    v is off by eps |v| in each direction, and z by eps |v| |B| / sqrt(k) of its length, where
    whitened components have variance 1 on the vectors that were fitted: |z|^2 = k, and the variance
    of v along column b is 1 / |b|^2. A direction of next to no variance is magnified most. Such an
    error stands in any direction, so that a cosine sees 1 / sqrt(k) of it, and 4 times that is
    rare.
    """
    norms = affine.basis.norm(dim=0)
    v = (affine.mean.square().sum() + norms.pow(-2).sum()).sqrt()
    return float(4 * torch.finfo(torch.float32).eps * v * norms.norm() / len(norms))


def modules(recipe: Recipe, plm: FrozenPLM, dim: int) -> list[Any]:
    """The modules behind the Transformer, in their order.

    Args:
        recipe: without an `obstacle`.
        plm: its model.
        dim: dimensions of the vectors before the map.
    """
    from sentence_transformers.sentence_transformer.modules import Pooling, WeightedLayerPooling

    head, result = recipe.pooling, []
    width = _pooler(plm).in_features if isinstance(head, Pooler) else dim
    if layers := layers_besides_last(recipe, plm):
        counts = Counter(layers)
        first = min(counts)
        weights = [float(counts[layer]) for layer in range(first, plm.depth + 1)]
        result.append(
            WeightedLayerPooling(
                width,
                num_hidden_layers=plm.depth,
                layer_start=first,
                layer_weights=nn.Parameter(torch.tensor(weights)),
            )
        )
    if isinstance(head, Linear) and isinstance(head.tokens, ByTokenId):
        result.append(_word_weights(plm.tokenizer, recipe.arrays["token_weights"]))
    result.append(Pooling(width, MODES[_kind(head)]))
    if isinstance(head, Pooler):
        dense = _pooler(plm)
        bias = None if dense.bias is None else dense.bias.detach()
        result.append(_dense(dense.weight.detach(), bias, tanh=head.activation == "tanh"))
    if recipe.affine is not None:
        result.append(_map(recipe.affine))
    return result


def layers_besides_last(recipe: Recipe, plm: FrozenPLM) -> list[int]:
    """The layers of a head that uses others than the last, counted from 0; else none."""
    if not isinstance(recipe.pooling, Linear | Max):
        return []
    layers = [resolve_layer(layer, plm.depth) for layer in recipe.pooling.layers]
    numbered = [layer for layer in layers if isinstance(layer, int)]
    return [] if set(numbered) == {plm.depth} else numbered


def _pooler(plm: FrozenPLM) -> nn.Linear:
    pooler: Any = blocks.pooler_map(plm.model, plm.missing, plm.name)
    linear: nn.Linear = pooler
    return linear


def _word_weights(tokenizer: Any, weights: Tensor) -> Any:
    """WordWeights: a weight for each token, by its text; ids without a text get a made-up one."""
    from sentence_transformers.sentence_transformer.modules import WordWeights

    words: list[str] = []
    seen: set[str] = set()
    known = dict(map(reversed, tokenizer.get_vocab().items()))
    for i in range(len(weights)):
        word = known.get(i, "")
        while not word or word in seen:
            word += f"[no token {i}]"
        seen.add(word)
        words.append(word)
    return WordWeights(words, dict(zip(words, weights.tolist(), strict=True)))


def _map(affine: Affine) -> Any:
    """Dense: z = B'v - B'm, (batch, dim) -> (batch, k)."""
    return _dense(affine.basis.T, -(affine.mean @ affine.basis), tanh=False)


def _dense(weight: Tensor, bias: Tensor | None, *, tanh: bool) -> Any:
    from sentence_transformers.sentence_transformer.modules import Dense

    out_features, in_features = weight.shape
    return Dense(
        in_features,
        out_features,
        bias=bias is not None,
        activation_function=nn.Tanh() if tanh else nn.Identity(),
        init_weight=weight.float().cpu().contiguous(),
        init_bias=None if bias is None else bias.float().cpu(),
    )
