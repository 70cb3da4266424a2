"""The seven English sets as WhiteningBERT's repository ships them, one file per sub-task.

``sts12.MSRpar-test.csv``, ``sts-b-test.csv``, ``sickr-test.csv``: lower-cased and tokenised
(SICK-R cased), in the columns of the STS benchmark with ``PAD`` in the first four.
Source: github.com/Jun-jie-Huang/WhiteningBERT, examples/datasets/stsbenchmark.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from whitepool.data import stsb
from whitepool.data.counts import COUNTS
from whitepool.data.pairs import PairSet

LOOKED_FOR = "sts12.MSRpar-test.csv, sts-b-test.csv, sickr-test.csv … (WhiteningBERT)"


def file_name(task: str, subset: str, split: str) -> str:
    """Name of a file, ``sts12.MSRpar-test.csv``."""
    stem = f"{task}.{subset}" if subset else {"stsb": "sts-b"}.get(task, task)
    return f"{stem}-{split}.csv"


def recognise(folder: Path) -> bool:
    """Whether a folder holds any of these files."""
    return any(
        (folder / file_name(task, subset, split)).is_file()
        for task, sets in COUNTS.items()
        for subset, split in sets
    )


def read(folder: Path, task: str, subset: str, split: str) -> PairSet:
    """One file of the folder.

    Raises:
        MissingFile: the file is not there.
        UserError: a malformed row, or another number of pairs than is known.
    """
    pairs = stsb.read_file(folder / file_name(task, subset, split), task, subset, split)
    return replace(pairs, form="whiteningbert")
