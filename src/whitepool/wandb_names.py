"""How a run is called in Weights & Biases: its name, tags, group and job type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

TAG = 64  # most letters that W&B takes
SHOWN = ("k", "fit_on")  # settings of whitening that a name shows


def kind(config: DictConfig) -> str:
    """The job type: evaluate, analysis or train."""
    if "resume_from" in config:
        return "train"
    return "evaluate" if config.analysis.name == "none" else "analysis"


def name(config: DictConfig) -> str:
    """``all_minilm first_last pca k=256 on stsb``."""
    settings = [f"{key}={config.whitening[key]}" for key in SHOWN if config.whitening.get(key)]
    layers = config.pooling.get("layers")
    head = f"{config.pooling.name}{list(layers)}" if layers is not None else config.pooling.name
    words = [config.model.name, head.replace(" ", ""), config.whitening.name, *settings]
    if kind(config) == "analysis":
        words = [config.model.name, "analysis", config.analysis.name]
    where = config.corpus.name if kind(config) == "train" else "+".join(tasks(config))
    return " ".join([*map(str, words), "on", where])


def tasks(config: DictConfig) -> list[str]:
    """The tasks that are scored, by name."""
    if "tasks" in config.data:
        return [str(task) for task in config.data.tasks]
    own = config.data.get("name")
    return [str(own or Path(str(config.data.get("path", "data"))).stem)]


def tags(config: DictConfig) -> list[str]:
    """What runs are found by: the user's tags, then model, head, map, protocol, analysis, tasks."""
    own = [config.model.name, config.pooling.name, config.whitening.name, config.protocol.name]
    own += [config.analysis.name] if kind(config) == "analysis" else []
    found = [*config.logger.tags, *own, *tasks(config)]
    return list(dict.fromkeys(str(tag)[:TAG] for tag in found if str(tag)))


def group(multirun: Path) -> str:
    """The group of a multirun's jobs, from its folder."""
    return "_".join(multirun.parts[-2:])


def artifact(*parts: Any) -> str:
    """A name for an artifact, of the letters that W&B takes."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(map(str, parts)))[:128]
