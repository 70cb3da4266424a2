"""How many processes ``trainer=`` asks for, and what does not go with several."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from whitepool.errors import UserError

CLUSTER = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


def is_several(config: DictConfig) -> bool:
    """Whether ``trainer=`` starts processes of its own: ``ddp`` or ``ddp_cpu``."""
    return config.trainer.get("strategy") is not None


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
    raise UserError(f"trainer.num_nodes is {nodes}: not yet.")
