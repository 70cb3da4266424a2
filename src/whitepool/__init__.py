"""whitepool: sentence embeddings from a frozen language model by pooling and whitening.

`load` gives an `Encoder`; `Recipe` is what it saves; `evaluate` scores. They are imported when
first used, so that `import whitepool` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whitepool.encoder import Encoder
    from whitepool.errors import UserError
    from whitepool.export.opening import sentence_transformer
    from whitepool.loading import load
    from whitepool.recipe import Recipe
    from whitepool.running import evaluate

    __version__: str

__all__ = [
    "Encoder",
    "Recipe",
    "UserError",
    "__version__",
    "evaluate",
    "load",
    "sentence_transformer",
]

_HOMES = {
    "Encoder": "whitepool.encoder",
    "Recipe": "whitepool.recipe",
    "UserError": "whitepool.errors",
    "evaluate": "whitepool.running",
    "load": "whitepool.loading",
    "sentence_transformer": "whitepool.export.opening",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("whitepool")
    if name not in _HOMES:
        raise AttributeError(f"module 'whitepool' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
