"""Raw and whitened scores of many mixes of several vectors per sentence, kept chunk by chunk.

What `analysis=layers` and `analysis=table1` share: vectors in slots, mixes of slots, and values per
pair that outlive a chunk of sentences while the vectors do not. The vectors of a fit set that does
not fit into one chunk wait on disk until its last sentence has come.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from whitepool.aggregates import Cell
from whitepool.analysis.grams import Mix, design, mix_cosines, products
from whitepool.analysis.scoring import score_many
from whitepool.analysis.whitened import STEP, Part, gather, whitened_cosines
from whitepool.data.table import ScoredSet, SentenceTable
from whitepool.errors import UserError
from whitepool.protocol import EvalProtocol
from whitepool.whitening import PostProcess

log = logging.getLogger(__name__)

Floats = NDArray[np.float64]
BLOCK = 2**20  # cosines computed at a time by a thread


@dataclass(eq=False)
class _Set:
    """What is known of a scored set so far: each list has one array for each chunk."""

    scored: ScoredSet
    gold: list[Floats] = field(default_factory=list)  # (pair,)
    grams: list[Floats] = field(default_factory=list)  # (3, product, pair)
    post: list[Floats] = field(default_factory=list)  # (mix, pair)


class Mixes:
    """Keeps vectors in slots during a chunk, and scores mixes of them.

    Args:
        slots: names of the slots, for messages.
        dim: dimensions of the vectors.
        raw: the mixes to score as they are.
        whitened: the mixes to score whitened.
        post: what is fitted, None where nothing is whitened.
        protocol: says on which sentences.
        table: all sentences and pairs.
    """

    def __init__(
        self,
        slots: Sequence[str],
        dim: int,
        *,
        raw: Sequence[Mix],
        whitened: Sequence[Mix],
        post: PostProcess | None,
        protocol: EvalProtocol,
        table: SentenceTable,
    ) -> None:
        self.slots, self.dim = tuple(slots), dim
        self.raw, self.post = list(raw), post
        self.whitened = list(whitened) if post is not None else []
        self.fit_on, self.table = protocol.fit_on, table
        self.sets = {s.name: _Set(s) for s in table.scored}
        self.pairs = sum(len(s.pairs) for s in table.scored)
        counts = table.fit_sets(self.fit_on) if self.whitened else {}
        self.awaited = {name: int(count.sum()) for name, count in counts.items()}
        self.awaited_pairs = dict.fromkeys(counts, 0)
        for s in table.scored if counts else ():
            self.awaited_pairs[table.fit_set_of(s, self.fit_on)] += len(s.pairs)
        self.parts: dict[str, list[Part]] = {name: [] for name in counts}
        self.ranks: list[int] = []
        self.crossed = any(len(mix) > 1 for mix in self.whitened)
        self._disk: tempfile.TemporaryDirectory[str] | None = None

    def memory(self, sentences: int) -> int:
        """Bytes for a chunk of so many sentences, and for the values of all pairs."""
        slots, dim = len(self.slots), self.dim
        squares = slots * (slots + 1) // 2
        kept = 8 * self.pairs * (3 * squares + len(self.whitened))
        most = torch.get_num_threads() * max(BLOCK, self.pairs)
        scoring = 2 * kept + 8 * 6 * min(most, self.pairs * len(self.raw))
        own = 4 * sentences * slots * dim
        step = 8 * 3 * min(STEP, sentences) * slots * dim
        if self.whitened:  # a fit set's own vectors; moments and maps; mixed and mapped vectors
            kept_blocks = squares if self.crossed else slots
            own += own + 8 * (kept_blocks + 8) * dim * dim + 8 * 5 * sentences * dim
        return kept + max(own + step, scoring)

    def start(self, table: SentenceTable) -> None:
        """Begin a chunk."""
        self._chunk = table
        self._vectors = np.zeros((len(table), len(self.slots), self.dim), dtype=np.float32)

    def update(self, rows: Tensor, vectors: Tensor) -> None:
        """Keep the vectors, (sentence, slot, dim), of some rows, (sentence,), of the chunk.

        Raises:
            UserError: a vector is not finite.
        """
        at, values = rows.cpu().numpy(), vectors.cpu().numpy()
        if not np.isfinite(values).all():
            row = at[~np.isfinite(values).all((1, 2))][0]
            raise UserError(
                f"the vector of {self._chunk.texts[row][:60]!r} is not finite: use "
                "trainer.precision=32-true, or look for a fault in the model's weights."
            )
        self._vectors[at] = values

    def finish(self) -> None:
        """Turn vectors into values per pair.

        Raises:
            UserError: a fit set cannot be fitted on; the message names it.
        """
        for s in self._chunk.scored:
            of_set = self.sets[s.name]
            of_set.gold.append(s.gold)
            of_set.grams += self._grams(s.pairs)
        if self.whitened:
            for name, counts in self._chunk.fit_sets(self.fit_on).items():
                self._take_part(name, counts)
        self._vectors = np.zeros((0, len(self.slots), self.dim), dtype=np.float32)

    def _grams(self, pairs: NDArray[np.int64]) -> list[Floats]:
        """Products of the first and second sentences, the first, and the second alone."""
        result = []
        for start in range(0, len(pairs), STEP):
            some = pairs[start : start + STEP].T
            a, b = (torch.from_numpy(self._vectors[rows].astype(np.float64)) for rows in some)
            result.append(np.stack([products(a, b), products(a, a), products(b, b)]))
        return result

    def _take_part(self, name: str, counts: NDArray[np.int64]) -> None:
        """Add the chunk's share of a fit set, and whiten the set once it is whole."""
        mine = [s for s in self._chunk.scored if self._chunk.fit_set_of(s, self.fit_on) == name]
        used = counts > 0
        for s in mine:
            used[s.pairs] = True
        place = np.cumsum(used) - 1
        part = Part(
            self._vectors if used.all() else self._vectors[used],
            counts[used],
            {s.name: place[s.pairs] for s in mine},
        )
        parts = self.parts[name]
        parts.append(part)
        pairs = sum(len(of_set) for p in parts for of_set in p.pairs.values())
        if (
            pairs < self.awaited_pairs[name]
            or sum(int(p.counts.sum()) for p in parts) < self.awaited[name]
        ):
            parts[-1] = replace(part, vectors=self._on_disk(part.vectors))
            return
        assert self.post is not None
        try:
            moments = gather(parts, crossed=self.crossed)
            found: dict[str, list[Floats]] = {}
            for affine, cosines in whitened_cosines(parts, moments, self.whitened, self.post):
                self.ranks.append(affine.rank)
                for key, values in cosines.items():
                    found.setdefault(key, []).append(values)
        except UserError as error:
            raise UserError(f"fit set {name}: {error}") from error
        for key, of_mixes in found.items():
            self.sets[key].post.append(np.stack(of_mixes))
        parts.clear()

    def _on_disk(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        self._disk = self._disk or tempfile.TemporaryDirectory(prefix="whitepool-")
        path = Path(self._disk.name) / f"{len(list(Path(self._disk.name).iterdir()))}.npy"
        np.save(path, vectors)
        mapped: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped

    def scores(self) -> Iterator[tuple[str, Sequence[Mix], list[Cell]]]:
        """Stage, some mixes, and their scores, until all are done."""
        sets = [replace(s.scored, gold=np.concatenate(s.gold)) for s in self.sets.values()]
        grams = [np.concatenate(s.grams, axis=2) for s in self.sets.values()]
        for mixes, scores in score_mixes(sets, grams, self.raw, len(self.slots)):
            yield "raw", mixes, scores
        if self.whitened:
            post = [np.concatenate(s.post, axis=1) for s in self.sets.values()]
            yield "post", self.whitened, score_many(sets, post)
            self._tell_ranks()
        if self._disk:
            self._disk.cleanup()

    def _tell_ranks(self) -> None:
        """One word on effective ranks, where a single run has one for each fit set."""
        short = [rank for rank in self.ranks if rank < self.dim]
        if short:
            low, high = min(short), max(short)
            log.warning(
                "%d of %d whitened covariances are not of full rank: they span %s of %d "
                "dimensions, and directions without variance are dropped.",
                len(short), len(self.ranks), low if low == high else f"{low} to {high}", self.dim,
            )  # fmt: skip


def score_mixes(
    sets: Sequence[ScoredSet], grams: Sequence[Floats], mixes: Sequence[Mix], slots: int
) -> Iterator[tuple[Sequence[Mix], list[Cell]]]:
    """Raw scores of mixes, some at a time, from the ``grams`` (3, product, pair) of each set."""
    step = max(1, torch.get_num_threads() * BLOCK // sum(len(s.gold) for s in sets))
    together = np.concatenate(grams, axis=2)
    ends = np.cumsum([len(s.gold) for s in sets])[:-1]
    for start in range(0, len(mixes), step):
        block = mixes[start : start + step]
        # One large product for all sets: the matrix library's threads idle away small ones.
        cosines = mix_cosines(design(block, slots), *together)
        yield block, score_many(sets, np.split(cosines, ends, axis=1))
