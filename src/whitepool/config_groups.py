"""A composed configuration with other contents of some of its groups."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf


def group(config: DictConfig, name: str) -> dict[str, Any]:
    """The contents of a group; what refers to other groups still does."""
    content: Any = OmegaConf.to_container(config[name], resolve=False)
    return dict(content)


def replaced(config: DictConfig, **groups: dict[str, Any]) -> DictConfig:
    """The configuration with these groups in place of its own; an unknown key stays an error."""
    content: Any = OmegaConf.to_container(config, resolve=False)
    result: DictConfig = OmegaConf.create({**content, **groups})
    OmegaConf.set_struct(result, True)
    return result
