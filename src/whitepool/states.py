"""What a pooling head asks of a frozen model, and what the model gives back.

The axes, here and everywhere: batch, token, layer, block, head, dim, pair, recipe. A *layer* is
a point between blocks: layer 0 is the embedding output (what enters block 0), layer l is the
output of the l-th block (block l - 1, counting blocks from 0), -1 is the last. ``"static"`` is
neither of these but the raw word-embedding table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from whitepool.errors import UserError

Layer = int | Literal["static"]
BlockHead = tuple[int, int]


class Tokens(NamedTuple):
    """A batch of token sequences.

    Attributes:
        ids: (batch, token), int64.
        mask: (batch, token), bool, true at the tokens that belong to the sentence. Padding may
            stand on either side.
    """

    ids: Tensor
    mask: Tensor


class Batch(NamedTuple):
    """Sentences of a table, without padding.

    Attributes:
        rows: (sentence,), rows of the table.
        ids: (token,), their token ids one after the other.
        lengths: tokens of each sentence; equal lengths stand side by side.
    """

    rows: Tensor
    ids: Tensor
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Needs:
    """What a head needs, so that nothing else is computed.

    Attributes:
        layers: layers whose hidden states are kept; negative counts from the end.
        diagonals: (block, head) pairs, 0-based, whose attention diagonal is kept.
        pooler: whether the model's own pooler is needed.
        since: every layer from this one to the last is kept; None for those of ``layers`` alone.
    """

    layers: tuple[Layer, ...] = ()
    diagonals: tuple[BlockHead, ...] = ()
    pooler: bool = False
    since: int | None = None

    def __or__(self, other: Needs) -> Needs:
        since = [needs.since for needs in (self, other) if needs.since is not None]
        return Needs(
            tuple(dict.fromkeys(self.layers + other.layers)),
            tuple(dict.fromkeys(self.diagonals + other.diagonals)),
            self.pooler or other.pooler,
            min(since, default=None),
        )

    def all_layers(self, depth: int) -> tuple[Layer, ...]:
        """All layers that are kept of a model with ``depth`` blocks."""
        more = () if self.since is None else range(self.since, depth + 1)
        return (*self.layers, *more)


def resolve_layer(layer: Layer, depth: int) -> Layer:
    """The layer counted from the embedding output (0) of a model with ``depth`` blocks.

    Raises:
        UserError: the layer does not exist; the message names the model's depth.
    """
    if layer == "static":
        return layer
    if isinstance(layer, bool) or not isinstance(layer, int) or not -depth - 1 <= layer <= depth:
        raise UserError(
            f"layer {layer} does not exist: this model has {depth} blocks, so layers go from 0 "
            f"(embedding output) to {depth}, or -1 to {-depth - 1} from the end, or 'static'."
        )
    return layer % (depth + 1)


@dataclass(frozen=True)
class States:
    """Hidden states of one batch, and what else was asked for.

    Attributes:
        depth: number of blocks of the model.
        mask: (batch, token), bool.
        ids: (batch, token).
        hidden: layer (resolved, see `resolve_layer`) -> (batch, token, dim).
        diagonals: (block, head) -> (batch, token), the attention each token pays itself.
        pooled: (batch, dim), the pooler's linear map of the first token, before its tanh.
        mask_id: id of the model's mask token, None where it has none.
        added: ids of the model's special tokens, the unknown token not among them.
    """

    depth: int
    mask: Tensor
    ids: Tensor
    hidden: dict[Layer, Tensor] = field(default_factory=dict)
    diagonals: dict[BlockHead, Tensor] = field(default_factory=dict)
    pooled: Tensor | None = None
    mask_id: int | None = None
    added: tuple[int, ...] = ()

    def stack(self, layers: Iterable[Layer]) -> list[Tensor]:
        """The hidden states of ``layers`` in float32, one (batch, token, dim) for each."""
        return [self.hidden[resolve_layer(layer, self.depth)].float() for layer in layers]


def pad(sequences: Sequence[Sequence[int]], pad_id: int, length: int | None = None) -> Tokens:
    """Right-padded batch of token sequences, (batch, token).

    Args:
        sequences: token ids of each sentence, none of them empty.
        pad_id: any id the embedding table has; the mask keeps it from mattering.
        length: pad to this many tokens rather than to the longest sequence.
    """
    length = length or max(len(s) for s in sequences)
    ids = torch.full((len(sequences), length), pad_id, dtype=torch.long)
    mask = torch.zeros((len(sequences), length), dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.long)
        mask[row, : len(sequence)] = True
    return Tokens(ids, mask)
