"""Heads that need more than states: the template around a text, or the model to run it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from whitepool.pooling.base import Pooling
from whitepool.pooling.linear import LinearPooling

if TYPE_CHECKING:
    from whitepool.framing import Frame
    from whitepool.plm import FrozenPLM


@runtime_checkable
class Binds(Protocol):
    """A head, or token weights, to be told of a model and a template before it is called."""

    def bound(self, plm: FrozenPLM, frame: Frame) -> Any:
        """The same for one model and template."""
        ...


def needs_binding(pooling: Pooling) -> bool:
    """Whether a head cannot be called before `bind`."""
    tokens = pooling.tokens if isinstance(pooling, LinearPooling) else None
    return isinstance(pooling, Binds) or isinstance(tokens, Binds)


def bind(pooling: Pooling, plm: FrozenPLM, frame: Frame) -> Pooling:
    """The head for a model and a template.

    Raises:
        UserError: they do not go together.
    """
    if isinstance(pooling, LinearPooling) and isinstance(pooling.tokens, Binds):
        return LinearPooling(pooling.tokens.bound(plm, frame), pooling.layers)
    if isinstance(pooling, Binds):
        bound: Pooling = pooling.bound(plm, frame)
        return bound
    return pooling
