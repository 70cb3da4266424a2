"""The experiment logger of a run, opened and closed with it."""

from __future__ import annotations

import netrc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import CSVLogger, Logger

from whitepool.cli import is_multirun
from whitepool.errors import UserError


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
        run = _start(config, folder)
        try:
            from pytorch_lightning.loggers import WandbLogger

            yield WandbLogger(experiment=run)
        except BaseException:
            run.finish(exit_code=1)
            raise
        run.finish()
    else:
        raise UserError(f"logger.name is {name!r}: choose one of none, csv, wandb.")


def _start(config: DictConfig, folder: Path) -> Any:
    import wandb

    group = config.logger.group
    if group is None and is_multirun():
        group = "_".join(folder.parent.parts[-2:])
    return wandb.init(
        project=config.logger.project,
        entity=config.logger.entity,
        group=group,
        tags=list(config.logger.tags),
        name=f"{config.model.name} {config.pooling.name} {config.whitening.name}",
        dir=folder,
        config=OmegaConf.to_container(config, resolve=True),  # type: ignore[arg-type]
        mode=wandb_mode(),
        reinit="finish_previous",
    )


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
