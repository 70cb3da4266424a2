"""`whitepool.evaluate`: what `evaluate.py` does, for a notebook or a script of one's own."""

from __future__ import annotations

from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from whitepool import credentials
from whitepool.cli import sentence
from whitepool.config_help import conf_folder
from whitepool.disks import telling_of_disk
from whitepool.errors import UserError
from whitepool.jobs import Job, read_job


def evaluate(output: str | Path, *overrides: str) -> Job:
    """Do what ``python evaluate.py OVERRIDES`` does, in this process.

    Args:
        output: the run's folder.
        overrides: as on the command line, ``model=gemma``; no multirun.

    Returns:
        What the run left: `Job.results` is results.json, `Job.table` reads a table.

    Raises:
        UserError: a mistake in the overrides, or in what they ask for.
    """
    from whitepool import evaluation

    credentials.refuse(overrides)
    try:
        with initialize_config_dir(str(conf_folder()), version_base="1.3"):
            config = compose("evaluate", list(overrides))
        config.output_dir = str(output)
        with telling_of_disk(Path(output), "another output"):
            evaluation.evaluate(config)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(sentence(error)) from error
    return read_job(Path(output))
