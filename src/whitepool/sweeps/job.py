"""One job of a multirun, in whichever process: marked as begun, run, marked as finished."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, open_dict, read_write

from whitepool.errors import UserError
from whitepool.sweeps import depends
from whitepool.sweeps.folders import RECORD
from whitepool.sweeps.marker import Marker

ERROR_FILE = "error.txt"  # of a job that failed: why, and its traceback
INTERRUPTED = "interrupted"  # in place of why


class SkippedJob(Exception):
    """A job that is not run, since another one failed."""


def refuse_resume(config: DictConfig) -> None:
    """See that no run takes `resume=true` to itself, which the sweeper takes from its jobs.

    Raises:
        UserError: it is set.
    """
    if config.resume:
        raise UserError(
            f"resume={config.resume} goes on with a multirun: add -m and the words that are swept, "
            "or leave it out."
        )


def run_marked(function: Callable[[DictConfig], float], config: DictConfig, folder: Path) -> float:
    """What the function returns for ``config``; the marker is the last thing that is written.

    Raises:
        SkippedJob: ``fail_fast=true``, and a job of this multirun failed.
        UserError: what the job reads changed while it ran.
    """
    began = time.monotonic()
    settings = depends.settings(config)
    versions = depends.versions()
    Marker(settings, versions=versions).write(folder)
    _restore_number(folder)
    if config.fail_fast and (failed := _failed_before(folder)):
        raise SkippedJob(f"skipped, since job {failed} failed.")
    before = depends.Checksums().of(config)
    score = function(config)
    after = depends.Checksums().of(config)
    if changed := [n for n, x in before.items() if x is not None and x != after[n]]:
        raise UserError(f"the {' and '.join(changed)} changed while the job ran: run it again.")
    took = round(time.monotonic() - began, 3)
    Marker(settings, after, versions, finished=True, seconds=took).write(folder)
    return score


def _restore_number(folder: Path) -> None:
    """Let ``${hydra:job.num}`` be the number of the folder: launchers count what is left to do."""
    if folder.name.isdigit():
        hydra: Any = HydraConfig.get()
        with read_write(hydra), open_dict(hydra):
            hydra.job.num = int(folder.name)


def _failed_before(folder: Path) -> str:
    """The job of this multirun that failed first, whichever process ran it; empty for none."""
    multirun = Path(HydraConfig.get().sweep.dir).absolute()
    began = (multirun / RECORD).stat().st_mtime_ns
    errors = [path for path in multirun.glob(f"**/{ERROR_FILE}") if path.parent != folder]
    times = [(path.stat().st_mtime_ns, path.parent.name) for path in errors]
    return min(((time, name) for time, name in times if time >= began), default=(0, ""))[1]
