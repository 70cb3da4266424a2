"""What vectors and moments depend on, as JSON: two runs with the same content may share them.

Token ids stand for texts, tokenizer and maximum length alike. What differs in rounding alone
(number of threads, model of the processor) is left out.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import whitepool
from whitepool.data.table import SentenceTable
from whitepool.plm import FrozenPLM
from whitepool.reuse import FORMAT, digest, fingerprint
from whitepool.states import resolve_layer

Content = dict[str, Any]
PACKAGES = ("whitepool", "torch", "transformers")


def why_unknown(plm: FrozenPLM, head: Mapping[str, Any]) -> str:
    """What keeps vectors from having an identity, in words; empty where they have one."""
    if not plm.provenance["sha256"] and not is_commit(plm.provenance["revision"]):
        return f"the revision of model {plm.name} is not known"
    foreign = [name for name in _targets(head) if not name.startswith("whitepool.")]
    return f"{foreign[0]} is no part of whitepool, and may change unseen" if foreign else ""


def vectors_from(
    plm: FrozenPLM,
    head: Mapping[str, Any],
    table: SentenceTable,
    batches: Sequence[Sequence[int]],
    *,
    device: str,
) -> Content:
    """What the vectors of a table depend on.

    Args:
        plm: the model; a local folder counts by its weights and configuration, not by its name.
        head: the arguments of the pooling head, classes included.
        table: the sentences, and the files they were read from.
        batches: rows of each batch.
        device: type of device, ``cpu`` or ``cuda``.
    """
    provenance = plm.provenance
    source = ("sha256",) if provenance["sha256"] else ("id", "revision")
    config = json.loads(plm.model.config.to_json_string(use_diff=False))
    for name in ("_name_or_path", "transformers_version"):
        config.pop(name, None)
    sets = [s for task in table.tasks for s in (*task.scored, *task.other_splits)]
    return {
        "format": FORMAT,
        "kind": "vectors",
        "model": {key: provenance[key] for key in (*source, "format", "dtype")},
        "model_config": digest(config),
        "pooling": _resolved(head, plm.depth),
        "data": [s.sha256 for s in sets],
        "sentences": len(table),
        "token_ids": _ids_sha256(table),
        "batches": digest([list(batch) for batch in batches]),
        "device": device,
        "matmul_precision": torch.get_float32_matmul_precision(),
        "software": software(),
    }


def moments_from(
    vectors: NDArray[np.float32],
    counts: Mapping[str, NDArray[np.int64]],
    batches: Sequence[Sequence[int]],
    *,
    device: str,
) -> Content:
    """What the moments of fit sets depend on: the very vectors, and how often each counts."""
    return {
        "format": FORMAT,
        "kind": "moments",
        "vectors": fingerprint({"vectors": vectors}),
        "fit_sets": {name: fingerprint({"counts": count}) for name, count in counts.items()},
        "batches": digest([list(batch) for batch in batches]),
        "device": device,
        "software": software(),
    }


@functools.cache
def software() -> Content:
    """Versions, and a checksum of this package's source, which changes without a new version."""
    folder = Path(whitepool.__file__).parent
    code = hashlib.sha256()
    for path in sorted(p for ending in ("*.py", "*.c") for p in folder.rglob(ending)):
        code.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return {**{name: version(name) for name in PACKAGES}, "code": code.hexdigest()}


def is_commit(revision: str | None) -> bool:
    """Whether a revision is a commit, whose content never changes."""
    return bool(revision and re.fullmatch(r"[0-9a-f]{40}", revision))


def _targets(recipe: Any) -> Iterator[str]:
    """Every class that a head's arguments name."""
    if isinstance(recipe, Mapping):
        for key, value in recipe.items():
            if key == "_target_":
                yield str(value)
            yield from _targets(value)


def _resolved(head: Mapping[str, Any], depth: int) -> Content:
    """The head's arguments with layers counted from the embedding output."""
    layers = head.get("layers")
    if layers is None:
        return dict(head)
    return {**head, "layers": [resolve_layer(layer, depth) for layer in layers]}


def _ids_sha256(table: SentenceTable) -> str:
    lengths = np.array([len(ids) for ids in table.ids], dtype=np.int64)
    flat = np.fromiter((i for ids in table.ids for i in ids), np.int64, int(lengths.sum()))
    return fingerprint({"lengths": lengths, "ids": flat})
