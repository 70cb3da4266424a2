"""What kind of value a setting takes, where Hydra would let any through to fail far from here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from omegaconf import DictConfig, OmegaConf

from whitepool.errors import UserError

TEXTS = (
    "recipe",
    "output_dir",
    "model.name",
    "model.id",
    "model.path",
    "model.asset",
    "model.revision",
    "protocol.name",
)
WHOLE = ("model.max_length", "protocol.max_length")
MAPPINGS = ("model.ditto", "analysis.grids")


def check_kinds(config: DictConfig) -> None:
    """See that settings which are read as texts, whole numbers or mappings are that, or null.

    Raises:
        UserError: one is not, or a number is not finite; the message names it.
    """
    content = dict(_leaves(OmegaConf.to_container(config, resolve=False)))
    for key, value in content.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{key} is {value}: give a finite number.")
    for keys, kinds, words in (
        (TEXTS, (str,), "a text, in quotes within quotes if it looks like a number"),
        (WHOLE, (int, str), "a whole number, or null"),  # or an interpolation
        (MAPPINGS, (dict, str), "a mapping of keys, or leave it out"),
    ):
        for key in keys:
            value = content.get(key)
            if value is not None and (isinstance(value, bool) or not isinstance(value, kinds)):
                raise UserError(f"{key} is {value!r}: give {words}.")


def _leaves(content: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting and group, by its dotted name."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield f"{prefix}{key}", value
            yield from _leaves(value, f"{prefix}{key}.")
