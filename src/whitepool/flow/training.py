"""What Lightning is told of a flow: the loss, the epoch that is kept, checkpoints, and batches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint
from torch import Tensor
from torch.utils.data import Sampler

from whitepool.flow.network import Network
from whitepool.maps.affine import Affine
from whitepool.whole_file import beside

BATCH = 256  # vectors
HELD_OUT_NLL = "held_out_nll"
OURS = "whitepool"


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
        with beside(self.path) as partial:
            trainer.save_checkpoint(partial)


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
