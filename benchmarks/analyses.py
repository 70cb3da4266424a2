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
from benchmarks.rounds import Run, alternate, ratios, seconds, spread
from whitepool import scores
from whitepool.analysis.base import Analysis
from whitepool.correlation import spearman
from whitepool.inputs import Inputs
from whitepool.pooling import AttentionDiagonal, LinearPooling, Pooling
from whitepool.similarity import cosine
from whitepool.states import Needs, States

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
def plain(inputs: Inputs, pooling: Pooling, batch_tokens: int) -> list[float]:
    """Encode a table and score one recipe, x100 for each set: what a single run does."""
    vectors: NDArray[np.float32] | None = None
    for rows, states in grids.passes(inputs.plm, inputs.table, pooling.needs, batch_tokens):
        found = pooling(states).numpy()
        if vectors is None:
            vectors = np.zeros((len(inputs.table), found.shape[1]), dtype=np.float32)
        vectors[rows.numpy()] = found
    assert vectors is not None
    cosines = scores.cosines(inputs.table, vectors, None, inputs.protocol)["raw"]
    sets = inputs.table.scored
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


def early_stop(overrides: Sequence[str], batch_tokens: int, rounds: int) -> list[Result]:
    """A recipe that needs layer 1 only beside one that needs the last, encoded and scored."""
    inputs, _ = grids.compose_inputs(overrides)
    runs = {
        name: partial(plain, inputs, ours.mean(layer), batch_tokens)
        for name, layer in (("layer 1", 1), ("last layer", -1))
    }
    times = alternate(runs, rounds)
    one, last = times.values()
    return [_line("early stop", "layer 1", one, "last layer", last, "times faster")]


def layer_means(overrides: Sequence[str], batch_tokens: int, rounds: int) -> list[Result]:
    """Means of every layer beside those of the last, encoded."""
    inputs, _ = grids.compose_inputs(overrides)

    @torch.inference_mode()
    def encode(pooling: Pooling) -> None:
        for _, states in grids.passes(inputs.plm, inputs.table, pooling.needs, batch_tokens):
            pooling(states)

    heads: dict[str, Pooling] = {"every": EveryLayer(inputs.plm.depth), "last": ours.mean(-1)}
    times = alternate({n: partial(encode, head) for n, head in heads.items()}, rounds)
    what = f"means of {inputs.plm.depth + 1} layers"
    return [_line("layers", what, times["every"], "of the last", times["last"], "times as long")]


def all_heads(overrides: Sequence[str], batch_tokens: int, rounds: int) -> list[Result]:
    """Ditto with every head and two lists of layers beside one run, and beside a run for each."""
    inputs, analysis = grids.compose_inputs(overrides, "heads")
    assert analysis is not None
    plm = inputs.plm
    ditto = LinearPooling(AttentionDiagonal(0, 0), (0, -1))
    runs: dict[str, Run] = {
        "grid": partial(grids.whole, analysis, inputs, batch_tokens),
        "plain": partial(plain, inputs, ours.mean(-1), batch_tokens),
        "ditto": partial(plain, inputs, ditto, batch_tokens),
    }
    times = alternate(runs, rounds)
    recipes = plm.depth * plm.heads * 2
    what, grid = f"{recipes} heads and lists", times["grid"]
    each = [recipes * taken for taken in times["ditto"]]
    return [
        _line("heads", what, grid, "one mean, scored", times["plain"], "times as long"),
        _line("heads", what, grid, f"{recipes} runs (computed)", each, "times faster"),
    ]


def all_subsets(overrides: Sequence[str], batch_tokens: int, rounds: int) -> list[Result]:
    """Every subset of layers, raw, after the encode; random vectors stand for the layers'."""
    inputs, analysis = grids.compose_inputs([*overrides, "analysis.whiten_sizes=[]"], "layers")
    assert analysis is not None
    taken = _after_encode(analysis, inputs, rounds)
    layers = inputs.plm.depth + 1
    width = int(inputs.plm.model.config.get_text_config().hidden_size)
    x = np.random.default_rng(0).standard_normal((len(inputs.table), layers, width), np.float32)
    every = [m for n in range(1, layers + 1) for m in itertools.combinations(range(layers), n)]
    some = every[:: max(1, len(every) // TRIED)]

    def one_by_one() -> None:
        for mix in some:
            _score(inputs, x[:, list(mix)].mean(1))

    other = [seconds(one_by_one) * len(every) / len(some) for _ in range(rounds)]
    what, beside = f"{len(every)} subsets", f"each scored alone ({len(some)} tried)"
    return [_line("subsets, after the encode", what, taken, beside, other, "times faster")]


def all_k(overrides: Sequence[str], batch_tokens: int, rounds: int) -> list[Result]:
    """Every k, rotated and whitened, after the encode; random vectors stand for the pooled."""
    inputs, analysis = grids.compose_inputs([*overrides, "whitening=pca"], "dims")
    assert analysis is not None
    taken = _after_encode(analysis, inputs, rounds)
    width = int(inputs.plm.model.config.get_text_config().hidden_size)
    x = np.random.default_rng(0).standard_normal((len(inputs.table), width))
    some = np.linspace(1, width, TRIED).astype(int)

    def one_by_one() -> None:
        for k in some:
            _score(inputs, x[:, :k])

    stages = 2  # rotated and whitened
    other = [stages * seconds(one_by_one) * width / len(some) for _ in range(rounds)]
    what, beside = f"k = 1 to {width}, two stages", f"each scored alone ({len(some)} tried)"
    return [_line("k, after the encode", what, taken, beside, other, "times faster")]


def _after_encode(analysis: Analysis, inputs: Inputs, rounds: int) -> list[float]:
    """Seconds from the last state to the tables."""
    taken = []
    for _ in range(rounds + 1):  # the first warms up
        grids.feed(analysis, inputs)
        taken.append(seconds(partial(_finish, analysis)))
    return taken[1:]


def _finish(analysis: Analysis) -> None:
    analysis.finish()
    analysis.tables()


def _score(inputs: Inputs, vectors: NDArray[np.floating]) -> list[float]:
    return [spearman(cosine(vectors, s.pairs), s.gold) for s in inputs.table.scored]


PARTS: dict[str, Callable[[Sequence[str], int, int], list[Result]]] = {
    "early_stop": early_stop,
    "layer_means": layer_means,
    "heads": all_heads,
    "subsets": all_subsets,
    "k": all_k,
}


def measure(
    parts: Sequence[str],
    overrides: Sequence[str],
    select: Sequence[str],
    batch_tokens: int,
    rounds: int,
) -> tuple[list[Result], list[str]]:
    """Time some of `PARTS`; a line on each that this version does not have.

    Args:
        parts: names.
        overrides: model and data, as evaluate.py takes them.
        select: further overrides where heads are chosen.
        batch_tokens: most tokens of a batch.
        rounds: how often each is timed.
    """
    results: list[Result] = []
    left_out = []
    for part in parts:
        try:
            more = select if part == "heads" else ()
            results += PARTS[part]([*overrides, *more], batch_tokens, rounds)
        except LookupError as error:
            left_out.append(f"{part} is left out: {error}.")
    return results, left_out
