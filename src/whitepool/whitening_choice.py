"""``whitening=auto``: PCA whitening where it helps, raw vectors where it does not.

Where every task has a dev split of its own, its labels decide: whitening is fitted on the dev
sentences and taken if the dev pairs' Spearman is then higher. Otherwise the mean cosine of two
different sentences decides, without labels: vectors that all point one way have cosines that say
little, and whitening spreads them.

    whiten if  mean cos(v_i, v_j) > LIMIT,  i != j

Mean cosine: Ethayarajh 2019, "How Contextual are Contextualized Word Representations?".
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hydra.utils import instantiate
from omegaconf import DictConfig

from whitepool.aggregates import AVERAGE
from whitepool.callbacks import WhiteningCallback
from whitepool.config_groups import group, replaced
from whitepool.data.corpus import Corpus
from whitepool.data.pairs import Task
from whitepool.data.table import SentenceTable
from whitepool.encoding import encode_table
from whitepool.errors import UserError
from whitepool.framing import Frame, is_apart
from whitepool.geometry import anisotropy
from whitepool.inputs import Inputs
from whitepool.longtext import framed
from whitepool.module import SentenceEncoder
from whitepool.protocol import EvalProtocol
from whitepool.recipe import Scalar
from whitepool.scores import score_table
from whitepool.unlabelled import as_task, dev_splits, sentences
from whitepool.whitening import PostProcess

log = logging.getLogger(__name__)

AUTO = "auto"
LIMIT = 0.3
FEWEST = 100  # sentences from which a mean cosine is believed


@dataclass(frozen=True)
class WhiteningChoice:
    """Whether to whiten, and why.

    Attributes:
        whiten: the choice.
        on: what decided, ``stsb dev`` or ``1,000 texts of corpus text``.
        raw: by labels, Spearman x100 of the raw vectors; without, their mean cosine x100.
        other: by labels, Spearman x100 whitened; without, the limit x100.
        labels: whether labels decided.
    """

    whiten: bool
    on: str
    raw: float
    other: float
    labels: bool

    def sentence(self) -> str:
        """The choice in words."""
        what = "PCA whitening" if self.whiten else "raw vectors"
        if self.labels:
            return f"{what}: {self.raw:.2f} raw, {self.other:.2f} whitened on {self.on}"
        side = "above" if self.whiten else "not above"
        return (
            f"{what}: mean cosine {self.raw / 100:.2f} of {self.on}, {side} {self.other / 100:g}, "
            "judged without labels"
        )

    def provenance(self) -> dict[str, Scalar]:
        """The same as plain values."""
        by = "labels" if self.labels else "mean cosine"
        values = {"raw": self.raw, "whitened" if self.labels else "limit": self.other}
        return {
            "whitening_chosen": "pca" if self.whiten else "off",
            "whitening_chosen_by": by,
            "whitening_chosen_on": self.on,
            **{f"whitening_chosen_{name}": value for name, value in values.items()},
        }


def is_auto(config: DictConfig) -> bool:
    """Whether ``whitening=auto`` was given."""
    return bool(config.whitening.name == AUTO)


def settled(config: DictConfig, *, whiten: bool) -> DictConfig:
    """The configuration with ``whitening=pca`` or ``off`` in place of ``auto``."""
    step = group(config, "whitening") | {"name": "pca" if whiten else "off"}
    if not whiten:
        del step["_target_"]
        step |= {"options": [], "k": None}
    return replaced(config, whitening=step)


def settle(
    config: DictConfig, inputs: Inputs, *, folder: Path
) -> tuple[DictConfig, Inputs, WhiteningChoice]:
    """What a run goes on with: configuration and inputs with the choice made.

    Raises:
        UserError: see `choose_whitening`.
    """
    assert inputs.post is not None
    choice = choose_whitening(
        config,
        SentenceEncoder(inputs.plm, inputs.pooling),
        inputs.post,
        inputs.table.tasks,
        inputs.max_length,
        frame=inputs.frame,
        folder=folder,
        corpus=inputs.corpus,
    )
    if choice.whiten:
        return config, inputs, choice
    return settled(config, whiten=False), replace(inputs, post=None), choice


def choose_whitening(
    config: DictConfig,
    encoder: SentenceEncoder,
    post: PostProcess,
    tasks: Sequence[Task] | None,
    max_length: int,
    *,
    frame: Frame,
    folder: Path,
    corpus: Corpus | None = None,
) -> WhiteningChoice:
    """Whether to whiten the vectors of ``encoder``; one pass over the sentences that decide.

    Args:
        config: with ``trainer``, ``batch_tokens`` and ``data``.
        encoder: model and head.
        post: the whitening.
        tasks: those with dev splits decide by them, see `dev_splits`; None reads ``data=``.
        max_length: tokens per text.
        frame: what is put around texts.
        folder: Lightning's.
        corpus: decides where there is no dev split.

    Raises:
        UserError: no dev split, and too few sentences to judge without.
    """
    tasks = instantiate(config.data, _convert_="all") if tasks is None else tasks
    cut = framed(encoder.plm, max_length, frame, apart=is_apart(encoder.pooling))
    dev = dev_splits(tasks) if all(task.kind == "graded" for task in tasks) else []
    texts, on = sentences(tasks, corpus) if not dev else ([], "")
    if not dev and len(texts) < FEWEST:
        raise UserError(
            f"whitening=auto has no dev split and only {on}: give data with a dev split, or "
            f"{FEWEST} sentences or more, or whitening=pca or off."
        )
    judged = [Task(s.task, (s,)) for s in dev] or [as_task(texts)]
    table = SentenceTable.build(judged, cut)
    protocol = EvalProtocol("dev", "all", "task")
    whitening = WhiteningCallback(post, protocol.fit_on)
    vectors = encode_table(config, encoder, table, folder, whitening if dev else None)
    if not dev:
        value = 100 * anisotropy(vectors[~table.is_blank].astype(float))
        choice = WhiteningChoice(value > 100 * LIMIT, on, value, 100 * LIMIT, labels=False)
    else:
        scores = score_table(table, vectors, whitening.maps, protocol, samples=0)
        task = AVERAGE if len(dev) > 1 else dev[0].task
        raw, whitened = (scores.get(task, stage=stage).value for stage in ("raw", "post"))
        on = ", ".join(f"{s.task} dev" for s in dev)
        choice = WhiteningChoice(whitened > raw, on, raw, whitened, labels=True)
    log.info("whitening=auto: %s.", choice.sentence())
    return choice
