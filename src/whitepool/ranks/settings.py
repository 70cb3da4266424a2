"""How many processes ``trainer=`` asks for, and what does not go with several."""

from __future__ import annotations

import os
from typing import Any

from omegaconf import DictConfig, OmegaConf

from whitepool.errors import UserError

CLUSTER = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


def is_several(config: DictConfig) -> bool:
    """Whether ``trainer=`` starts processes of its own: ``ddp`` or ``ddp_cpu``."""
    return config.trainer.get("strategy") is not None


def is_lent(config: DictConfig) -> bool:
    """Whether this machine lends its processes to the first one, which alone writes."""
    several = is_several(config) and config.trainer.num_nodes > 1
    return several and os.environ["NODE_RANK"] != "0"


def check_trainer(config: DictConfig) -> None:
    """See that processes and machines are numbers that ``trainer=`` takes.

    Raises:
        UserError: they are not.
    """
    trainer = config.trainer
    if not is_several(config):
        _check_one(trainer.devices, "trainer.devices")
        _check_one(trainer.get("num_nodes", 1), "trainer.num_nodes")
        return
    for name, of in (("devices", "processes on this machine"), ("num_nodes", "machines")):
        value = trainer[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UserError(f"trainer.{name} is {value!r}: give the number of {of}, from 1.")
    _check_nodes(trainer.num_nodes)


def check_passes(config: DictConfig) -> None:
    """See that nothing is asked of several processes that one alone can do."""
    check_trainer(config)
    if not is_several(config):
        return
    if config.get("analysis") is not None and config.analysis.name != "none":
        _refuse(config, f"analysis={config.analysis.name}")
    if config.whitening.name == "flow":
        _refuse(config, "whitening=flow")
    if config.trainer.num_nodes > 1:
        fit_on = config.whitening.get("fit_on")
        two = {"whitening=auto": config.whitening.name == "auto"}
        two |= {"whitening.fit_on=corpus": fit_on == "corpus" and "analysis" in config}
        for what in (name for name, asked in two.items() if asked):
            raise UserError(
                f"{what} needs two passes and trainer.num_nodes={config.trainer.num_nodes} make "
                "one: use one machine, or fit with train and give evaluate recipe=FOLDER."
            )
    for name in ("head", "block"):
        if isinstance(way := config.pooling.get(name), str):
            _refuse(config, f"pooling.{name}={way}")


def _refuse(config: DictConfig, what: str) -> None:
    raise UserError(
        f"{what} works on one process and trainer.devices={config.trainer.devices} are several: "
        "give trainer=auto, cpu or gpu."
    )


def _check_one(value: Any, name: str) -> None:
    """A trainer of one process takes one device: 1, or the number of one in a list."""
    one = len(value) == 1 if OmegaConf.is_list(value) else value == 1 and value is not True
    if not one:
        raise UserError(
            f"{name} is {value!r} and this trainer= has one process: give 1, or for several "
            "trainer=ddp (GPUs) or trainer=ddp_cpu."
        )


def _check_nodes(nodes: int) -> None:
    if nodes == 1:
        return
    if missing := [name for name in CLUSTER if not os.environ.get(name)]:
        raise UserError(
            f"trainer.num_nodes is {nodes} and {', '.join(missing)} not set: start the command on "
            "each machine with MASTER_ADDR and MASTER_PORT of the first, and NODE_RANK from 0."
        )
    if (rank := os.environ["NODE_RANK"]) not in map(str, range(nodes)):
        raise UserError(
            f"NODE_RANK is {rank!r} and trainer.num_nodes {nodes}: number the machines from 0 to "
            f"{nodes - 1}."
        )
