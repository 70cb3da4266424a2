"""`whitepool evaluate`, `train` and `encode`: the scripts of a checkout, also where none is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import hydra
from omegaconf import DictConfig

from whitepool.cli import job, launch
from whitepool.commands.console import HELP
from whitepool.config_help import conf_folder

# command -> module and function; the module is imported once the configuration is composed
JOBS = {
    "evaluate": ("whitepool.evaluation", "evaluate"),
    "train": ("whitepool.training", "train"),
    "encode": ("whitepool.bulk.run", "encode"),
}


def run(name: str, arguments: Sequence[str]) -> NoReturn:
    """Run a command as Hydra does, with ``arguments`` in place of this process's.

    Raises:
        SystemExit: at the end, with the status of `whitepool.cli.launch`.
    """
    # Examples of the help text begin with what was typed.
    typed = [f"hydra.help.app_name='whitepool {name}'"] if set(arguments) & set(HELP) else []
    sys.argv = ["whitepool", *arguments, *typed]

    @job
    def main(config: DictConfig) -> float:
        module, function = JOBS[name]
        score: float = getattr(import_module(module), function)(config)
        return score

    launch(
        hydra.main(version_base="1.3", config_path=str(conf_folder()), config_name=name)(main), name
    )
