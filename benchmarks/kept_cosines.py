"""Cosines of a head through every map, kept on disk, so that a long table is made in pieces.

A folder holds one file for each head, and belongs to one state of the code: nothing in it says
which, so a change of a head or map asks for a new folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from whitepool.errors import UserError

Cosines = list[NDArray[np.float64]]


def save(folder: Path, head: str, found: Mapping[tuple[str, str], Cosines]) -> None:
    """Keep the cosines of a head, one array (pair,) for each map and scored set."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{step}/{number}": values
        for (name, step), sets in found.items()
        if name == head
        for number, values in enumerate(sets)
    }
    partial = folder / f".{_file(head)}.partial"
    save_file(arrays, partial)
    partial.replace(folder / _file(head))


def load(
    folder: Path, heads: Sequence[str], pairs: Sequence[int]
) -> dict[tuple[str, str], Cosines]:
    """The cosines that are kept of these heads, by head and map.

    Args:
        folder: where `save` kept them, if it is there.
        heads: of the table.
        pairs: how many each scored set has.

    Raises:
        UserError: a file with other numbers of pairs.
    """
    from safetensors.numpy import load_file

    found: dict[tuple[str, str], Cosines] = {}
    for head in heads:
        path = folder / _file(head)
        if not path.exists():
            continue
        arrays = load_file(path)
        for step in sorted({name.rpartition("/")[0] for name in arrays}):
            sets = [arrays[f"{step}/{number}"] for number in range(len(pairs))]
            if [len(values) for values in sets] != list(pairs):
                raise UserError(
                    f"{path} has cosines of {', '.join(str(len(v)) for v in sets)} pairs and the "
                    f"data have {', '.join(map(str, pairs))}: give --keep another folder."
                )
            found[head, step] = sets
    return found


def _file(head: str) -> str:
    return head.replace(" ", "_") + ".safetensors"
