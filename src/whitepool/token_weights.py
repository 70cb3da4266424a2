"""How much each token of a text counts in a linear head, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import LinearPooling, Pooling
from whitepool.states import Tokens, pad


@dataclass(frozen=True)
class Weighed:
    """A text as a linear head sees it.

    Attributes:
        tokens: its tokens as text.
        weights: of each token; they add up to 1 only where the head normalises them.
    """

    tokens: tuple[str, ...]
    weights: tuple[float, ...]


def weigh(plm: FrozenPLM, pooling: Pooling, ids: Sequence[Sequence[int]]) -> list[Weighed]:
    """Tokens and weights of each text; a blank one has none.

    Args:
        plm: the frozen model.
        pooling: a linear head.
        ids: token ids of each text, few enough for one batch.

    Raises:
        UserError: a head without token weights.
    """
    if not isinstance(pooling, LinearPooling):
        raise UserError(f"{type(pooling).__name__} has no token weights: use a linear head.")
    filled = [i for i, sequence in enumerate(ids) if sequence]
    result = [Weighed((), ())] * len(ids)
    if not filled:
        return result
    tokens = pad([ids[i] for i in filled], plm.pad_id)
    tokens = Tokens(tokens.ids.to(plm.device), tokens.mask.to(plm.device))
    weights = pooling.tokens(plm(tokens, pooling.needs)).tolist()
    for i, row in zip(filled, weights, strict=True):
        names = tuple(_spelt(plm, token) for token in ids[i])
        result[i] = Weighed(names, tuple(row[: len(names)]))
    return result


def _spelt(plm: FrozenPLM, token: int) -> str:
    """A token in letters, without the marks that stand for a space before it."""
    return plm.tokenizer.decode([token]).strip() or "␣"
