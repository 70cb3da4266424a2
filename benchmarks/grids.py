"""Analyses made from the configuration, as evaluate.py makes them, and run step by step."""

from __future__ import annotations

import csv
import importlib
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from hydra import compose, initialize_config_dir
from torch import Tensor

from whitepool.analysis.base import Analysis, Rows
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.pairs import Task
from whitepool.data.table import SentenceTable
from whitepool.inputs import Inputs, prepare
from whitepool.plm import FrozenPLM
from whitepool.states import Needs, States, resolve_layer

CONF = Path(__file__).resolve().parents[1] / "conf"


def compose_inputs(
    overrides: Sequence[str], grid: str | None = None
) -> tuple[Inputs, Analysis | None]:
    """What a command line chooses, loaded, and its analysis if it has one.

    Raises:
        LookupError: this version has no such analysis.
    """
    chosen = [*overrides, "output_dir=."]
    if grid is not None:
        if not (CONF / "analysis" / f"{grid}.yaml").exists():
            raise LookupError(f"this version has no analysis={grid}")
        chosen.append(f"analysis={grid}")
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("evaluate", overrides=chosen)
    inputs = prepare(config)
    if grid is None:
        return inputs, None
    build = importlib.import_module("whitepool.analysis.run").build
    (analysis,) = build(config.analysis, inputs).values()
    return inputs, analysis


def passes(
    plm: FrozenPLM, table: SentenceTable, needs: Needs, batch_tokens: int
) -> Iterator[tuple[Tensor, States]]:
    """Rows and states of all sentences of a table."""
    for batch in SentenceDataModule(table, batch_tokens=batch_tokens).test_dataloader():
        yield from plm.states(batch, needs)


@torch.inference_mode()
def whole(analysis: Analysis, inputs: Inputs, batch_tokens: int) -> dict[str, Rows]:
    """The tables of a planned analysis, from encoding on."""
    analysis.plan(inputs.plm, inputs.protocol, inputs.table)
    analysis.start(inputs.table)
    for rows, states in passes(inputs.plm, inputs.table, analysis.needs, batch_tokens):
        analysis.update(rows, states)
    analysis.finish()
    return analysis.tables()


@torch.inference_mode()
def feed(analysis: Analysis, inputs: Inputs, chunk: int = 512) -> None:
    """Plan an analysis and give it random states of one token in place of an encoder's."""
    plm, table = inputs.plm, inputs.table
    analysis.plan(plm, inputs.protocol, table)
    analysis.start(table)
    width = int(plm.model.config.get_text_config().hidden_size)
    layers = [resolve_layer(layer, plm.depth) for layer in analysis.needs.layers]
    generator = torch.Generator().manual_seed(0)
    for rows in torch.split(torch.arange(len(table)), chunk):
        hidden = {layer: torch.randn(len(rows), 1, width, generator=generator) for layer in layers}
        ones = torch.ones(len(rows), 1, dtype=torch.long)
        analysis.update(rows, States(plm.depth, ones.bool(), ones, hidden))


def write_pairs(tasks: Sequence[Task], count: int | None, path: Path) -> Path:
    """A file of so many of the pairs, or of all, for ``data=pairs``."""
    pairs = [
        pair
        for task in tasks
        for s in task.scored
        for pair in zip(s.first, s.second, s.gold.tolist(), strict=True)
        if pair[0].strip() and pair[1].strip()
    ]
    some = random.Random(0).sample(pairs, min(count or len(pairs), len(pairs)))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(("sentence1", "sentence2", "score"))
        writer.writerows(some)
    return path
