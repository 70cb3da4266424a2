"""BERT-flow trained by maximum likelihood, with Lightning.

    min_f  - sum_n w_n log p(x_n) / sum_n w_n

over nine tenths of the vectors, w_n saying how often each counts. The other tenth says when to stop
and which epoch is kept. Whitening, where training starts from, is fitted on the nine tenths too, so
that the held-out likelihood of both is an honest one.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, EarlyStopping
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from whitepool.errors import UserError
from whitepool.flow.network import Network
from whitepool.flow.step import Flow, FlowMap
from whitepool.flow.training import (
    HELD_OUT_NLL,
    OURS,
    Best,
    Checkpoints,
    FlowTraining,
    InOrder,
    Shuffled,
)
from whitepool.maps.affine import Affine
from whitepool.moments import Moments
from whitepool.stopping import unmasked
from whitepool.whitening import Whitening

log = logging.getLogger(__name__)

HELD_OUT = 10  # one in so many
LEAST = 20  # vectors
SAME = 1e-2  # standard deviations that the mean of the same vectors may be off by

MakeTrainer = Callable[[Sequence[pl.Callback], int], pl.Trainer]
"""Callbacks and most epochs -> a trainer."""


def fit_flow(
    step: Flow,
    vectors: Tensor,
    weight: Tensor,
    *,
    name: str = "",
    trainer: MakeTrainer | None = None,
    checkpoint: Path | None = None,
    resume: Path | None = None,
) -> FlowMap:
    """Train a flow on vectors.

    Args:
        step: its options.
        vectors: (n, dim), each of them once.
        weight: (n,), how often each counts.
        name: what messages call the vectors.
        trainer: makes the trainer; None for a quiet one on the best device there is.
        checkpoint: file that every epoch ends up in, whole; None for none.
        resume: a checkpoint of a training on the same vectors with the same options, to go on from.

    Raises:
        UserError: too few vectors, all of them equal, or a checkpoint that is none or of others.
        KeyboardInterrupt: Ctrl-C, which Lightning would make an exit of its own.
    """
    if len(vectors) < LEAST:
        raise UserError(
            f"whitening=flow was given {len(vectors)} vectors: give at least {LEAST}, and far more "
            "than dimensions."
        )
    order = torch.randperm(len(vectors), generator=torch.Generator().manual_seed(step.seed))
    held_out, rest = order.tensor_split([len(order) // HELD_OUT])
    weight = weight.float()
    options: dict[str, Any] = {
        name: getattr(step, name) for name in ("depth", "hidden", "learning_rate", "seed")
    }
    options |= {"vectors": len(vectors), "dim": vectors.shape[1]}
    if resume is None:
        moments = Moments(vectors.shape[1]).update(vectors[rest], weight[rest])
        start = Whitening().fit(moments, name)
    else:
        start = _start_of(resume, options, vectors[rest], weight[rest])
    if start.directions < 2:
        raise UserError("all vectors lie on a line, and whitening=flow needs 2 directions or more.")
    network = Network(start.directions, step.depth, step.hidden, step.seed)
    training, watched = (
        TensorDataset(start(vectors[rows].double()).float(), weight[rows])
        for rows in (rest, held_out)
    )
    network.normalize(training.tensors[0])
    module = FlowTraining(network, step.learning_rate, start, options)
    best = Best(module, *watched.tensors)
    callbacks: list[pl.Callback] = [best, EarlyStopping(HELD_OUT_NLL, patience=step.patience)]
    callbacks += [Checkpoints(checkpoint)] if checkpoint else []
    make = trainer or quiet_trainer
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        _run(
            make(callbacks, step.epochs),
            module,
            DataLoader(training, sampler=Shuffled(len(rest), step.seed), batch_size=None),
            DataLoader(watched, sampler=InOrder(len(held_out)), batch_size=None),
            resume,
        )
    network.load_state_dict(best.network)
    of = f"{name}: " if name else ""
    log.log(
        logging.INFO if best.epoch else logging.WARNING,
        "%sflow: %.3f nats a dimension on held-out vectors, %.3f whitened; epoch %d is kept%s",
        of,
        -best.value,
        -best.first,
        best.epoch,
        "." if best.epoch else ", which is whitening alone: training has gained nothing.",
    )
    count = float(weight.double().sum())
    return FlowMap(start, network.cpu().double().requires_grad_(requires_grad=False).eval(), count)


def quiet_trainer(callbacks: Sequence[pl.Callback], epochs: int) -> pl.Trainer:
    """A trainer without bar and logger."""
    return pl.Trainer(
        max_epochs=epochs,
        callbacks=list(callbacks),
        devices=1,
        logger=False,
        num_sanity_val_steps=0,
        enable_checkpointing=any(isinstance(c, Checkpoint) for c in callbacks),
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def _run(
    trainer: pl.Trainer,
    module: FlowTraining,
    training: DataLoader[Any],
    watched: DataLoader[Any],
    resume: Path | None,
) -> None:
    with unmasked():
        trainer.fit(module, training, watched, ckpt_path=resume, weights_only=True)


def _start_of(resume: Path, options: dict[str, Any], vectors: Tensor, weight: Tensor) -> Affine:
    """Whitening of a checkpoint, which must be of the same options and vectors."""
    try:
        kept = torch.load(resume, map_location="cpu", weights_only=True)[OURS]
        start = Affine(kept["mean"], kept["basis"], kept["count"], kept["rank"])
        given = kept["options"]
    except Exception as error:  # a damaged zip, another pickle, another program's checkpoint
        raise UserError(f"{resume} is no checkpoint of whitening=flow ({error}).") from error
    for name, value in options.items():
        if given.get(name) != value:
            raise UserError(
                f"{resume} was trained with {name} {given.get(name)}, and now it is {value}: go on "
                "with the same corpus, model, head and options."
            )
    mean = weight.double() @ start(vectors.double()) / weight.sum()
    if not mean.abs().max() < SAME:
        raise UserError(
            f"{resume} was trained on other vectors, with another mean: go on with the same "
            "corpus, model and head."
        )
    return start
