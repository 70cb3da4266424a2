"""Every number of directions k at once, from one pass and one eigendecomposition a fit set.

    z = (x - m) U diag(lambda)^(-1/2),  first k of z: whitened;  first k of (x - m) U: rotated only

with m, lambda, U as in `whitepool.whitening`. BERT-whitening (Su et al. 2021) keeps k = 256 of a
base model's 768; what keeping costs or gains without the scaling is the rotated curve beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.aggregates import Cell, Floats
from whitepool.analysis import dim_rows, prefixes
from whitepool.analysis.base import Rows
from whitepool.analysis.gathered import Gathered
from whitepool.analysis.prefixes import Pairs, prefix_cosines
from whitepool.analysis.scoring import MANY, score_many
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.fitting import FitSets, fit_each
from whitepool.plm import FrozenPLM
from whitepool.pooling import Pooling
from whitepool.protocol import EvalProtocol
from whitepool.scores import cosines
from whitepool.states import Needs, States
from whitepool.whitening import Affine, PostProcess, Whitening

log = logging.getLogger(__name__)

SECONDS = 1.5e-7  # of one core, for a pair, a direction and both stages; measured


class DimGrid:
    """Scores of the first k directions for every k up to the effective rank.

    Stages are `raw` (no step after pooling, k = dim), `rotated` (centred, rotated to the principal
    axes, not scaled) and `post` (whitened). Vectors of all sentences are kept to the end whatever
    the chunks are, since a map is fitted on all of them.

    Args:
        pooling: the head, of any kind.
        post: PCA whitening without a k; None leaves out the stage `post`.

    Raises:
        UserError: k is set, or the step is another than PCA whitening.
    """

    def __init__(self, pooling: Pooling, post: PostProcess | None) -> None:
        if post is not None and type(post) is not Whitening:
            raise UserError(
                f"analysis=dims takes whitening=pca or whitening=off, not {type(post).__name__}: "
                "only PCA whitening keeps the same first k directions whatever k is."
            )
        if isinstance(post, Whitening) and post.k is not None:
            raise UserError(
                f"analysis=dims scores every k, so whitening.k={post.k} would do nothing: leave it "
                "out, or leave analysis=dims out for that k alone."
            )
        self.pooling = pooling
        self.stages = ("rotated",) if post is None else ("rotated", "post")

    @property
    def needs(self) -> Needs:
        """What the head asks of the model."""
        return self.pooling.needs

    def plan(self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable) -> None:
        """See that the model has what the head needs, and say how long the curves will take."""
        plm.check(self.needs)
        self._protocol, self._table = protocol, table
        self._dim = int(plm.model.config.get_text_config().hidden_size)
        counts = table.fit_sets(protocol.fit_on)
        self._fit_sets, self._names = FitSets(counts), tuple(counts)
        self._rows_of = [len(rows) for rows in self._scored_rows().values()]
        self._gathered = Gathered(table)
        self._pairs = sum(len(s.pairs) for s in table.scored)
        log.info(
            "Every k up to the rank, at most %d, on %s pairs; directions fitted on %s. This takes "
            "about %.1f s of one core after the pass.",
            self._dim,
            f"{self._pairs:,}",
            protocol.describe_fit(table),
            SECONDS * self._dim * self._pairs,
        )

    def memory(self, lengths: Sequence[int]) -> int:
        """Bytes of vectors, maps, coordinates and cosines; chunks lessen only the first vectors.

        The vectors of all sentences are kept to the end, when all maps and coordinates are made.
        """
        vectors, square = 4 * len(self._table) * self._dim, 8 * self._dim**2
        maps = square * (2 * len(self._names) + 6)  # scatters, maps; what solving one takes
        coordinates = 8 * self._dim * (sum(self._rows_of) + 2 * max(self._rows_of))
        cosines = prefixes.memory(len(self.stages), self._dim, self._pairs)
        return vectors + maps + max(4 * len(lengths) * self._dim, coordinates + cosines)

    def start(self, table: SentenceTable) -> None:
        """Find the rows of a chunk in the whole table."""
        self._gathered.start(table)
        self._parts: list[tuple[Tensor, Tensor]] = []

    def update(self, rows: Tensor, states: States) -> None:
        """Pool some sentences of the chunk."""
        self._parts.append((rows, self.pooling(states)))

    def finish(self) -> None:
        """Keep the vectors, and take those not seen before into the moments of the fit sets.

        Raises:
            UserError: a vector is not finite; the message names its text.
        """
        for part, vectors in self._parts:
            rows, fresh = self._gathered.take(part, vectors)
            self._fit_sets.update(rows[fresh], vectors[fresh.to(vectors.device)])
        self._parts = []

    def tables(self) -> dict[str, Rows]:
        """Scores of every k (`dims`), and the best k of each task (`dims_best`).

        Rows of a set end at the effective rank of the vectors it is fitted on, rows of a mean at
        the lowest of its parts. The best k is chosen on the scored pairs themselves.

        Raises:
            UserError: a fit set cannot be fitted on; the message names it.
        """
        maps = self.maps()
        vectors = self._gathered.vectors
        raw = cosines(self._table, vectors, None, self._protocol)["raw"]
        before = {m: score_many(self._table.scored, [x[None] for x in raw], m) for m in MANY}
        return dim_rows.tables(
            before,
            self.curves(maps),
            ends=dim_rows.ends(self._table, maps, self._protocol.fit_on),
            dim=vectors.shape[1],
        )

    def maps(self) -> dict[str, Affine]:
        """The map onto every direction of each fit set.

        Raises:
            UserError: a fit set cannot be fitted on; the message names it.
        """
        return fit_each(Whitening(), self._fit_sets.finish(), self._names)

    def curves(self, maps: Mapping[str, Affine]) -> dict[tuple[str, str], list[Cell]]:
        """Scores of every k, (k,) in each cell, by stage and metric."""
        parts: dict[tuple[str, str], list[list[Cell]]] = {}
        for blocks in prefix_cosines(self._coordinates(maps)):
            for place, stage in enumerate(self.stages):
                predictions = [block[place] for block in blocks]
                for metric in MANY:
                    cells = score_many(self._table.scored, predictions, metric)
                    parts.setdefault((stage, metric), []).append(cells)
        return {key: [_joined(cells) for cells in zip(*p, strict=True)] for key, p in parts.items()}

    def _scored_rows(self) -> dict[str, NDArray[np.int64]]:
        """The rows of the pairs that each fit set serves, sorted."""
        pairs: dict[str, list[NDArray[np.int64]]] = {}
        for s in self._table.scored:
            name = self._table.fit_set_of(s, self._protocol.fit_on)
            pairs.setdefault(name, []).append(s.pairs.ravel())
        return {name: np.unique(np.concatenate(some)) for name, some in pairs.items()}

    def _coordinates(self, maps: Mapping[str, Affine]) -> list[Pairs]:
        """Whitened coordinates of the sentences of every scored set, zero for blank ones."""
        vectors = self._gathered.vectors
        table, fit_on, blank = self._table, self._protocol.fit_on, self._table.is_blank
        found: dict[str, tuple[NDArray[np.int64], Floats, Floats]] = {}
        for name, rows in self._scored_rows().items():
            affine = maps[name]
            x = torch.from_numpy(vectors[rows].astype(np.float64)).sub_(affine.mean)
            coordinates = (affine.basis.T @ x.T).numpy()
            coordinates[:, blank[rows]] = 0.0
            variances = 1 / (affine.basis**2).sum(0).numpy()
            scales = {"rotated": variances, "post": np.ones_like(variances)}
            found[name] = rows, coordinates, np.stack([scales[stage] for stage in self.stages])
        result = []
        for s in table.scored:
            rows, coordinates, scales_of = found[table.fit_set_of(s, fit_on)]
            result.append(Pairs(coordinates, scales_of, np.searchsorted(rows, s.pairs)))
        return result


def _joined(cells: Sequence[Cell]) -> Cell:
    """One cell from those of successive blocks of k."""
    return replace(cells[0], value=np.concatenate([cell.value for cell in cells]))
