"""Heads by the names that the command line has for them (conf/pooling)."""

from __future__ import annotations

from collections.abc import Sequence

from whitepool.errors import UserError
from whitepool.pooling.base import Pooling, TokenWeights
from whitepool.pooling.linear import LinearPooling
from whitepool.pooling.nonlinear import MaxPooling, ModelPooler
from whitepool.pooling.tokens import AttentionDiagonal, FirstToken, LastToken, Uniform
from whitepool.states import Layer

LINEAR: dict[str, tuple[TokenWeights | None, tuple[Layer, ...]]] = {
    "avg": (Uniform(), (-1,)),
    "cls": (FirstToken(), (-1,)),
    "ditto": (None, (0, -1)),
    "first_last": (Uniform(), (1, -1)),
    "first_last_0": (Uniform(), (0, -1)),
    "last_token": (LastToken(), (-1,)),
    "layers": (Uniform(), (-1,)),
    "static": (Uniform(), ("static",)),
    "top2": (Uniform(), (-2, -1)),
}
NAMES = (*LINEAR, "max", "pooler")


def named(
    name: str,
    layers: Sequence[Layer] | None = None,
    block: int | None = None,
    head: int | None = None,
) -> Pooling:
    """The head called ``name``, with other layers if they are given.

    Args:
        name: one of `NAMES`.
        layers: which layers, in place of the head's usual ones.
        block: attention block of ``ditto``, 0-based.
        head: attention head of ``ditto``, 0-based.

    Raises:
        UserError: an unknown name, or an option that this head does not take.
    """
    if name not in NAMES:
        raise UserError(f"pooling is {name!r}: choose one of {', '.join(NAMES)}.")
    if name == "pooler" and layers is not None:
        raise UserError("pooling='pooler' takes no layers: leave layers out.")
    if name != "ditto" and (block is not None or head is not None):
        raise UserError(f"pooling={name!r} takes no block and head: they are for pooling='ditto'.")
    if name == "pooler":
        return ModelPooler()
    if name == "max":
        return MaxPooling((-1,) if layers is None else layers)
    tokens, usual = LINEAR[name]
    return LinearPooling(
        tokens or AttentionDiagonal(block, head), usual if layers is None else layers
    )


def name_of(pooling: Pooling) -> str:
    """The name of a head, with no word on options: ``ditto`` for any block, head and layers."""
    if isinstance(pooling, LinearPooling):
        for name, (tokens, layers) in LINEAR.items():
            if tokens == pooling.tokens and layers == pooling.layers:
                return name
        if isinstance(pooling.tokens, AttentionDiagonal):
            return "ditto"
        return "layers" if pooling.tokens == Uniform() else "linear"
    return {MaxPooling: "max", ModelPooler: "pooler"}.get(type(pooling), type(pooling).__name__)
