"""Ditto's head chosen on a dev split, from one pass over all heads: ``pooling.head=auto``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger

from whitepool.analysis.base import Rows
from whitepool.analysis.encoder import GridEncoder
from whitepool.analysis.heads import HeadGrid
from whitepool.analysis.memory import plan_chunks
from whitepool.analysis.selection import DEFAULT, DevSplits
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import SentenceTable
from whitepool.encoding import make_trainer
from whitepool.errors import UserError
from whitepool.framing import Frame
from whitepool.longtext import framed
from whitepool.plm import FrozenPLM
from whitepool.protocol import EvalProtocol
from whitepool.states import Layer

AUTO = "auto"
MEMORY = 2**31  # bytes of kept tokens


@dataclass(frozen=True)
class HeadChoice:
    """A head, and how it came to be chosen.

    Attributes:
        block: 0-based.
        head: 0-based.
        dev_set: the set that chose it, ``stsb dev``.
        score: Spearman x100 on that set.
        tables: `heads` and `heads_best`, see `HeadGrid.tables`.
    """

    block: int
    head: int
    dev_set: str
    score: float
    tables: dict[str, Rows] = field(default_factory=dict, repr=False, compare=False)


def wants_choice(config: DictConfig) -> bool:
    """Whether the head of ``pooling=ditto`` is to be chosen.

    Raises:
        UserError: the block is to be chosen and the head is not.
    """
    block, head = config.pooling.block, config.pooling.head
    if block == AUTO and head != AUTO:
        raise UserError(f"pooling.block=auto chooses a head too: leave pooling.head={head} out.")
    return bool(head == AUTO)


def with_chosen_head(
    config: DictConfig,
    plm: FrozenPLM,
    max_length: int,
    *,
    folder: Path,
    logger: Logger | Literal[False],
) -> tuple[DictConfig, HeadChoice]:
    """The configuration with the head that the dev split of ``data=`` chooses.

    A block that is given is kept, and a head of it chosen; the model's published block is no
    such word, since ``pooling.head=auto`` asks for another head than the published one.

    Raises:
        UserError: another pooling than ditto, or no dev split.
    """
    if config.pooling.name != "ditto":
        raise UserError(f"pooling.head=auto is for pooling=ditto, not {config.pooling.name}.")
    published = config.pooling.block == config.model.ditto.block
    choice = select_head(
        config,
        plm,
        OmegaConf.to_container(config.pooling.layers),  # type: ignore[arg-type]
        instantiate(config.data, _convert_="all"),
        max_length,
        block=None if published or config.pooling.block == AUTO else config.pooling.block,
        frame=Frame(config.pooling.template, config.pooling.full_stop),
        folder=folder,
        logger=logger,
    )
    content: Any = OmegaConf.to_container(config, resolve=False)
    content["pooling"] |= {"block": choice.block, "head": choice.head}
    return OmegaConf.create(content), choice


def select_head(
    config: DictConfig,
    plm: FrozenPLM,
    layers: Sequence[Layer],
    tasks: Sequence[Task],
    max_length: int,
    *,
    block: int | None = None,
    frame: Frame | None = None,
    folder: Path,
    logger: Logger | Literal[False] = False,
) -> HeadChoice:
    """The head with the highest Spearman on a dev split, all heads from one pass.

    Args:
        config: with ``trainer`` and ``batch_tokens``.
        plm: the frozen model.
        layers: layers that are averaged.
        tasks: one task's own dev split chooses; otherwise STS-B's.
        max_length: tokens per text.
        block: choose among the heads of this block alone.
        frame: what is put around texts; None for nothing.
        folder: Lightning's.
        logger: Lightning's.

    Raises:
        UserError: no dev split can be read, or a layer or block that does not exist.
    """
    heads = None if block is None else [(block, head) for head in range(plm.heads)]
    grid = HeadGrid([layers], heads=heads)
    dev = _dev_set(tasks)
    table = SentenceTable.build([Task(dev.task, (dev,))], framed(plm, max_length, frame or Frame()))
    protocol = EvalProtocol("dev", "all", "task")
    grid.plan(plm, protocol, table)
    encoder = GridEncoder(plm, [grid])
    trainer = make_trainer(config, logger, folder)
    for chunk in plan_chunks(table, protocol.fit_on, grid.memory, MEMORY):
        data = SentenceDataModule(chunk, batch_tokens=config.batch_tokens)
        trainer.test(encoder, datamodule=data, verbose=False)
        grid.finish()
    tables = grid.tables()
    best = next(row for row in tables["heads_best"] if row["choice"] == "selected")
    return HeadChoice(best["block"], best["head"], best["dev_set"], best["dev"], tables)


def _dev_set(tasks: Sequence[Task]) -> PairSet:
    """The dev split of a single task that has one, or else STS-B's."""
    scored = [s for task in tasks for s in task.scored if s.split == "dev"]
    found = {s.task: s for s in (*scored, *DevSplits().read(tasks))}
    if len(tasks) == 1 and tasks[0].name in found:
        return found[tasks[0].name]
    return found[DEFAULT]
