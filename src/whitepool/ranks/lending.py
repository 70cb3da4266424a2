"""A machine that is not the first: its processes take part in the pass, and nothing else is left.

It does what the first does up to the pass, so that its processes know model, head and batches. The
first alone has the vectors then, and writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from tempfile import TemporaryDirectory

import pytorch_lightning as pl
from omegaconf import DictConfig

log = logging.getLogger(__name__)


class Lent(Exception):
    """The pass is over, and its results are on the first machine."""


def see_to_results(trainer: pl.Trainer) -> None:
    """Raise `Lent` behind a pass where this machine is not the first."""
    if trainer.node_rank:
        raise Lent


def lend(config: DictConfig, run: Callable[[DictConfig], float]) -> float:
    """Do what ``config`` asks for up to the end of its pass, in a folder that is then gone.

    Returns:
        0: the score is on the first machine.
    """
    config = config.copy()
    with TemporaryDirectory(prefix="whitepool-") as folder:
        config.output_dir, config.figures, config.logger.name = folder, False, "none"
        for name in ("output", "export"):
            if name in config:
                config[name] = None
        try:
            run(config)
        except Lent:
            log.info("the pass is over: results are on the first machine")
    return 0.0
