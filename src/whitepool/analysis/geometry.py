"""`analysis=geometry`: how the vectors lie in space before and after the map, and what is weighed.

Measures are those of `whitepool.geometry`, of the unique sentences of each scored set, raw and
post-processed, with the Spearman of the same stage beside them; `weights.csv` says how closely the
token weights of the head and of every attention diagonal follow tf-idf.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.aggregates import Floats, aggregate
from whitepool.analysis.base import Rows
from whitepool.analysis.gathered import Gathered
from whitepool.analysis.measured import MEASURES
from whitepool.analysis.scoring import score_many
from whitepool.analysis.tfidf import TokenStatistics, WeightCorrelations
from whitepool.data.table import SentenceTable
from whitepool.fitting import FitSets, fit_each
from whitepool.geometry import alignment, anisotropy, entropy_rank, isoscore, uniformity
from whitepool.moments import Moments
from whitepool.plm import FrozenPLM
from whitepool.pooling import LinearPooling, Pooling
from whitepool.protocol import EvalProtocol
from whitepool.similarity import cosine
from whitepool.states import Needs, States
from whitepool.whitening import Affine, PostProcess

log = logging.getLogger(__name__)

SAMPLE = 5000  # sentences that uniformity is taken of, at most
POSITIVE = 0.8  # of the highest gold score: from there on a pair means the same


class GeometryGrid:
    """Geometry of one head's vectors, raw and post-processed.

    Args:
        pooling: the head, of any kind.
        post: the map, None for raw vectors alone.
        seed: of the sample that uniformity is taken of where a set has more than 5,000 sentences.
    """

    def __init__(self, pooling: Pooling, post: PostProcess | None, seed: int = 0) -> None:
        self.pooling, self.post, self.seed = pooling, post, seed
        self._diagonals: tuple[tuple[int, int], ...] = ()

    @property
    def needs(self) -> Needs:
        """What the head asks of the model, and every attention diagonal; read after `plan`."""
        return self.pooling.needs | Needs(diagonals=self._diagonals)

    def plan(self, plm: FrozenPLM, protocol: EvalProtocol, table: SentenceTable) -> None:
        """See that the model has what the head needs."""
        self._diagonals = tuple((b, h) for b in range(plm.depth) for h in range(plm.heads))
        plm.check(self.needs)
        self._protocol, self._table = protocol, table
        self._dim = int(plm.model.config.get_text_config().hidden_size)
        self._linear = self.pooling.tokens if isinstance(self.pooling, LinearPooling) else None
        chosen = [] if self._linear is None else [None]
        names = [*chosen, *self._diagonals]
        self._weights = WeightCorrelations(TokenStatistics(plm, table), names)
        self._gathered = Gathered(table)

    def memory(self, lengths: Sequence[int]) -> int:
        """Bytes of the vectors and of every token's weights; chunks do not lessen their sum."""
        return 4 * (len(lengths) * self._dim + sum(lengths) * (len(self._diagonals) + 2))

    def start(self, table: SentenceTable) -> None:
        """Find the rows of a chunk in the whole table."""
        self._gathered.start(table)

    def update(self, rows: Tensor, states: States) -> None:
        """Pool some sentences of the chunk, and keep the weights of those not seen before.

        Raises:
            UserError: a vector is not finite; the message names its text.
        """
        _, fresh = self._gathered.take(rows, self.pooling(states))
        if fresh.all():
            self._weights.update(states, None if self._linear is None else self._linear(states))

    def finish(self) -> None:
        """Nothing: all is measured when everything is there."""

    def tables(self) -> dict[str, Rows]:
        """``geometry``: a row for each set, stage and measure; ``weights``: one for each weighting.

        Raises:
            UserError: a fit set cannot be fitted on; the message names it.
        """
        sets = self._table.scored
        several = {s.task: np.full(len(MEASURES), np.nan) for s in sets if s.subset}
        rows: Rows = []
        for stage, places in self._stages().items():
            own = [self._measures(x, p, s.gold) for (x, p), s in zip(places, sets, strict=True)]
            # Sub-tasks put together have no geometry: each may have a map of its own.
            for cell in aggregate(sets, own, several):
                if cell.subset or cell.aggregate == "mean":
                    rows += [cell.row(i, stage, name) for i, name in enumerate(MEASURES)]
            cosines = [cosine(x, pairs)[None] for x, pairs in places]
            rows += [cell.row(0, stage) for cell in score_many(sets, cosines)]
        return {"geometry": rows, "weights": self._weights.rows()}

    def _stages(self) -> dict[str, list[tuple[Floats, NDArray[np.int64]]]]:
        """By stage, the vectors of each set's unique sentences, (n, dim), and pairs of their rows.

        Vectors of blank sentences are zero in every stage.
        """
        vectors = self._gathered.vectors
        table, fit_on, blank = self._table, self._protocol.fit_on, self._table.is_blank
        maps: dict[str, Affine] = {}
        if self.post is not None:
            counts = table.fit_sets(fit_on)
            fit_sets = FitSets(counts)
            fit_sets.update(torch.arange(len(table)), torch.from_numpy(vectors))
            maps = fit_each(self.post, fit_sets.finish(), counts)
        stages: dict[str, list[tuple[Floats, NDArray[np.int64]]]] = {"raw": []}
        for s in table.scored:
            rows, local = np.unique(s.pairs, return_inverse=True)
            local = local.reshape(s.pairs.shape)
            raw = vectors[rows].astype(np.float64)
            stages["raw"].append((raw, local))
            if maps:
                post = maps[table.fit_set_of(s, fit_on)](torch.from_numpy(raw)).numpy()
                post[blank[rows]] = 0.0
                stages.setdefault("post", []).append((post, local))
        return stages

    def _measures(self, x: Floats, pairs: NDArray[np.int64], gold: Floats) -> Floats:
        """Values of `MEASURES` of vectors, (n, dim), and of pairs of their rows."""
        filled = np.abs(x).max(1) > 0
        some = x[filled]
        if len(some) < 2:
            return np.full(len(MEASURES), np.nan)
        drawn = np.random.default_rng(self.seed).permutation(len(some))[:SAMPLE]
        covariance = Moments(x.shape[1]).update(torch.from_numpy(some)).covariance()
        variances = torch.linalg.eigvalsh(covariance).clamp(min=0)
        same = pairs[(gold >= POSITIVE * gold.max()) & filled[pairs].all(1)]
        return np.array(
            [
                anisotropy(some),
                uniformity(some[drawn]),
                alignment(x, same),
                isoscore(covariance.numpy()),
                entropy_rank(variances.numpy()),
            ]
        )
