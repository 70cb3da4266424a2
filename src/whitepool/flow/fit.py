"""BERT-flow trained by maximum likelihood, with Lightning.

    min_f  - sum_n w_n log p(x_n) / sum_n w_n

over nine tenths of the vectors, w_n saying how often each counts. The other tenth says when to stop
and which epoch is kept. Whitening, where training starts from, is fitted on the nine tenths too, so
that the held-out likelihood of both is an honest one.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, EarlyStopping
from torch import Tensor
from torch.utils.data import DataLoader, Sampler, TensorDataset

from whitepool.errors import UserError
from whitepool.flow.network import Network
from whitepool.flow.step import Flow, FlowMap
from whitepool.maps.affine import Affine
from whitepool.moments import Moments
from whitepool.whitening import Whitening

log = logging.getLogger(__name__)

BATCH = 256  # vectors
HELD_OUT = 10  # one in so many
LEAST = 20  # vectors
HELD_OUT_NLL = "held_out_nll"
OURS = "whitepool"
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


class FlowTraining(pl.LightningModule):
    """Minimises the mean of -log p, in nats a dimension.

    Args:
        network: what is trained, on whitened vectors.
        learning_rate: of Adam.
        start: whitening, kept in checkpoints.
        options: what a checkpoint has to agree in, kept too.
    """

    def __init__(
        self, network: Network, learning_rate: float, start: Affine, options: dict[str, Any]
    ) -> None:
        super().__init__()
        self.network = network
        self.learning_rate = learning_rate
        self.kept = {"options": options, "mean": start.mean, "basis": start.basis}
        self.kept |= {"count": start.count, "rank": start.rank}

    def mean_nll(self, batch: Sequence[Tensor]) -> Tensor:
        """Mean of -log p of vectors (n, dim), weighted by (n,), in nats a dimension."""
        x, weight = batch
        nll = -self.network.log_density(x) / self.network.dim
        return (weight * nll).sum() / weight.sum()

    def training_step(self, batch: Sequence[Tensor], batch_idx: int) -> Tensor:
        """The loss of a batch."""
        loss = self.mean_nll(batch)
        self.log("train_nll", loss, on_step=False, on_epoch=True, batch_size=len(batch[0]))
        return loss

    def on_validation_epoch_start(self) -> None:
        """Begin a sum over the held-out vectors."""
        self._total, self._weight = 0.0, 0.0

    def validation_step(self, batch: Sequence[Tensor], batch_idx: int) -> None:
        """Add a batch of them."""
        weight = float(batch[1].sum())
        self._total += weight * float(self.mean_nll(batch))
        self._weight += weight

    def on_validation_epoch_end(self) -> None:
        """Their mean."""
        self.log(HELD_OUT_NLL, self._total / self._weight)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.network.parameters(), lr=self.learning_rate)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what the network stands behind."""
        checkpoint[OURS] = self.kept


class Best(pl.Callback):
    """Remembers the network of the epoch with the likeliest held-out vectors.

    Args:
        module: before any training, which is epoch 0.
        held_out: vectors, (n, dim).
        weight: how often each counts, (n,).

    Attributes:
        value: mean of -log p, in nats a dimension.
        first: the same of epoch 0.
        epoch: which it was.
        network: its state.
    """

    @torch.no_grad()
    def __init__(self, module: FlowTraining, held_out: Tensor, weight: Tensor) -> None:
        self.first = self.value = float(module.mean_nll((held_out, weight)))
        self.epoch = 0
        self.network = self._copy(module)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Compare an epoch with the best so far."""
        assert isinstance(pl_module, FlowTraining)
        value = float(trainer.callback_metrics[HELD_OUT_NLL])
        if value < self.value:
            self.value, self.epoch = value, trainer.current_epoch + 1
            self.network = self._copy(pl_module)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {name: getattr(self, name) for name in ("value", "first", "epoch", "network")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From a checkpoint."""
        for name, value in state_dict.items():
            setattr(self, name, value)

    @staticmethod
    def _copy(module: FlowTraining) -> dict[str, Tensor]:
        return {k: x.detach().cpu().clone() for k, x in module.network.state_dict().items()}


class Checkpoints(Checkpoint):
    """Puts each epoch's state in the place of the last one's, so that a whole one is there."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the state, then move it."""
        partial = self.path.with_suffix(".partial")
        trainer.save_checkpoint(partial)
        partial.replace(self.path)


class Shuffled(Sampler[Tensor]):
    """Batches of rows in an order that epoch and seed alone decide, so that a resumed run has it.

    Args:
        count: number of rows.
        seed: of the orders.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed, self.epoch = count, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Lightning tells which epoch begins."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Tensor]:
        draw = torch.Generator().manual_seed((self.seed + 1_000_003 * (self.epoch + 1)) % 2**63)
        yield from torch.split(torch.randperm(self.count, generator=draw), BATCH)

    def __len__(self) -> int:
        return math.ceil(self.count / BATCH)


class InOrder(Shuffled):
    """Batches of rows as they stand."""

    def __init__(self, count: int) -> None:
        super().__init__(count, 0)

    def __iter__(self) -> Iterator[Tensor]:
        yield from torch.split(torch.arange(self.count), BATCH)


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
    try:
        trainer.fit(module, training, watched, ckpt_path=resume, weights_only=True)
    except SystemExit as exit:
        if trainer.interrupted:
            raise KeyboardInterrupt from exit
        raise


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
