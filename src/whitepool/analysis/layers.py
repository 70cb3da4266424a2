"""Every subset of the layers, from one pass: Figures 1 and 2 of WhiteningBERT (Huang et al. 2021).

    v = 1/|S| sum_{l in S} sum_t w_t h[l, t]        for every S among the layers 0 … L

with the token weights w of the chosen linear head. Raw scores come from Gram arrays
(`whitepool.analysis.grams`), whitened ones from moments mixed of blocks
(`whitepool.analysis.whitened`).
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Sequence

from torch import Tensor

from whitepool.analysis import estimate
from whitepool.analysis.base import Rows
from whitepool.analysis.grams import Mix
from whitepool.analysis.mixes import Mixes
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.pooling import LinearPooling, Pooling
from whitepool.protocol import EvalProtocol
from whitepool.states import Needs, States
from whitepool.whitening import PostProcess

log = logging.getLogger(__name__)

MOST = 2**20  # subsets in one grid


class LayerGrid:
    """Scores of every subset of layers up to a size.

    Args:
        pooling: the head whose token weights are taken; its own layers do not matter.
        post: what is fitted on the whitened ones, None for nothing.
        max_size: most layers in a subset; None for all.
        whiten_sizes: sizes of the subsets that are scored whitened too.

    Raises:
        UserError: a head that is not linear, or sizes that are none.
    """

    def __init__(
        self,
        pooling: Pooling,
        post: PostProcess | None,
        *,
        max_size: int | None = None,
        whiten_sizes: Sequence[int] = (1, 2),
    ) -> None:
        if not isinstance(pooling, LinearPooling):
            raise UserError(
                "analysis=layers mixes the layers of a linear head, and the chosen one is not "
                "linear: use pooling=avg, cls, last_token or ditto."
            )
        for name, sizes in (
            ("max_size", [1 if max_size is None else max_size]),
            ("whiten_sizes", whiten_sizes),
        ):
            if isinstance(sizes, int) or any(type(n) is not int or n < 1 for n in sizes):
                raise UserError(
                    f"analysis.{name} is {sizes!r}: give whole numbers from 1"
                    + (", or null for all." if name == "max_size" else ", as [1,2], or [].")
                )
        self.tokens, self.post = pooling.tokens, post
        self.max_size, self.whiten_sizes = max_size, tuple(whiten_sizes)
        self.needs = Needs()

    def plan(self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable) -> None:
        """List the subsets, and say how long they will take.

        Raises:
            UserError: there are too many.
        """
        layers = plm.depth + 1
        largest = min(self.max_size or layers, layers)
        count = sum(math.comb(layers, size) for size in range(1, largest + 1))
        if count > MOST:
            fits = max(
                size
                for size in range(1, layers)
                if sum(math.comb(layers, n) for n in range(1, size + 1)) <= MOST
            )
            raise UserError(
                f"{layers} layers have {count:,} subsets of up to {largest}, over {MOST:,}: give "
                f"analysis.max_size={fits} or less."
            )
        if over := [size for size in self.whiten_sizes if size > layers]:
            raise UserError(f"analysis.whiten_sizes has {over[0]}, but there are {layers} layers.")
        self.pooling = LinearPooling(self.tokens, range(layers))
        self.needs = self.pooling.needs
        self.mixes = Mixes(
            [str(layer) for layer in range(layers)],
            width(plm),
            raw=[
                m for n in range(1, largest + 1) for m in itertools.combinations(range(layers), n)
            ],
            whitened=[
                m for n in self.whiten_sizes for m in itertools.combinations(range(layers), n)
            ],
            post=self.post,
            protocol=protocol,
            table=table,
        )
        log.info(
            "layers: %s subsets of %d layers; after the pass about %.0f s%s.",
            f"{len(self.mixes.raw):,}",
            layers,
            estimate.raw_seconds(self.mixes),
            f", and {estimate.whitened_seconds(self.mixes):.0f} s for {len(self.mixes.whitened)} "
            "of them whitened"
            if self.mixes.whitened
            else "; nothing is whitened",
        )

    def memory(self, lengths: Sequence[int]) -> int:
        """Bytes kept until `finish` for sentences of these lengths in tokens."""
        return self.mixes.memory(len(lengths))

    def start(self, table: SentenceTable) -> None:
        """Begin a chunk."""
        self.mixes.start(table)

    def update(self, rows: Tensor, states: States) -> None:
        """Keep one vector per layer of some rows."""
        self.mixes.update(rows, self.pooling.by_layer(states))

    def finish(self) -> None:
        """Turn the chunk's vectors into values per pair."""
        self.mixes.finish()

    def tables(self) -> dict[str, Rows]:
        """`layers`, every subset and score, and `layers_best`, the best subset of each size."""
        rows = [
            {"layers": named, "size": len(mix), **score.row(i, stage)}
            for stage, mixes, scores in self.mixes.scores()
            for i, (mix, named) in enumerate(zip(mixes, map(name, mixes), strict=True))
            for score in scores
        ]
        return {"layers": rows, "layers_best": best_by_size(rows)}


def name(mix: Mix) -> str:
    """``1+12``."""
    return "+".join(map(str, mix))


def best_by_size(rows: Rows) -> Rows:
    """The best subset of each size, for each task, aggregate and stage."""
    best: dict[tuple[object, ...], dict[str, object]] = {}
    for row in rows:
        if row["subset"] or math.isnan(row["value"]):
            continue
        key = (row["stage"], row["task"], row["aggregate"], row["size"])
        if key not in best or row["value"] > best[key]["value"]:
            best[key] = row
    columns = ("size", "layers", "task", "subset", "aggregate", "stage", "metric", "value", "n")
    return [{column: row[column] for column in columns} for row in best.values()]


def width(plm: FrozenPLM) -> int:
    """Dimensions of the model's layers."""
    return int(plm.model.config.get_text_config().hidden_size)
