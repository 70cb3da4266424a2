"""Feed-forward parts in blocks of rows, so that what lies between their products stays in cache.

A feed-forward part works on each token by itself, and what it holds between its two products is
four times as wide as a hidden state: of a batch of 4,096 tokens, 25 MB or more, written to memory
and read again three times. In blocks of some hundred tokens the same products run an eighth to a
fifth faster (see docs/performance.md), and give the same values up to the last bit of rounding.

transformers gives that part a name of its own in most families, so that it may be cut into chunks;
that name is taken here, since its own setting wants chunks that divide the tokens evenly.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

from torch import Tensor, nn

VALUES = 3 * 2**17  # of the hidden states of a block: 1,024 rows of 384, 512 of 768
NAMES = ("feed_forward_chunk", "ff_chunk")  # (batch, token, dim) -> the same
MODULE = "MLP"  # ends the class's name where the part is a module of its own, as in decoders
# Blocks of these classes call output(intermediate(x), x), which has no name.
TWO_MODULES = ("MPNetLayer", "DebertaLayer", "DebertaV2Layer")


def in_blocks(model: nn.Module) -> int:
    """Let the feed-forward parts of a model work on blocks of rows; returns how many.

    Models that name no such part are left as they are.
    """
    found = [
        (module, name) for module in model.modules() for name in NAMES if hasattr(module, name)
    ]
    found += [
        (module, "forward")
        for path, module in model.named_modules()
        if path.endswith(".mlp") and type(module).__name__.endswith(MODULE)
    ]
    for module, name in found:
        setattr(module, name, MethodType(_METHODS[name], module))
    layers: list[Any] = [m for m in model.modules() if type(m).__name__ in TWO_MODULES]
    for layer in layers:
        # Not as a submodule: the parameters of the first half keep their one name.
        layer.output.__dict__["first_half"] = layer.intermediate
        layer.intermediate.forward = MethodType(_pass_on, layer.intermediate)
        layer.output.forward = MethodType(_both_halves, layer.output)
    return len(found) + len(layers)


def _in_blocks(name: str) -> Callable[[Any, Tensor], Tensor]:
    """A method in place of that of the name, which calls it on some rows at a time."""

    def blocks(module: Any, x: Tensor) -> Tensor:
        whole: Callable[[Any, Tensor], Tensor] = getattr(type(module), name)
        return _by_rows(lambda some: whole(module, some), x)

    return blocks


def _pass_on(_: Any, x: Tensor) -> Tensor:
    """The first half leaves its work to the second."""
    return x


def _both_halves(output: Any, x: Tensor, residual: Tensor) -> Tensor:
    """The second half, which calls the first half too, on some rows at a time."""
    first = output.first_half
    assert x is residual
    return _by_rows(
        lambda some: type(output).forward(output, type(first).forward(first, some), some), x
    )


def _by_rows(whole: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A function of tokens, (batch, token, dim) -> the same, in blocks if there are many."""
    rows, block = x.shape[:-1].numel(), max(1, VALUES // x.shape[-1])
    if rows <= block or x.device.type != "cpu":
        return whole(x)
    result = x.new_empty(x.shape)
    flat, out = x.reshape(1, rows, -1), result.view(1, rows, -1)
    for start in range(0, rows, block):
        some = slice(start, start + block)
        out[:, some] = whole(flat[:, some])
    return result


_METHODS = {name: _in_blocks(name) for name in (*NAMES, "forward")}
