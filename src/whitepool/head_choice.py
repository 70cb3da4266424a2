"""Ditto's head chosen from one pass over all heads, with labels or without.

``pooling.head=auto`` takes the head with the highest Spearman on a dev split, as Ditto does (Chen
et al. 2023); ``pooling.head=unsupervised`` the one that agrees best with `whitepool.pseudo_gold`,
which needs sentences and no labels.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.loggers import Logger

from whitepool import from_config, unlabelled
from whitepool.analysis.base import Rows
from whitepool.analysis.encoder import GridEncoder
from whitepool.analysis.heads import HeadGrid
from whitepool.analysis.memory import plan_chunks
from whitepool.analysis.selection import DEFAULT, DevSplits
from whitepool.config_groups import group, replaced
from whitepool.data.corpus import Corpus
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import SentenceTable
from whitepool.encoding import encode_table
from whitepool.errors import UserError
from whitepool.framing import Frame
from whitepool.longtext import framed
from whitepool.module import SentenceEncoder
from whitepool.plm import FrozenPLM
from whitepool.pooling import LinearPooling, Uniform
from whitepool.protocol import EvalProtocol
from whitepool.pseudo_gold import CRITERION, pseudo_gold
from whitepool.recipe import Recipe, Scalar
from whitepool.states import Layer
from whitepool.stopping import unmasked
from whitepool.trainers import make_trainer

log = logging.getLogger(__name__)

AUTO, UNSUPERVISED = "auto", "unsupervised"
MEMORY = 2**31  # bytes of kept tokens


@dataclass(frozen=True)
class HeadChoice:
    """A head, and how it came to be chosen.

    Attributes:
        block: 0-based.
        head: 0-based.
        dev_set: the set that chose it, ``stsb dev``.
        score: Spearman x100 on that set, with its gold scores or with those made without labels.
        unlabelled: the sentences that it was judged by without labels; empty where labels chose.
        tables: `heads` and `heads_best`, see `HeadGrid.tables`.
    """

    block: int
    head: int
    dev_set: str
    score: float
    unlabelled: str = ""
    tables: dict[str, Rows] = field(default_factory=dict, repr=False, compare=False)

    def provenance(self) -> dict[str, Scalar]:
        """How it was chosen, as plain values."""
        if not self.unlabelled:
            return {"head_chosen_on": self.dev_set, "head_dev": self.score}
        return {
            "head_chosen_on": self.unlabelled,
            "head_chosen_by": CRITERION,
            "head_criterion": self.score,
        }


def wants_choice(config: DictConfig) -> bool:
    """Whether the head of ``pooling=ditto`` is to be chosen.

    Raises:
        UserError: the block is to be chosen and the head is not.
    """
    block, head = config.pooling.block, config.pooling.head
    if block in (AUTO, UNSUPERVISED) and head != block:
        raise UserError(f"pooling.block={block} chooses a head too: leave pooling.head={head} out.")
    return head in (AUTO, UNSUPERVISED)


def find_head(
    config: DictConfig,
    recipe: Recipe | None = None,
    *,
    corpus: Corpus | None = None,
    load: Callable[[DictConfig], FrozenPLM] = from_config.load_model,
    folder: Path,
    logger: Logger | Literal[False],
) -> tuple[DictConfig, FrozenPLM | None, HeadChoice | None]:
    """The configuration with a head chosen where it asks for one, the model, and the choice.

    A block that is given is kept, and a head of it chosen; the model's published block is no
    such word, since whoever asks for a choice asks for another head than the published one.

    Args:
        config: composed from `conf/evaluate.yaml` or `conf/train.yaml`.
        recipe: has a head already, so that nothing is chosen.
        corpus: lends the sentences of ``pooling.head=unsupervised``; else ``data=`` does.
        load: gives the model, if it is needed, and may refuse it.
        folder: Lightning's.
        logger: Lightning's.

    Raises:
        UserError: another pooling than ditto, no dev split, or too few sentences.
    """
    if recipe is not None or not wants_choice(config):
        return config, None, None
    way = config.pooling.head
    if config.pooling.name != "ditto":
        raise UserError(f"pooling.head={way} is for pooling=ditto, not {config.pooling.name}.")
    plm = load(config)
    length = from_config.max_length(config, instantiate(config.protocol, _convert_="all"), plm)
    frame = Frame(config.pooling.template, config.pooling.full_stop)
    tasks = instantiate(config.data, _convert_="all")
    if way == AUTO:
        judged, on = dev_set(tasks), ""
    else:
        texts, on = unlabelled.sentences(tasks, corpus)
        mean = SentenceEncoder(plm, LinearPooling(Uniform(), config.pooling.layers))
        table = SentenceTable.build([unlabelled.as_task(texts)], framed(plm, length, frame))
        vectors = encode_table(config, mean, table, folder)
        judged = pseudo_gold(texts, vectors[table.scored[0].pairs[:, 0]])
    published = config.pooling.block == config.model.ditto.block
    choice = best_head(
        config,
        plm,
        OmegaConf.to_container(config.pooling.layers),  # type: ignore[arg-type]
        judged,
        length,
        block=None if published or config.pooling.block == way else config.pooling.block,
        frame=frame,
        folder=folder,
        logger=logger,
    )
    choice = replace(choice, unlabelled=on)
    by = f"{CRITERION} on {on}, without labels" if on else f"the labels of {choice.dev_set}"
    words = "pooling.head=%s: block %d, head %d, Spearman %.2f with %s."
    log.info(words, way, choice.block, choice.head, choice.score, by)
    found = {"block": choice.block, "head": choice.head}
    return replaced(config, pooling=group(config, "pooling") | found), plm, choice


def best_head(
    config: DictConfig,
    plm: FrozenPLM,
    layers: Sequence[Layer],
    judged: PairSet,
    max_length: int,
    *,
    block: int | None = None,
    frame: Frame | None = None,
    folder: Path,
    logger: Logger | Literal[False] = False,
) -> HeadChoice:
    """The head with the highest Spearman on some pairs, all heads from one pass.

    Args:
        config: with ``trainer`` and ``batch_tokens``.
        plm: the frozen model.
        layers: layers that are averaged.
        judged: the pairs, of split ``dev``.
        max_length: tokens per text.
        block: choose among the heads of this block alone.
        frame: what is put around texts; None for nothing.
        folder: Lightning's.
        logger: Lightning's.

    Raises:
        UserError: a layer or block that does not exist.
    """
    heads = None if block is None else [(block, head) for head in range(plm.heads)]
    grid = HeadGrid([layers], heads=heads)
    cut = framed(plm, max_length, frame or Frame())
    table = SentenceTable.build([Task(judged.task, (judged,))], cut)
    protocol = EvalProtocol("dev", "all", "task")
    grid.plan(plm, protocol, table)
    encoder = GridEncoder(plm, [grid])
    trainer = make_trainer(config, logger, folder)
    for chunk in plan_chunks(table, protocol.fit_on, grid.memory, MEMORY):
        data = SentenceDataModule(chunk, batch_tokens=config.batch_tokens)
        with unmasked():
            trainer.test(encoder, datamodule=data, verbose=False)
        grid.finish()
    tables = grid.tables()
    best = next(row for row in tables["heads_best"] if row["choice"] == "selected")
    return HeadChoice(best["block"], best["head"], best["dev_set"], best["dev"], tables=tables)


def dev_set(tasks: Sequence[Task]) -> PairSet:
    """The dev split of a single task that has one, or else STS-B's.

    Raises:
        UserError: no dev split can be read.
    """
    scored = [s for task in tasks for s in task.scored if s.split == "dev"]
    found = {s.task: s for s in (*scored, *DevSplits().read(tasks))}
    if len(tasks) == 1 and tasks[0].name in found:
        return found[tasks[0].name]
    return found[DEFAULT]
