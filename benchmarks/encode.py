"""Sentences per second of whitepool and its peers, on the same distinct sentences."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks import machine, ours
from benchmarks.peers import BASE, Peer
from benchmarks.rounds import Run, alternate, ratios, seconds, spread
from whitepool.correlation import spearman
from whitepool.data.pairs import Task
from whitepool.precision import DTYPES
from whitepool.similarity import cosine

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Speed:
    """What was measured of one contender.

    Attributes:
        name: ``whitepool 32-true``, or a peer.
        batch: most tokens of a batch, or sentences of one for a peer.
        seconds: of each round.
        gflops: useful GFLOP/s in the median round, padding not counted.
        share: of the matrix-product peak of the number type, in per cent.
        against_base: per round, times as fast as sentence-transformers; empty where that is absent.
        agreement: lowest cosine of a vector with whitepool's in float32.
    """

    name: str
    batch: str
    seconds: list[float]
    gflops: float
    share: float
    against_base: list[float]
    agreement: float


def compare(
    folder: Path,
    texts: Sequence[str],
    peers: Sequence[Peer],
    *,
    precisions: Sequence[str],
    batch_tokens: int,
    batch_sizes: Sequence[int],
    rounds: int,
    peak_repeats: int = 8,
) -> list[Speed]:
    """Time all contenders alternately; every one has encoded the sentences once before.

    Args:
        folder: the model.
        texts: distinct sentences.
        peers: whom to compare with, each at its best batch size.
        precisions: whitepool's.
        batch_tokens: most tokens of whitepool's batches.
        batch_sizes: tried for each peer.
        rounds: how often each is timed.
        peak_repeats: how often each matrix product is timed that measures the machine.
    """
    models = {f"whitepool {p}": ours.load(folder, p) for p in dict.fromkeys(precisions)}
    pooling = ours.mean(-1)
    runs: dict[str, Run] = {
        name: partial(ours.encode, plm, texts, pooling, batch_tokens)
        for name, plm in models.items()
    }
    batches = dict.fromkeys(runs, f"{batch_tokens} tokens")
    for peer in peers:
        size = best_batch_size(peer, texts, batch_sizes)
        runs[peer.name] = partial(peer.encode, texts, size)
        batches[peer.name] = f"{size} sentences"
    reference = ours.encode(ours.load(folder, "32-true"), texts, pooling, batch_tokens)
    agreement = {name: lowest_cosine(run(), reference) for name, run in runs.items()}
    tops = {
        dtype: machine.peak(getattr(torch, dtype), peak_repeats) for dtype in {*map(_dtype, runs)}
    }
    times = alternate(runs, rounds, warm=False)
    for dtype, before in tops.items():  # others may have slowed one of the two
        tops[dtype] = max(before, machine.peak(getattr(torch, dtype), peak_repeats))
    plm = next(iter(models.values()))
    work = machine.operations(plm, [len(ids) for ids in plm.tokenize(texts).ids])
    result = []
    for name, taken in times.items():
        speed = work / statistics.median(taken)
        result.append(
            Speed(
                name,
                batches[name],
                taken,
                speed,
                100 * speed / tops[_dtype(name)],
                ratios(times[BASE], taken) if BASE in times else [],
                agreement[name],
            )
        )
    return result


def _dtype(name: str) -> str:
    return "bfloat16" if "bf16" in name else "float32"


def best_batch_size(peer: Peer, texts: Sequence[str], sizes: Sequence[int]) -> int:
    """The fastest of some sizes on a quarter of the sentences, at least two batches of each."""
    some = texts[: max(len(texts) // 4, 2 * max(sizes))]
    peer.encode(some, sizes[0])  # first calls set things up
    return min(sizes, key=lambda size: seconds(partial(peer.encode, some, size)))


def lowest_cosine(found: Any, reference: Floats) -> float:
    """Of each vector with its counterpart."""
    both = np.concatenate([np.asarray(found, dtype=np.float32), reference])
    n = len(reference)
    return float(cosine(both, np.stack([np.arange(n), np.arange(n) + n], axis=1)).min())


def score_changes(
    folder: Path, tasks: Sequence[Task], precisions: Sequence[str], batch_tokens: int
) -> list[dict[str, Any]]:
    """How other number types move the cosines and the Spearman (x100) of a mean, from float32."""
    sets = [s for task in tasks for s in task.scored]
    texts = list(dict.fromkeys(t for s in sets for t in s.first + s.second))
    row = {text: i for i, text in enumerate(texts)}
    vectors = {
        precision: ours.encode(ours.load(folder, precision), texts, ours.mean(-1), batch_tokens)
        for precision in DTYPES
        if precision == "32-true" or precision in precisions
    }
    result = []
    for s in sets:
        pairs = np.array([(row[a], row[b]) for a, b in zip(s.first, s.second, strict=True)])
        cosines = {precision: cosine(v, pairs) for precision, v in vectors.items()}
        before = cosines.pop("32-true")
        for precision, after in cosines.items():
            result.append(
                {
                    "task": s.task,
                    "precision": precision,
                    "spearman": 100 * spearman(before, s.gold),
                    "change": 100 * (spearman(after, s.gold) - spearman(before, s.gold)),
                    "largest cosine change": float(abs(after - before).max()),
                    "pairs": len(s.gold),
                }
            )
    return result


def rows(speeds: Sequence[Speed], sentences: int) -> list[Mapping[str, str]]:
    """The table that is printed."""
    return [
        {
            "program": s.name,
            "batch": s.batch,
            "seconds": spread(s.seconds),
            "sentences/s": f"{sentences / statistics.median(s.seconds):,.0f}",
            f"times {BASE}": spread(s.against_base) if s.against_base else "",
            "GFLOP/s": f"{s.gflops:.0f}",
            "% of peak": f"{s.share:.0f}",
            "lowest cosine with float32": f"{s.agreement:.6f}",
        }
        for s in speeds
    ]
