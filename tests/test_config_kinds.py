"""Settings of the wrong kind are named before anything is read."""

from __future__ import annotations

from typing import Any

import pytest
from omegaconf import OmegaConf

from whitepool.config_kinds import check_kinds
from whitepool.errors import UserError


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"recipe": 1e9}, "recipe is 1000000000.0: give a text"),
        ({"model": {"path": 1}}, "model.path is 1: give a text"),
        ({"model": {"path": [0]}}, r"model.path is \[0\]: give a text"),
        ({"model": {"max_length": {"a": 1}}}, "model.max_length is {'a': 1}: give a whole number"),
        ({"model": {"max_length": True}}, "model.max_length is True: give a whole number"),
        ({"protocol": {"max_length": [99]}}, "protocol.max_length is"),
        ({"analysis": {"grids": 1}}, "analysis.grids is 1: give a mapping"),
        ({"model": {"ditto": 2}}, "model.ditto is 2: give a mapping"),
        ({"a": {"b": float("nan")}}, "a.b is nan: give a finite number"),
        ({"a": float("inf")}, "a is inf: give a finite number"),
    ],
)
def test_wrong_kinds(content: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_kinds(OmegaConf.create(content))


def test_right_kinds() -> None:
    model = {"path": None, "name": "${model.id}", "id": "a/b", "max_length": 9, "ditto": {"a": 1}}
    check_kinds(OmegaConf.create({"model": model, "protocol": {"max_length": None}, "seed": 0}))
