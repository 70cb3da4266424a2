"""What a run scored its sets by, kept in predictions.safetensors to compare runs pair by pair.

Arrays ``N.gold`` and ``N.STAGE`` in float64 for set number N, and one JSON object of metadata that
names the sets. Stages are ``raw`` and ``post``; see `whitepool.scores.cosines` for the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whitepool.arrays_file import opened
from whitepool.data.table import ScoredSet
from whitepool.errors import UserError
from whitepool.whole_file import beside

Floats = NDArray[np.float64]

SCHEMA = 1
FILE = "predictions.safetensors"
NAMED = ("task", "subset", "flattened", "split", "kind")


@dataclass(frozen=True, eq=False)
class Predictions:
    """The scored sets of a run and what they were scored by.

    Attributes:
        sets: with their gold scores; which sentences they are made of is not kept.
        by_stage: stage -> cosines of each set, (pair,), or scores of queries, (metric, query).
        aggregate: how the run combined the sub-tasks of a task.
    """

    sets: tuple[ScoredSet, ...]
    by_stage: Mapping[str, Sequence[Floats]]
    aggregate: str


def save_predictions(
    folder: Path,
    sets: Sequence[ScoredSet],
    by_stage: Mapping[str, Sequence[Floats]],
    aggregate: str,
) -> None:
    """Write predictions.safetensors, whole, into a run's folder; arguments as in `Predictions`."""
    from safetensors.numpy import save_file

    arrays = {f"{place}.gold": s.gold for place, s in enumerate(sets)}
    for stage, values in by_stage.items():
        arrays |= {f"{place}.{stage}": x for place, x in enumerate(values)}
    content = {
        "schema": SCHEMA,
        "kind": "predictions",
        "aggregate": aggregate,
        "stages": list(by_stage),
        "sets": [{name: getattr(s, name) for name in NAMED} for s in sets],
    }
    whole = {name: np.ascontiguousarray(x, dtype=np.float64) for name, x in arrays.items()}
    with beside(folder / FILE) as partial:
        save_file(whole, partial, metadata={"whitepool": json.dumps(content)})


def load_predictions(folder: Path) -> Predictions:
    """Read what `save_predictions` wrote into a run's folder.

    Raises:
        UserError: there is no such folder or file in it, or the file is not one of ours.
    """
    path = folder / FILE
    if not folder.is_dir():
        raise UserError(f"there is no run folder {folder}: check the path.")
    if not path.is_file():
        raise UserError(
            f"{folder} has no {FILE}: it is no folder of a finished run of one recipe; run "
            "evaluate, or name one job's folder of a multirun."
        )
    with opened(
        path, "predictions", SCHEMA, kind="predictions", again="run evaluate again", framework="np"
    ) as (file, content):
        places = range(len(content["sets"]))
        sets = tuple(_set(content["sets"][n], file.get_tensor(f"{n}.gold")) for n in places)
        by_stage = {
            str(stage): [file.get_tensor(f"{n}.{stage}") for n in places]
            for stage in content["stages"]
        }
        return Predictions(sets, by_stage, str(content["aggregate"]))


def _set(named: Mapping[str, Any], gold: Floats) -> ScoredSet:
    """A set without its sentences."""
    fields = {name: named[name] for name in NAMED}
    return ScoredSet(pairs=np.zeros((0, 2), np.int64), gold=gold, **fields)
