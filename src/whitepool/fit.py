"""A map fitted on moments, what the moments are of, and what their spectrum says."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whitepool.moments import Moments
from whitepool.spectrum import SHARES, Spectrum
from whitepool.whitening import Map, PostProcess

log = logging.getLogger(__name__)

PER_DIMENSION = 3


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted map and what it was fitted on.

    Attributes:
        fitted: the map.
        spectrum: of the vectors' covariance.
        corpora: what was read, see `Reading.describe`; moments merged in come first.
        seconds: of the pass over the corpus.
    """

    fitted: Map
    spectrum: Spectrum
    corpora: tuple[dict[str, Any], ...]
    seconds: float

    @property
    def words(self) -> str:
        """What it was fitted on, in words."""
        parts = [
            f"{corpus['texts']:,} texts of corpus {corpus['corpus']}" for corpus in self.corpora
        ]
        return " and ".join(parts)

    def metrics(self) -> dict[str, float]:
        """Numbers for a logger."""
        s = self.spectrum
        result = {"count": s.count, "rank": float(s.rank), "condition": s.condition}
        for share, n in zip(SHARES, s.directions, strict=True):
            result[f"directions_{100 * share:g}"] = float(n)
        return result


def provenance_of(corpora: Sequence[Mapping[str, Any]]) -> dict[str, str | int]:
    """What a recipe keeps of the corpora it was fitted on, as plain values."""
    result: dict[str, str | int] = {}
    for number, corpus in enumerate(corpora, start=1):
        prefix = "corpus" if len(corpora) == 1 else f"corpus_{number}"
        result |= {
            prefix: corpus["corpus"],
            f"{prefix}_texts": corpus["texts"],
            f"{prefix}_sha256": corpus["sha256"],
        }
    return result


def fit_moments(
    post: PostProcess,
    moments: Moments,
    corpora: Sequence[dict[str, Any]],
    seconds: float,
    fitted: Map | None = None,
) -> Fit:
    """Fit on moments; warns where there are fewer than three texts for each dimension.

    What has been fitted already, on the vectors of these moments, is given as ``fitted``.

    Raises:
        UserError: nothing can be fitted on them.
    """
    spectrum = Spectrum.of(moments)
    # Of fewer texts than dimensions the step itself warns.
    if spectrum.rank + 1 < spectrum.count < PER_DIMENSION * spectrum.dim:
        log.warning(
            "%s texts are few for %d dimensions: the small directions are mostly noise on other "
            "texts; give %s or more, or keep few with whitening.k=.",
            f"{spectrum.count:,.0f}",
            spectrum.dim,
            f"{PER_DIMENSION * spectrum.dim:,}",
        )
    fitted = fitted or post.fit(moments, "corpus")
    return Fit(fitted, spectrum, tuple(corpora), seconds)
