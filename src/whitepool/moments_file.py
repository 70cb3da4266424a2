"""Moments on disk, to be merged and continued later: a safetensors file with their provenance.

Arrays ``count``, ``mean``, ``scatter`` in float64, and one JSON object of metadata. What the
vectors are (model, pooling, maximum length) is its ``vectors``: moments of two kinds of vectors do
not add up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from whitepool.arrays_file import opened
from whitepool.errors import UserError
from whitepool.moments import Moments
from whitepool.whole_file import beside

SCHEMA = 1
AGAIN = "make the file again"
CORPUS = {"corpus": str, "texts": int, "sha256": str}  # what is read of a corpus


def save_moments(path: Path, moments: Moments, provenance: Mapping[str, Any]) -> None:
    """Write moments and what they are of; the file is whole or absent.

    Args:
        path: ends in ``.safetensors``.
        moments: what was seen.
        provenance: anything JSON can hold; `merged` reads ``vectors`` and ``corpora``.
    """
    from safetensors.torch import save_file

    arrays = {
        "count": torch.tensor([moments.count], dtype=torch.float64),
        "mean": moments.mean.cpu().contiguous(),
        "scatter": moments.scatter.cpu().contiguous(),
    }
    content = {"schema": SCHEMA, "kind": "moments", **provenance}
    with beside(path) as partial:
        save_file(arrays, partial, metadata={"whitepool": json.dumps(content)})


def load_moments(path: Path) -> tuple[Moments, dict[str, Any]]:
    """Read what `save_moments` wrote, bit for bit: moments and provenance.

    Raises:
        UserError: no such file, not a safetensors file (a pickle is never opened), not one of
            ours, or arrays that are no moments.
    """
    if path.suffix != ".safetensors":
        raise UserError(f"{path} is not a .safetensors file; pickles and the like are not read.")
    if not path.is_file():
        raise UserError(f"there is no moments file {path}: check resume_from=.")
    with opened(path, "moments", SCHEMA, kind="moments", again=AGAIN, framework="pt") as found:
        file, content = found
        _check_provenance(content)
        count, mean, scatter = (file.get_tensor(k) for k in ("count", "mean", "scatter"))
    dim = mean.numel()
    shapes = (tuple(count.shape), tuple(mean.shape), tuple(scatter.shape))
    arrays = (count, mean, scatter)
    if shapes != ((1,), (dim,), (dim, dim)) or any(a.dtype != torch.float64 for a in arrays):
        raise UserError(f"{path} holds arrays of shapes {shapes}, which are no moments: {AGAIN}.")
    if count.item() < 0 or not all(a.isfinite().all() for a in arrays):
        raise UserError(f"{path} holds moments that are not finite, or a count < 0: {AGAIN}.")
    moments = Moments(dim)
    moments.count, moments.mean, moments.scatter = count.item(), mean, scatter
    return moments, content


def _check_provenance(content: Mapping[str, Any]) -> None:
    """Raises ValueError where what `merged` and its callers read is of another form."""
    corpora = content.get("corpora", [])
    if not isinstance(content.get("vectors", {}), dict):
        raise ValueError("its vectors are not described by a mapping")
    if not isinstance(corpora, list) or not all(
        isinstance(c, dict) and [type(c.get(k)) for k in CORPUS] == list(CORPUS.values())
        for c in corpora
    ):
        raise ValueError("its corpora are not described by a list of mappings")


def merged(
    paths: Sequence[Path], vectors: Mapping[str, Any], dim: int | None = None
) -> tuple[Moments, list[dict[str, Any]]]:
    """The moments of several files together, and the corpora they are of.

    Args:
        paths: at least one.
        vectors: what the vectors must be, as in the files' ``vectors``.
        dim: number of dimensions they must have, where it is known.

    Raises:
        UserError: a file is of other vectors; the message names what differs.
    """
    total: Moments | None = None
    corpora: list[dict[str, Any]] = []
    for path in paths:
        moments, content = load_moments(path)
        found = content.get("vectors", {})
        for key in sorted({*vectors, *found}):
            if vectors.get(key) != found.get(key):
                raise UserError(
                    f"{path} has moments of other vectors: {key} is {_short(found.get(key))} there "
                    f"and {_short(vectors.get(key))} here; give the same, or leave the file out."
                )
        wanted = dim if total is None else total.dim
        if wanted is not None and moments.dim != wanted:
            raise UserError(
                f"{path} has moments of {moments.dim} dimensions where the others have {wanted}."
            )
        total = Moments(moments.dim) if total is None else total
        total.merge(moments)
        corpora.extend(content.get("corpora", []))
    if total is None:
        raise UserError("resume_from is empty: give at least one moments file.")
    return total, corpora


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"
