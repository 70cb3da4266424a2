"""Where a transformers model keeps its blocks, its pooler and its length limit.

Two families need a word of their own: XLM has no block module, only parallel lists of layers, and
SqueezeBERT calls its blocks past their hooks and holds states as (batch, dim, token).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from whitepool.attention import capturing
from whitepool.errors import UserError

UNLIMITED = 10**6  # tokenizers without a limit say 1e30


class Stop(Exception):
    """Raised inside a forward pass once the last layer needed is known."""


def depth(model: Any) -> int:
    """Number of blocks."""
    return int(model.config.get_text_config().num_hidden_layers)


def install(model: Any, n_blocks: int) -> None:
    """Hook the blocks so that a running `Capture` counts them and keeps what it asks for."""
    if not n_blocks:
        return  # word vectors have none
    swapped = model.config.model_type == "squeezebert"
    entries, exits = _ends(model, n_blocks)

    def states(value: Any) -> Tensor:
        value = value[0] if isinstance(value, tuple) else value
        tensor: Tensor = value.transpose(1, 2) if swapped else value
        return tensor

    def enter(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if (capture := capturing.get()) is None:
            return
        capture.block += 1
        if capture.block == 0 and 0 in capture.layers:
            capture.hidden[0] = states(args[0] if args else kwargs["hidden_states"])
        if capture.last == 0:
            raise Stop

    def leave(_: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if (capture := capturing.get()) is None:
            return
        layer = capture.block + 1
        if layer == n_blocks:
            return  # the model's own output is the last layer: a final norm may follow the block
        if layer in capture.layers:
            capture.hidden[layer] = states(output)
        if layer == capture.last:
            raise Stop

    for module in entries:
        module.register_forward_pre_hook(enter, with_kwargs=True)
    for module in exits:
        module.register_forward_hook(leave)


def _ends(model: Any, n_blocks: int) -> tuple[list[nn.Module], list[nn.Module]]:
    """Modules whose input enters a block, and modules whose output leaves it."""
    if model.config.model_type == "xlm":
        return list(model.attentions), list(model.layer_norm2)
    if model.config.model_type == "squeezebert":
        layers = model.encoder.layers
        return [layer.attention for layer in layers], [layer.output for layer in layers]
    if model.config.model_type == "albert":  # the blocks of a group share one module
        groups = list(model.encoder.albert_layer_groups)
        return groups, groups
    for _, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and len(module) == n_blocks:
            return list(module), list(module)
    raise UserError(f"models of type {model.config.model_type} are not supported: no blocks found.")


def pooler_map(model: Any, missing: tuple[str, ...], name: str) -> Callable[[Tensor], Tensor]:
    """The linear map of the model's pooler, (batch, dim) -> (batch, dim), before its tanh.

    Raises:
        UserError: the model has no pooler, or the checkpoint lacked its weights.
    """
    pooler = getattr(model, "pooler", None)
    dense = pooler if isinstance(pooler, nn.Linear) else getattr(pooler, "dense", None)
    if dense is None:
        raise UserError(f"model {name} has no pooler: use pooling=cls, avg or another head.")
    if any("pooler" in key for key in missing):
        raise UserError(
            f"the checkpoint of model {name} has no pooler weights, they would be random: use "
            "pooling=cls, avg or another head."
        )
    result: Callable[[Tensor], Tensor] = dense
    return result


def window(model: Any) -> int:
    """How far apart two tokens may stand and still always see each other, in tokens."""
    return int(getattr(model.config.get_text_config(), "sliding_window", None) or UNLIMITED)


def _position_table(model: Any) -> nn.Embedding | None:
    for path, module in model.named_modules():
        leaf = path.rpartition(".")[2]
        if isinstance(module, nn.Embedding) and leaf in ("position_embeddings", "wpe"):
            return module
    return None


def positions(model: Any, ids: Tensor) -> Tensor:
    """Positions of the tokens of sentences of one length, (sentence, token).

    They count from 0, or from behind the padding index in RoBERTa's family, where a padding token
    within the text stays at that index.
    """
    table = _position_table(model)
    if table is None or table.padding_idx is None:
        return torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    counts = ids.ne(table.padding_idx)
    return table.padding_idx + counts.cumsum(1) * counts


def length_limit(model: Any, tokenizer: Any, stated: int | None) -> int:
    """The most tokens a text may have, special ones included.

    The least of the position table's rows that can be reached (RoBERTa's positions start behind
    the padding index, so 514 rows hold 512 tokens), the tokenizer's limit and the ``stated`` one.
    """
    limits = [tokenizer.model_max_length, stated or UNLIMITED]
    table = _position_table(model)
    if table is not None:
        reserved = 0 if table.padding_idx is None else table.padding_idx + 1
        limits.append(table.num_embeddings - reserved)
    else:
        limits.append(getattr(model.config, "max_position_embeddings", None) or UNLIMITED)
    return int(min(limits))
