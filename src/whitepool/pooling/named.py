"""Heads by the names that the command line has for them (conf/pooling)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from whitepool.errors import UserError
from whitepool.pooling.base import Pooling, TokenWeights
from whitepool.pooling.impact import Impact
from whitepool.pooling.linear import LinearPooling
from whitepool.pooling.nonlinear import MaxPooling, ModelPooler
from whitepool.pooling.prompt import DebiasedPrompt
from whitepool.pooling.sbert_wk import SbertWk
from whitepool.pooling.slots import MaskToken, SecondCopy
from whitepool.pooling.tokens import (
    AttentionDiagonal,
    ByPosition,
    FirstToken,
    LastToken,
    Uniform,
    Words,
)
from whitepool.states import Layer

if TYPE_CHECKING:
    from whitepool.framing import Frame

EOL = 'This sentence : "{text}" means in one word:"'
FRAMES = {
    "prompt": ('This sentence : "{text}" means [MASK].', True),
    "prompt_debiased": ('This sentence : "{text}" means [MASK].', True),
    "prompteol": (EOL, True),
    "prompt_cot": (f"After thinking step by step , t{EOL[1:]}", True),
    "prompt_ke": (
        "The essence of a sentence is often captured by its main subjects and actions, while "
        "descriptive terms provide additional but less central details. With this in mind , "
        f"t{EOL[1:]}",
        True,
    ),
    "echo": ("Rewrite the following sentence: {text}\nThe rewritten sentence: {text}", False),
}
LINEAR: dict[str, tuple[TokenWeights | None, tuple[Layer, ...]]] = {
    "avg": (Uniform(), (-1,)),
    "cls": (FirstToken(), (-1,)),
    "ditto": (None, (0, -1)),
    "echo": (SecondCopy(), (-1,)),
    "first_last": (Uniform(), (1, -1)),
    "first_last_0": (Uniform(), (0, -1)),
    "impact": (Impact(), (0, -1)),
    "last_token": (LastToken(), (-1,)),
    "layers": (Uniform(), (-1,)),
    "prompt": (MaskToken(), (-1,)),
    "prompt_cot": (LastToken(), (-2,)),
    "prompt_ke": (LastToken(), (-2,)),
    "prompteol": (LastToken(), (-1,)),
    "static": (Uniform(), ("static",)),
    "static_words": (Words(), ("static",)),
    "top2": (Uniform(), (-2, -1)),
    "weighted_mean": (ByPosition(), (-1,)),
}
NAMES = (*LINEAR, "max", "pooler", "prompt_debiased", "sbert_wk")


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
    if name in ("pooler", "sbert_wk") and layers is not None:
        raise UserError(f"pooling={name!r} takes no layers: leave layers out.")
    if name != "ditto" and (block is not None or head is not None):
        raise UserError(f"pooling={name!r} takes no block and head: they are for pooling='ditto'.")
    if name == "pooler":
        return ModelPooler()
    if name == "sbert_wk":
        return SbertWk()
    if name == "max":
        return MaxPooling((-1,) if layers is None else layers)
    if name == "prompt_debiased":
        return DebiasedPrompt((-1,) if layers is None else layers)
    tokens, usual = LINEAR[name]
    return LinearPooling(
        tokens or AttentionDiagonal(block, head), usual if layers is None else layers
    )


def frame_of(name: str) -> Frame:
    """What the head called ``name`` puts around texts."""
    from whitepool.framing import Frame

    return Frame(*FRAMES[name]) if name in FRAMES else Frame()


def name_of(pooling: Pooling, frame: Frame | None = None) -> str:
    """The name of a head, with no word on options: ``ditto`` for any block, head and layers.

    Where a head has several names by their templates, ``frame`` tells which is meant.
    """
    if isinstance(pooling, LinearPooling):
        same = [n for n, parts in LINEAR.items() if parts == (pooling.tokens, pooling.layers)]
        exact = [name for name in same if frame is not None and frame_of(name) == frame]
        plain = [name for name in same if name not in FRAMES]
        for found in (exact, plain, same):
            if len(found) == 1 or (found and found is not same):
                return found[0]
        if isinstance(pooling.tokens, AttentionDiagonal):
            return "ditto"
        return "layers" if pooling.tokens == Uniform() else "linear"
    names = {
        MaxPooling: "max",
        ModelPooler: "pooler",
        DebiasedPrompt: "prompt_debiased",
        SbertWk: "sbert_wk",
    }
    return names.get(type(pooling), type(pooling).__name__)
