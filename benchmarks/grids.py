"""Analyses run step by step on a model and a table, as the command line's driver runs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import ours
from whitepool.analysis.base import Analysis, Rows
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.pairs import Task
from whitepool.data.table import SentenceTable
from whitepool.plm import FrozenPLM
from whitepool.protocol import EvalProtocol
from whitepool.states import Needs, States, resolve_layer


@dataclass(frozen=True, eq=False)
class Subject:
    """What analyses are timed on.

    Attributes:
        plm: the model.
        table: its scored sets are all called dev splits, so that heads are chosen on themselves.
        protocol: how scores are put together.
        batch_tokens: most tokens of a batch.
    """

    plm: FrozenPLM
    table: SentenceTable
    protocol: EvalProtocol
    batch_tokens: int

    @classmethod
    def load(cls, folder: Path, tasks: Sequence[Task], batch_tokens: int) -> Subject:
        """A model's folder and tasks, loaded; each distinct sentence is in the table once."""
        plm = ours.load(folder, "32-true")
        relabelled = [
            replace(task, scored=tuple(replace(s, split="dev") for s in task.scored))
            for task in tasks
        ]
        table = SentenceTable.build(relabelled, plm.tokenize)
        return cls(plm, table, EvalProtocol("simcse", "all", "task"), batch_tokens)

    @property
    def width(self) -> int:
        """Dimensions of a hidden state."""
        return int(self.plm.model.config.get_text_config().hidden_size)

    def passes(self, needs: Needs) -> Iterator[tuple[Tensor, States]]:
        """Rows and states of all sentences."""
        data = SentenceDataModule(self.table, batch_tokens=self.batch_tokens)
        for batch in data.test_dataloader():
            yield from self.plm.states(batch, needs)


@torch.inference_mode()
def whole(analysis: Analysis, subject: Subject) -> dict[str, Rows]:
    """The tables of an analysis, from planning and encoding on."""
    analysis.plan(subject.plm, subject.protocol, subject.table)
    analysis.start(subject.table)
    for rows, states in subject.passes(analysis.needs):
        analysis.update(rows, states)
    analysis.finish()
    return analysis.tables()


@torch.inference_mode()
def feed(analysis: Analysis, subject: Subject, chunk: int = 512) -> None:
    """Plan an analysis and give it random states of one token in place of a model's."""
    depth, table = subject.plm.depth, subject.table
    analysis.plan(subject.plm, subject.protocol, table)
    analysis.start(table)
    layers = [resolve_layer(layer, depth) for layer in analysis.needs.layers]
    generator = torch.Generator().manual_seed(0)
    for rows in torch.split(torch.arange(len(table)), chunk):
        shape = len(rows), 1, subject.width
        hidden = {layer: torch.randn(shape, generator=generator) for layer in layers}
        ones = torch.ones(len(rows), 1, dtype=torch.long)
        analysis.update(rows, States(depth, ones.bool(), ones, hidden))
