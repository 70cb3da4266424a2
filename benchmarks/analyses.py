"""One-pass analyses beside the same recipes run one by one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks import grids, ours
from benchmarks.grids import Subject
from benchmarks.rounds import Run, alternate, ratios, seconds, spread
from whitepool import scores
from whitepool.analysis.base import Analysis
from whitepool.analysis.dims import DimGrid
from whitepool.analysis.heads import HeadGrid
from whitepool.analysis.layers import LayerGrid
from whitepool.correlation import spearman
from whitepool.pooling import AttentionDiagonal, LinearPooling, Pooling
from whitepool.similarity import cosine
from whitepool.states import Needs, States
from whitepool.whitening import Whitening

Result = Mapping[str, str]
TRIED = 8  # recipes that stand for all where one by one would take too long


class EveryLayer:
    """The mean over tokens of every layer, side by side."""

    def __init__(self, depth: int) -> None:
        self._pooling = ours.mean(*range(depth + 1))

    @property
    def needs(self) -> Needs:
        """All layers."""
        return self._pooling.needs

    def __call__(self, states: States) -> Tensor:
        """(batch, layer * dim)."""
        return self._pooling.by_layer(states).flatten(1)


@torch.inference_mode()
def plain(subject: Subject, pooling: Pooling) -> list[float]:
    """Encode a table and score one recipe, x100 for each set: what a single run does."""
    vectors: NDArray[np.float32] | None = None
    for rows, states in subject.passes(pooling.needs):
        found = pooling(states).numpy()
        if vectors is None:
            vectors = np.zeros((len(subject.table), found.shape[1]), dtype=np.float32)
        vectors[rows.numpy()] = found
    assert vectors is not None
    cosines = scores.cosines(subject.table, vectors, None, subject.protocol)["raw"]
    sets = subject.table.scored
    return [100 * spearman(x, s.gold) for x, s in zip(cosines, sets, strict=True)]


def _line(
    part: str, what: str, taken: Sequence[float], beside: str, other: Sequence[float], unit: str
) -> Result:
    faster = unit == "times faster"
    ratio = ratios(other, taken) if faster else ratios(taken, other)
    return {
        "part": part,
        "timed": what,
        "seconds": spread(taken),
        "beside": beside,
        "its seconds": spread(other),
        "ratio": f"{spread(ratio)} {unit}",
    }


def early_stop(subject: Subject, rounds: int) -> list[Result]:
    """A recipe that needs layer 1 only beside one that needs the last, encoded and scored."""
    runs = {
        name: partial(plain, subject, ours.mean(layer))
        for name, layer in (("layer 1", 1), ("last layer", -1))
    }
    times = alternate(runs, rounds)
    one, last = times.values()
    return [_line("early stop", "layer 1", one, "last layer", last, "times faster")]


def layer_means(subject: Subject, rounds: int) -> list[Result]:
    """Means of every layer beside those of the last, encoded."""

    @torch.inference_mode()
    def encode(pooling: Pooling) -> None:
        for _, states in subject.passes(pooling.needs):
            pooling(states)

    heads: dict[str, Pooling] = {"every": EveryLayer(subject.plm.depth), "last": ours.mean(-1)}
    times = alternate({n: partial(encode, head) for n, head in heads.items()}, rounds)
    what = f"means of {subject.plm.depth + 1} layers"
    return [_line("layers", what, times["every"], "of the last", times["last"], "times as long")]


def all_heads(subject: Subject, rounds: int) -> list[Result]:
    """Ditto with every head and two lists of layers beside one run, and beside a run for each."""
    analysis, plm = HeadGrid(), subject.plm
    ditto = LinearPooling(AttentionDiagonal(0, 0), (0, -1))
    runs: dict[str, Run] = {
        "grid": partial(grids.whole, analysis, subject),
        "plain": partial(plain, subject, ours.mean(-1)),
        "ditto": partial(plain, subject, ditto),
    }
    times = alternate(runs, rounds)
    recipes = plm.depth * plm.heads * 2
    what, grid = f"{recipes} heads and lists", times["grid"]
    each = [recipes * taken for taken in times["ditto"]]
    return [
        _line("heads", what, grid, "one mean, scored", times["plain"], "times as long"),
        _line("heads", what, grid, f"{recipes} runs (computed)", each, "times faster"),
    ]


def all_subsets(subject: Subject, rounds: int) -> list[Result]:
    """Every subset of layers, raw, after the encode; random vectors stand for the layers'."""
    analysis = LayerGrid(ours.mean(-1), None, whiten_sizes=())
    taken = _after_encode(analysis, subject, rounds)
    layers = subject.plm.depth + 1
    width = subject.width
    x = np.random.default_rng(0).standard_normal((layers, len(subject.table), width), np.float32)
    every = [m for n in range(1, layers + 1) for m in itertools.combinations(range(layers), n)]
    some = every[:: max(1, len(every) // TRIED)]

    def one_by_one() -> None:
        for mix in some:
            _score(subject, sum((x[layer] for layer in mix[1:]), x[mix[0]]) / len(mix))

    other = [seconds(one_by_one) * len(every) / len(some) for _ in range(rounds)]
    what, beside = f"{len(every)} subsets", f"each scored alone ({len(some)} tried)"
    return [_line("subsets, after the encode", what, taken, beside, other, "times faster")]


def all_k(subject: Subject, rounds: int) -> list[Result]:
    """Every k, rotated and whitened, after the encode; random vectors stand for the pooled."""
    analysis = DimGrid(ours.mean(-1), Whitening())
    taken = _after_encode(analysis, subject, rounds)
    width = subject.width
    x = np.random.default_rng(0).standard_normal((len(subject.table), width))
    some = np.linspace(1, width, TRIED).astype(int)

    def one_by_one() -> None:
        for k in some:
            _score(subject, x[:, :k])

    stages = 2  # rotated and whitened
    other = [stages * seconds(one_by_one) * width / len(some) for _ in range(rounds)]
    maps = analysis.maps()
    curves = [seconds(partial(analysis.curves, maps)) for _ in range(rounds)]
    what, beside = f"k = 1 to {width}, two stages", f"each scored alone ({len(some)} tried)"
    return [
        _line("k, after the encode", what, taken, beside, other, "times faster"),
        _line("k, after the maps", what, curves, beside, other, "times faster"),
    ]


def _after_encode(analysis: Analysis, subject: Subject, rounds: int) -> list[float]:
    """Seconds from the last state to the tables, the first time being one of the rounds."""
    taken = []
    for _ in range(rounds):
        grids.feed(analysis, subject)
        taken.append(seconds(partial(_finish, analysis)))
    return taken


def _finish(analysis: Analysis) -> None:
    analysis.finish()
    analysis.tables()


def _score(subject: Subject, vectors: NDArray[np.floating]) -> list[float]:
    return [spearman(cosine(vectors, s.pairs), s.gold) for s in subject.table.scored]


PARTS: dict[str, Callable[[Subject, int], list[Result]]] = {
    "early_stop": early_stop,
    "layer_means": layer_means,
    "heads": all_heads,
    "subsets": all_subsets,
    "k": all_k,
}


def measure(parts: Sequence[str], subject: Subject, rounds: int) -> list[Result]:
    """Time some of `PARTS`."""
    return [line for part in parts for line in PARTS[part](subject, rounds)]
