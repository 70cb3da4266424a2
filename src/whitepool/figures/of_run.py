"""Which figures one scored recipe gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from whitepool.data.table import SentenceTable
from whitepool.figures import cosines, recipes, spectrum, tokens
from whitepool.fitting import FitSets
from whitepool.inputs import Inputs
from whitepool.moments import Moments
from whitepool.pooling import FirstToken, LastToken, LinearPooling, Uniform
from whitepool.protocol import EvalProtocol
from whitepool.scores import Scores
from whitepool.scores import cosines as cosines_of
from whitepool.spectrum import effective_rank, eigenvalues
from whitepool.token_weights import Weighed, weigh
from whitepool.whitening import Map

PAIRS = 2000  # pairs of each set in the histograms
CHUNK = 8192  # vectors taken into moments at a time
STRIPS = 5  # sentences whose token weights are shown
SHORT, LONG = 6, 24  # tokens they have


def drawings(
    inputs: Inputs,
    vectors: NDArray[np.float32],
    maps: Mapping[str, Map] | None,
    scores: Scores,
    pooling: str,
    post: str,
) -> dict[str, Callable[[], Figure]]:
    """What draws each figure, by its name.

    Args:
        inputs: what was scored.
        vectors: (row, dim), before any map.
        maps: map of each fit set, None for none.
        scores: what came of it.
        pooling: name of the head, for titles.
        post: what the map is called.
    """
    table, protocol = inputs.table, inputs.protocol
    title = f"{inputs.plm.name}, {pooling}"
    names = ", ".join(dict.fromkeys(s.task for s in table.scored))
    found: dict[str, Callable[[], Figure]] = {
        "scores": lambda: recipes.scores(
            recipes.lines("", [asdict(row) for row in scores.rows], protocol.aggregate, post),
            f"{title}, protocol {protocol.name}",
        ),
        "cosines": lambda: cosines.histograms(
            beside_random(table, vectors, maps, protocol), f"{title}: {names}", post
        ),
        "spectrum": lambda: spectrum.spectrum(spectra(table, vectors, protocol), title),
    }
    weighs = isinstance(inputs.pooling, LinearPooling) and not isinstance(
        inputs.pooling.tokens, Uniform | FirstToken | LastToken
    )
    if weighs:
        found["token_weights"] = lambda: tokens.strips(weighed(inputs), title)
    return found


def beside_random(
    table: SentenceTable,
    vectors: NDArray[np.float32],
    maps: Mapping[str, Map] | None,
    protocol: EvalProtocol,
) -> dict[str, cosines.Cosines]:
    """Cosines of scored pairs, and of their sentences put together at random."""
    draw = np.random.default_rng(0)
    some = []
    for s in table.scored:
        pairs = s.related
        drawn = np.sort(draw.permutation(len(pairs))[:PAIRS])
        some.append(replace(s, pairs=pairs[drawn], ranking=None))
    mixed = [
        replace(s, pairs=np.column_stack([s.pairs[:, 0], draw.permutation(s.pairs[:, 1])]))
        for s in some
    ]
    scored, random = (
        cosines_of(replace(table, scored=tuple(sets)), vectors, maps, protocol)
        for sets in (some, mixed)
    )
    return {
        stage: cosines.Cosines(np.concatenate(values), np.concatenate(random[stage]))
        for stage, values in scored.items()
    }


def spectra(
    table: SentenceTable, vectors: NDArray[np.float32], protocol: EvalProtocol
) -> dict[str, spectrum.Eigenvalues]:
    """The spectrum of each fit set's vectors; of each task's where the map is from elsewhere."""
    fit_on = "task" if protocol.fit_on == "corpus" else protocol.fit_on
    sets = FitSets(table.fit_sets(fit_on))
    for start in range(0, len(vectors), CHUNK):
        part = torch.from_numpy(vectors[start : start + CHUNK])
        sets.update(torch.arange(start, start + len(part)), part)
    found = {name: moments for name, moments in sets.finish().items() if moments.count > 1}
    return {name: of_moments(moments) for name, moments in found.items()}


def of_moments(moments: Moments) -> spectrum.Eigenvalues:
    """The spectrum of the covariance; costs O(dim^3)."""
    values = eigenvalues(moments)
    return spectrum.Eigenvalues(values.cpu().numpy(), effective_rank(values))


def weighed(inputs: Inputs) -> list[Weighed]:
    """The first sentences of a length that can be shown, and what the head makes of them."""
    rows = [row for row, ids in enumerate(inputs.table.ids) if SHORT <= len(ids) <= LONG]
    return weigh(inputs.plm, inputs.pooling, [inputs.table.ids[row] for row in rows[:STRIPS]])
