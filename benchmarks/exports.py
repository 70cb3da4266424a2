"""Exports beside the SentenceTransformer of their base, and beside whitepool itself.

What is asked: do the modules of an export slow sentence-transformers, and does loading one?
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import whitepool
from benchmarks import rounds

RECIPES: dict[str, dict[str, Any]] = {
    "avg, whitened": {"pooling": "avg", "whitening": "pca"},
    "first_last, whitened": {"pooling": "first_last", "whitening": "pca"},
    "ditto, whitened": {"pooling": "ditto", "block": 0, "head": 0, "whitening": "pca"},
}
BASE = "its base"


def measure(
    folder: Path, texts: Sequence[str], work: Path, *, times: int, batch_size: int
) -> dict[str, list[float]]:
    """Seconds of loading and of encoding, (round,) by name.

    Args:
        folder: the model.
        texts: what is encoded, and fitted on before.
        work: where exports go.
        times: rounds.
        batch_size: of sentence-transformers.
    """
    from sentence_transformers import SentenceTransformer

    def base() -> Any:
        return SentenceTransformer(str(folder), device="cpu")

    opened: dict[str, Callable[[], Any]] = {BASE: base}
    runs: dict[str, rounds.Run] = {}
    for name, options in RECIPES.items():
        encoder = whitepool.load(folder, device="cpu", **options).fit(texts)
        export = encoder.export(work / f"export-{name}")
        opened[name] = partial(whitepool.sentence_transformer, export, device="cpu")
        runs[f"{name}: Encoder.encode"] = partial(encoder.encode, texts)
    models = {name: make() for name, make in opened.items()}
    for name, model in models.items():
        runs[name] = partial(
            model.encode, list(texts), batch_size=batch_size, show_progress_bar=False
        )
    loads = {f"{name}: load": make for name, make in opened.items()}
    return rounds.alternate({**runs, **loads}, times)


def rows(seconds: dict[str, list[float]]) -> list[dict[str, str]]:
    """A line for each export: how many times as long as its base, round by round."""
    found = []
    for name in RECIPES:
        encoded, loaded, ours = (seconds[f"{name}{x}"] for x in ("", ": load", ": Encoder.encode"))
        found.append(
            {
                "recipe": name,
                "encode, times its base": rounds.spread(rounds.ratios(encoded, seconds[BASE])),
                "load, times its base": rounds.spread(
                    rounds.ratios(loaded, seconds[f"{BASE}: load"])
                ),
                "encode, times Encoder.encode": rounds.spread(rounds.ratios(encoded, ours)),
            }
        )
    return found
