"""The experiment logger of a run, opened and closed with it."""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import CSVLogger, Logger

from whitepool import wandb_names
from whitepool.cli import is_multirun
from whitepool.errors import UserError
from whitepool.wandb_log import WandbRun

SWEEP = "WANDB_SWEEP_ID"  # set by W&B's agent
FINISHED_IN = 120.0  # seconds; W&B's own answer to a connection lost in mid-run is to wait for ever


@contextmanager
def tracked(config: DictConfig, folder: Path) -> Iterator[Logger | Literal[False]]:
    """The logger that ``logger=`` chose, for the length of a run.

    A W&B run is finished when the block is left, and marked failed when it is left by an
    exception, so that each job of a multirun is a run of its own.

    Raises:
        UserError: an unknown logger.
    """
    name = config.logger.name
    if name == "none":
        yield False
    elif name == "csv":
        yield CSVLogger(folder, name="csv", version="")
    elif name == "wandb":
        with WandbRun(partial(_start, config, folder)) as run:
            yield run
    else:
        raise UserError(f"logger.name is {name!r}: choose one of none, csv, wandb.")


def _start(config: DictConfig, folder: Path) -> Any:
    """The W&B run of a job."""
    import wandb

    settings: Any = OmegaConf.to_container(config, resolve=True)
    if SWEEP in os.environ:  # W&B puts a sweep's own words, as pooling: avg, in a setting's place
        settings["settings"] = dict(settings)
    return wandb.init(
        **_where(config, _multirun(), folder),
        job_type=wandb_names.kind(config),
        tags=wandb_names.tags(config),
        name=wandb_names.name(config),
        config=settings,
    )


@contextmanager
def summing_up(config: DictConfig, multirun: Path) -> Iterator[WandbRun | None]:
    """A W&B run that sums a multirun up, in the group of its jobs; None with another logger."""
    if config.logger.name != "wandb":
        yield None
        return
    with WandbRun(partial(_start_summary, config, multirun)) as run:
        yield run


def _start_summary(config: DictConfig, multirun: Path) -> Any:
    """The W&B run that sums a multirun up."""
    import wandb

    return wandb.init(
        **_where(config, multirun, multirun),
        job_type="summary",
        tags=[str(tag) for tag in config.logger.tags],
        name=f"multirun {wandb_names.group(multirun)}",
    )


def _multirun() -> Path | None:
    """The folder of the multirun that the running job is of."""
    return Path(HydraConfig.get().sweep.dir).absolute() if is_multirun() else None


def _where(config: DictConfig, multirun: Path | None, folder: Path) -> dict[str, Any]:
    """Project, group and folder of a W&B run, and how long its end may take."""
    group = config.logger.group
    limit: dict[str, Any] = {"finish_timeout_raises": True}
    if "WANDB_FINISH_TIMEOUT" not in os.environ:
        limit["finish_timeout"] = FINISHED_IN
    if group is None and multirun is not None:
        group = wandb_names.group(multirun)
    return {
        "project": config.logger.project,
        "entity": config.logger.entity,
        "group": group,
        "dir": folder,
        "mode": wandb_mode(),
        "reinit": "finish_previous",
        "settings": limit,
    }


def wandb_mode() -> Literal["online", "offline", "disabled", "shared"]:
    """W&B's mode: ``WANDB_MODE`` if set, else online where a key is configured, else offline."""
    if mode := os.environ.get("WANDB_MODE"):
        return mode  # type: ignore[return-value]
    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return "online"
    host = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    candidates = [os.environ.get("NETRC", ""), "~/.netrc", "~/_netrc"]
    for path in (Path(c).expanduser() for c in candidates if c):
        try:
            if netrc.netrc(path).authenticators(host):
                return "online"
        except (OSError, netrc.NetrcParseError):
            continue
    return "offline"
