"""Ditto with every attention head and any lists of layers, from one pass.

    score(block, head, layers) = Spearman(cosine(X_a' d_a, X_b' d_b), gold)

X (token, dim) are the token states, the mean over the list's layers, and d (token,) is the diagonal
of the head's attention, as `pooling=ditto` takes them. The head is chosen on a dev split and
reported on what is scored (Chen et al. 2023, "Ditto: A Simple and Efficient Approach to Improve
Sentence Embeddings").
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from whitepool.analysis.base import Rows
from whitepool.analysis.grid_scores import GridScore, score_grid
from whitepool.analysis.head_cosines import HeadCosines, seconds
from whitepool.analysis.head_tables import Recipe, best, contenders, every_score, sentence
from whitepool.analysis.repeats import Repeats
from whitepool.analysis.selection import DevSplits
from whitepool.data.pairs import PairSet, Task
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.protocol import EvalProtocol
from whitepool.states import BlockHead, Layer, Needs, States, resolve_layer

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]


class HeadGrid:
    """Every block and head times some lists of layers.

    Args:
        layers: lists of layers; see `whitepool.states` for how they count.
        select_on: where heads are chosen for tasks without a dev split, see `DevSplits`.
        published_block: block of the head that is published for the model, None where none is.
        published_head: its head.
        heads: only these (block, head) pairs; every one by default.

    Attributes:
        dtype: type of the states that came in.

    Raises:
        UserError: no layer, or no set to select on.
    """

    def __init__(
        self,
        layers: Sequence[Sequence[Layer]] = ((-1,), (0, -1)),
        select_on: str = "stsb",
        published_block: int | None = None,
        published_head: int | None = None,
        heads: Sequence[BlockHead] | None = None,
    ) -> None:
        if not layers or any(isinstance(x, int | str) or not x for x in layers):
            raise UserError(
                f"analysis.layers is {layers}: give a list of lists of layers, as [[-1],[0,-1]]."
            )
        self.lists = tuple(dict.fromkeys(tuple(x) for x in layers))
        self.dev = DevSplits(select_on)
        self.published: BlockHead | None = None
        if published_block is not None and published_head is not None:
            self.published = (published_block, published_head)
        self.heads = tuple(heads or ())
        self.dtype = "float32"
        self._confirmed: HeadGrid | None = None

    @property
    def needs(self) -> Needs:
        """The layers of all lists, and the diagonals of the heads, which are known once planned."""
        return Needs(tuple(dict.fromkeys(x for xs in self.lists for x in xs)), self.heads)

    @property
    def recipes(self) -> list[Recipe]:
        """The grid, in the order of `HeadCosines`."""
        return [Recipe(*head, layers) for layers in self.lists for head in self.heads]

    def select(self, tasks: Sequence[Task]) -> tuple[PairSet, ...]:
        """The dev splits that the table must have in `SentenceTable.select`."""
        return self.dev.read(tasks)

    def plan(self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable) -> None:
        """List the heads, check the layers, and say how long scoring will take.

        Raises:
            UserError: a layer or head that does not exist, or layers of different dimension.
        """
        every = tuple((block, head) for block in range(plm.depth) for head in range(plm.heads))
        self.heads = self.heads or every
        plm.check(self.needs)
        self._dim = int(plm.model.config.get_text_config().hidden_size)
        static = plm.model.get_input_embeddings().weight.shape[-1]
        for layers in self.lists:
            if static != self._dim and "static" in layers and set(layers) != {"static"}:
                raise UserError(
                    f"layers {list(layers)} cannot be averaged: the word-embedding table of this "
                    f"model has {static} dimensions and its layers {self._dim}."
                )
        if self.published and self.published not in every:
            log.warning("This model has no block and head %s, the published one.", self.published)
            self.published = None
        self._resolved = [tuple(resolve_layer(x, plm.depth) for x in xs) for xs in self.lists]
        self._aggregate, self._table = protocol.aggregate, table
        self._pieces: dict[tuple[str, str], list[tuple[ScoredSet, Floats]]] = defaultdict(list)
        self._repeats = Repeats(table)
        self._cached: tuple[list[GridScore], list[GridScore]] | None = None
        self._n_pairs = sum(len(s.pairs) for s in (*table.scored, *table.select))
        lengths = [len(ids) for ids in table.ids]
        log.info(
            "%d heads, %d lists of layers; scoring takes about %.0f s after the pass",
            len(self.heads),
            len(self.lists),
            seconds(lengths, self._n_pairs, self._dim, len(self.lists), len(self.heads)),
        )

    def memory(self, lengths: Sequence[int]) -> int:
        """Bytes kept for sentences of these lengths: states, diagonals, norms; and all cosines.

        States count as float32; a shorter type takes less.
        """
        layers = len({layer for some in self._resolved for layer in some})
        per_token = 4 * (layers * self._dim + len(self.heads))
        return sum(lengths) * per_token + 8 * len(self.recipes) * (len(lengths) + self._n_pairs)

    def start(self, table: SentenceTable) -> None:
        """Make room for the tokens of a chunk."""
        self._chunk = table
        self._cosines = HeadCosines([len(ids) for ids in table.ids], self._resolved, self.heads)

    def update(self, rows: Tensor, states: States) -> None:
        """Keep the tokens of some sentences, (batch,)."""
        self.dtype = str(states.hidden[self._resolved[0][0]].dtype).removeprefix("torch.")
        self._cosines.put(rows, states)

    def finish(self) -> None:
        """Cosines of the chunk's pairs under every recipe; the tokens are let go.

        Raises:
            UserError: the states of a text are not finite.
        """
        bad = self._cosines.unusable()
        if len(bad):
            raise UserError(
                f"the states of {self._chunk.texts[bad[0]][:60]!r} are not finite: use "
                "trainer.precision=32-true, or look for a fault in the model's weights."
            )
        sets = [*self._chunk.scored, *self._chunk.select]
        pairs = np.concatenate([s.pairs for s in sets])
        cosines = self._cosines.of(pairs)
        self._repeats.settle(self._chunk, pairs, cosines)
        ends = np.cumsum([len(s.pairs) for s in sets])[:-1]
        for s, part in zip(sets, np.split(cosines, ends, axis=1), strict=True):
            self._pieces[s.split, s.name].append((s, part))
        del self._cosines, self._chunk

    def confirmation(self) -> HeadGrid:
        """The heads worth another pass with the model in float32, after one in a shorter type.

        They are the best few of every choice, the published head, and what is best on the scored
        pairs. The new grid goes through the same life; then give it to `confirm`.
        """
        heads = contenders(self.recipes, *self._choice(), self.published)
        block, head = self.published or (None, None)
        return HeadGrid(self.lists, self.dev.select_on, block, head, heads)

    def confirm(self, exact: HeadGrid) -> None:
        """Let the heads be chosen and reported by their values in ``exact``."""
        self._confirmed = exact

    def tables(self) -> dict[str, Rows]:
        """``heads``: every score of every recipe; ``heads_best``: the heads chosen."""
        exact = self._confirmed or self
        if exact.dtype != "float32":
            log.warning("Heads were chosen in %s, which can move a poor one by 0.1.", exact.dtype)
        elif self.dtype != "float32":
            log.info("Searched in %s; the heads below are confirmed in float32.", self.dtype)
        rows = best(exact.recipes, *exact._choice(), exact.published, exact.dtype)
        for row in rows:
            if row["dev_rank"] == 1 or row["choice"] == "published":
                log.info("%s", sentence(row))
        scored, selecting = self._scores()
        return {"heads": every_score(self.recipes, scored + selecting), "heads_best": rows}

    def _scores(self) -> tuple[list[GridScore], list[GridScore]]:
        """Scores of the scored sets together, and of each selecting set by itself."""
        if self._cached is None:
            selecting = [x for s in self._table.select for x in score_grid(*self._whole([s]))]
            self._cached = score_grid(*self._whole(self._table.scored)), selecting
        return self._cached

    def _whole(self, sets: Sequence[ScoredSet]) -> tuple[list[ScoredSet], list[Floats]]:
        """Sets and their cosines, (recipe, pair), put together from the chunks."""
        whole, cosines = [], []
        for s in sets:
            pieces = self._pieces[s.split, s.name]
            gold = np.concatenate([piece.gold for piece, _ in pieces])
            if len(gold) != len(s.gold):
                raise RuntimeError(f"{s.name}: {len(gold)} of {len(s.gold)} pairs went in.")
            whole.append(replace(s, gold=gold))
            cosines.append(np.concatenate([part for _, part in pieces], axis=1))
        return whole, cosines

    def _choice(self) -> tuple[dict[str, GridScore], dict[str, GridScore]]:
        """By task, the score under the protocol's aggregate and the score that chooses."""
        scored, selecting = self._scores()
        reported = {s.task: s for s in scored if s.aggregate == self._aggregate}
        dev = {s.task: s for s in scored + selecting if (s.split, s.aggregate) == ("dev", "all")}
        return reported, {task: dev[self.dev.of(task, dev)] for task in reported}
