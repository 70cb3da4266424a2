"""The Lightning module of a one-pass analysis: states in, handed to every analysis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

import pytorch_lightning as pl
from torch import Tensor

from whitepool.analysis.base import Analysis
from whitepool.data.datamodule import SentenceDataModule
from whitepool.plm import FrozenPLM
from whitepool.states import Batch, Needs, States


class GridEncoder(pl.LightningModule):
    """Runs the model once over a chunk's sentences for several analyses.

    Args:
        plm: the frozen model.
        analyses: planned, so that their needs are known.

    Raises:
        UserError: an analysis needs what the model has not.
    """

    def __init__(self, plm: FrozenPLM, analyses: Sequence[Analysis]) -> None:
        super().__init__()
        self.plm = plm
        self.analyses = list(analyses)
        self.needs = reduce(or_, (analysis.needs for analysis in self.analyses), Needs())
        plm.check(self.needs)

    def on_test_start(self) -> None:
        """Begin a chunk in every analysis."""
        assert isinstance(self.trainer.datamodule, SentenceDataModule)
        for analysis in self.analyses:
            analysis.start(self.trainer.datamodule.table)

    def test_step(self, batch: Batch, index: int) -> None:
        """Encode one batch and hand it on."""

        def states(part: Batch) -> list[tuple[Tensor, States]]:
            return list(self.plm.states(part, self.needs))

        for parts in self.plm.room.each(batch, states):
            for rows, found in parts:
                for analysis in self.analyses:
                    analysis.update(rows, found)
