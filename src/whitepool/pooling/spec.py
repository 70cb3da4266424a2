"""Heads as plain data: what a recipe may say of a head, and which class each name stands for.

The tables `HEADS` and `TOKENS` are the only link between names and classes, used both ways.
A field of a description is an argument of its class and an attribute of its objects.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

from torch import Tensor

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
    VocabularyWeights,
    Words,
)


@dataclass(frozen=True, kw_only=True)
class First:
    """All weight on the first token."""

    kind: Literal["first"] = "first"


@dataclass(frozen=True, kw_only=True)
class Last:
    """All weight on the last token."""

    kind: Literal["last"] = "last"


@dataclass(frozen=True, kw_only=True)
class Even:
    """Equal weights."""

    kind: Literal["uniform"] = "uniform"


@dataclass(frozen=True, kw_only=True)
class Diagonal:
    """The attention diagonal of one head; see `AttentionDiagonal`."""

    kind: Literal["attention_diagonal"] = "attention_diagonal"
    block: int
    head: int
    normalize: bool = False


@dataclass(frozen=True, kw_only=True)
class ByTokenId:
    """A weight for each token id; the weights are an array, ``token_weights`` (vocabulary,)."""

    kind: Literal["vocabulary"] = "vocabulary"


@dataclass(frozen=True, kw_only=True)
class Position:
    """Weights that grow with the position."""

    kind: Literal["position"] = "position"


@dataclass(frozen=True, kw_only=True)
class Unadded:
    """Equal weights on all tokens but the special ones."""

    kind: Literal["words"] = "words"


@dataclass(frozen=True, kw_only=True)
class Mask:
    """All weight on the one mask token."""

    kind: Literal["mask"] = "mask"


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Equal weights on the second copy of the text in the template."""

    kind: Literal["second_copy"] = "second_copy"


@dataclass(frozen=True, kw_only=True)
class Perturbed:
    """The impact of each token by perturbed masking; see `Impact`."""

    kind: Literal["impact"] = "impact"
    cap: int = 64


TokensSpec = (
    First | Last | Even | Diagonal | ByTokenId | Position | Unadded | Mask | Copy | Perturbed
)


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Token weights, and layers to average over."""

    kind: Literal["linear"] = "linear"
    tokens: TokensSpec
    layers: tuple[int | Literal["static"], ...]


@dataclass(frozen=True, kw_only=True)
class Max:
    """Elementwise maximum over the tokens."""

    kind: Literal["max"] = "max"
    layers: tuple[int | Literal["static"], ...]


@dataclass(frozen=True, kw_only=True)
class Pooler:
    """The model's own pooler."""

    kind: Literal["pooler"] = "pooler"
    activation: Literal["tanh", "none"] = "tanh"


@dataclass(frozen=True, kw_only=True)
class Debiased:
    """The mask token's vector less that of the template alone."""

    kind: Literal["debiased_prompt"] = "debiased_prompt"
    layers: tuple[int | Literal["static"], ...]


@dataclass(frozen=True, kw_only=True)
class Fused:
    """SBERT-WK; see `SbertWk`."""

    kind: Literal["sbert_wk"] = "sbert_wk"
    start: int
    window: int


PoolingSpec = Linear | Max | Pooler | Debiased | Fused

HEADS: dict[type, type] = {
    Linear: LinearPooling,
    Max: MaxPooling,
    Pooler: ModelPooler,
    Debiased: DebiasedPrompt,
    Fused: SbertWk,
}
TOKENS: dict[type, type] = {
    First: FirstToken,
    Last: LastToken,
    Even: Uniform,
    Diagonal: AttentionDiagonal,
    ByTokenId: VocabularyWeights,
    Position: ByPosition,
    Unadded: Words,
    Mask: MaskToken,
    Copy: SecondCopy,
    Perturbed: Impact,
}


def describe(pooling: Pooling) -> tuple[PoolingSpec, Tensor | None]:
    """A head as plain data, and its token weights by id (vocabulary,) if it has them.

    Raises:
        UserError: a head or token weights that a recipe has no name for.
    """
    spec = _named(HEADS, pooling, "head")
    values: dict[str, Any] = {name: getattr(pooling, name) for name in _arguments(spec)}
    if spec is not Linear:
        return spec(**values), None
    tokens = values["tokens"]
    weights = tokens.weights if isinstance(tokens, VocabularyWeights) else None
    inner = _named(TOKENS, tokens, "token weights")
    values["tokens"] = inner(**{name: getattr(tokens, name) for name in _arguments(inner)})
    return spec(**values), weights


def build(spec: PoolingSpec, token_weights: Tensor | None = None) -> Pooling:
    """The head that a description stands for.

    Args:
        spec: the description.
        token_weights: (vocabulary,), for token weights by id.

    Raises:
        UserError: the head refuses its arguments.
    """
    values = {name: getattr(spec, name) for name in _arguments(type(spec))}
    if isinstance(spec, Linear):
        values["tokens"] = _tokens(spec.tokens, token_weights)
    head: Pooling = HEADS[type(spec)](**values)
    return head


def _tokens(spec: TokensSpec, token_weights: Tensor | None) -> TokenWeights:
    if isinstance(spec, ByTokenId):
        if token_weights is None:
            raise UserError("token weights of kind vocabulary need the array token_weights.")
        return VocabularyWeights(token_weights)
    arguments = {name: getattr(spec, name) for name in _arguments(type(spec))}
    tokens: TokenWeights = TOKENS[type(spec)](**arguments)
    return tokens


def _arguments(spec: type) -> list[str]:
    return [field.name for field in fields(spec) if field.name != "kind"]


def _named(table: dict[type, type], thing: object, what: str) -> Any:
    for spec, kind in table.items():
        if type(thing) is kind:
            return spec
    choices = ", ".join(kind.__name__ for kind in table.values())
    raise UserError(
        f"a recipe has no name for the {what} {type(thing).__name__}: it knows {choices}."
    )
