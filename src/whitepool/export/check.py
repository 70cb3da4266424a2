"""An export read back: its vectors beside those of the encoder it was made from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from whitepool.errors import UserError
from whitepool.export.chain import float32_error
from whitepool.export.opening import sentence_transformer
from whitepool.similarity import unit

if TYPE_CHECKING:
    from whitepool.encoder import Encoder

PROBES = (
    "a",
    "The quick brown fox jumps over the lazy dog, twice.",
    "  Zwölf Boxkämpfer 狐狸 42 % ",
    "What is being asked?",
)
LONG = 512  # tokens; a text over a larger limit takes too much time and memory
COMPONENTS = 1e-4  # of the largest; what vectors of an export may differ by
COSINES = 1e-5


def check(encoder: Encoder, folder: Path) -> None:
    """See that an export gives the encoder's vectors.

    Where the encoder's own vectors depend on the batch by more than the limits, since its map
    magnifies rounding (`whitepool.export.chain.float32_error`), that much is allowed.

    Raises:
        UserError: it does not.
    """
    texts = list(PROBES)
    if encoder.max_length <= LONG and encoder.pooled.long_text != "error":
        texts.append(" ".join(f"{PROBES[1]} {i}" for i in range(encoder.max_length // 4)))
    affine = encoder.recipe().affine
    noise = 0.0 if affine is None else float32_error(affine)
    model = sentence_transformer(folder, device=str(encoder.device))
    for prompt in dict.fromkeys(("", encoder.prompts.query, encoder.prompts.document)):
        ours = encoder.vectors_of(texts, prompt=prompt, shortened=lambda _: None)
        theirs = model.encode(texts, prompt=prompt, show_progress_bar=False)
        compare(ours, np.asarray(theirs), noise)


def compare(ours: NDArray[np.float32], theirs: NDArray[np.float32], noise: float = 0.0) -> None:
    """See that vectors, (text, dim) each, are the same up to rounding, and up to ``noise``.

    Raises:
        UserError: they are not.
    """
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    limits = max(COMPONENTS, 10 * noise), max(COSINES, noise)
    components = np.abs(a - b).max() / np.abs(a).max()
    cosines = np.abs(_cosines(a) - _cosines(b)).max()
    if not (components <= limits[0] and cosines <= limits[1]):
        raise UserError(
            f"sentence-transformers gives other vectors: components differ by {components:.1g} of "
            f"the largest and cosines by {cosines:.1g}, over {limits[0]:.1g} and {limits[1]:.1g}, "
            "so nothing is exported."
        )


def _cosines(x: NDArray[np.float64]) -> NDArray[np.float64]:
    u = unit(x)
    cosines: NDArray[np.float64] = u @ u.T
    return cosines
