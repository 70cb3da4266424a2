"""STS tasks as a user runs them, from texts to Spearman, with all their repeated sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl

from benchmarks import ours
from benchmarks.peers import BASE, Encode, Peer
from benchmarks.rounds import Run, alternate, ratios, spread
from whitepool import scores
from whitepool.correlation import spearman
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.pairs import Task
from whitepool.data.table import SentenceTable
from whitepool.module import SentenceEncoder
from whitepool.plm import FrozenPLM
from whitepool.protocol import EvalProtocol
from whitepool.similarity import cosine

PROTOCOL = EvalProtocol("simcse", "all", "task")


def trainer(**options: Any) -> pl.Trainer:
    """Lightning's trainer as evaluate.py sets it up, on the CPU and without a word."""
    return pl.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        log_every_n_steps=10,
        **options,
    )


def score(plm: FrozenPLM, tasks: Sequence[Task], batch_tokens: int) -> dict[str, float]:
    """Spearman x100 of each task through whitepool: each distinct sentence is encoded once."""
    table = SentenceTable.build(tasks, plm.tokenize)
    encoder = SentenceEncoder(plm, ours.mean(-1))
    trainer().test(
        encoder, datamodule=SentenceDataModule(table, batch_tokens=batch_tokens), verbose=False
    )
    cosines = scores.cosines(table, encoder.vectors, None, PROTOCOL)
    found = scores.score(table.scored, cosines, samples=0)
    return {task.name: found.get(task.name).value for task in tasks}


def score_with(encode: Encode, batch_size: int, tasks: Sequence[Task]) -> dict[str, float]:
    """The same through a peer, which encodes all sentences of each scored set as they come."""
    result = {}
    for task in tasks:
        cosines = []
        for s in task.scored:
            vectors = encode([*s.first, *s.second], batch_size)
            n = len(s)
            cosines.append(cosine(vectors, np.stack([np.arange(n), np.arange(n) + n], axis=1)))
        gold = np.concatenate([s.gold for s in task.scored])
        result[task.name] = 100 * spearman(np.concatenate(cosines), gold)
    return result


def compare(
    folder: Path,
    tasks: Sequence[Task],
    peers: Sequence[tuple[Peer, int]],
    *,
    precisions: Sequence[str],
    batch_tokens: int,
    rounds: int,
) -> tuple[dict[str, list[float]], dict[str, dict[str, float]]]:
    """Seconds per round and scores x100 of each contender.

    Args:
        folder: the model.
        tasks: what is scored.
        peers: each with its batch size.
        precisions: whitepool's.
        batch_tokens: most tokens of whitepool's batches.
        rounds: how often each is timed; the first calls of shapes are in the first of them, as
            they are for a user, so that there is no warm-up.
    """
    runs: dict[str, Run] = {
        f"whitepool {p}": partial(score, ours.load(folder, p), tasks, batch_tokens)
        for p in precisions
    }
    for peer, size in peers:
        runs[peer.name] = partial(score_with, peer.encode, size, tasks)
    found: dict[str, dict[str, float]] = {}

    def keep(name: str, run: Run) -> None:
        found[name] = run()  # type: ignore[assignment]

    times = alternate({n: partial(keep, n, run) for n, run in runs.items()}, rounds, warm=False)
    return times, found


def rows(
    times: Mapping[str, list[float]], found: Mapping[str, Mapping[str, float]]
) -> list[dict[str, str]]:
    """The table that is printed."""
    return [
        {
            "program": name,
            "seconds": spread(taken, 1),
            f"times {BASE}": spread(ratios(times[BASE], taken)) if BASE in times else "",
            "Spearman x100": ", ".join(f"{task} {x:.2f}" for task, x in found[name].items()),
        }
        for name, taken in times.items()
    ]
