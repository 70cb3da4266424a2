"""Steps by the names that the command line and recipes have for them, and what they are called."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

from whitepool.flow.step import Flow
from whitepool.maps.removal import RemoveCommon, RemoveTop
from whitepool.maps.scaling import Center, Standardize
from whitepool.maps.spectral import Shrinkage, Soft, Tempered, Zca
from whitepool.maps.zipfian import Zipfian
from whitepool.whitening import Whitening

PostKind = Literal[
    "pca",
    "zca",
    "tempered",
    "soft",
    "shrinkage",
    "zipfian",
    "center",
    "standardize",
    "remove_top",
    "remove_common",
    "flow",
]
POST_PROCESSES: dict[PostKind, type[Any]] = {
    "pca": Whitening,
    "zca": Zca,
    "tempered": Tempered,
    "soft": Soft,
    "shrinkage": Shrinkage,
    "zipfian": Zipfian,
    "center": Center,
    "standardize": Standardize,
    "remove_top": RemoveTop,
    "remove_common": RemoveCommon,
    "flow": Flow,
}
WHITENS = ("pca", "zca", "soft", "shrinkage", "zipfian")


def takes(kind: PostKind) -> tuple[str, ...]:
    """The options of a step."""
    return tuple(field.name for field in fields(POST_PROCESSES[kind]))


def reduces(name: str) -> bool:
    """Whether the step of that name gives fewer dimensions where fewer directions are kept."""
    return name != "zca" and any(name == kind and "k" in takes(kind) for kind in POST_PROCESSES)


def called(name: str, whitened: str) -> str:
    """``whitened``, a form of that word, for a step that whitens, and else the step's name."""
    return whitened if name in WHITENS else name
