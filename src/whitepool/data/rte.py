"""Recognizing Textual Entailment as GLUE has it: is the second sentence a consequence of the first?

A folder holds ``RTE/train.tsv`` and ``dev.tsv``, or the same without the inner folder:
tab-separated without quoting, header ``index sentence1 sentence2 label``, label ``entailment`` or
``not_entailment``. GLUE's test labels are not published. On the hub it is nyu-mll/glue, whose
label 0 is entailment. Source: Wang et al. 2019, gluebenchmark.com.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whitepool.data import pairs_file, split_sets, text
from whitepool.data.pairs import Task
from whitepool.data.split_sets import HubFiles, SplitSet
from whitepool.errors import UserError

LABELS = {"entailment": 1.0, "not_entailment": 0.0}


def rows(raw: bytes, path: Path) -> Iterator[text.Row]:
    """Rows of a file; entailment is 1.

    Raises:
        UserError: no such column, a row of another length than the header, an unknown label.
    """
    for line, (first, second, label) in pairs_file.tsv_cells(
        raw, path, ("sentence1", "sentence2", "label")
    ):
        if label not in LABELS:
            raise UserError(
                f"{path}, line {line}: unknown label {label!r}, not one of {', '.join(LABELS)}; "
                f"{text.FETCH_AGAIN}."
            )
        yield first, second, LABELS[label]


RTE = SplitSet(
    "rte",
    files={split: (f"RTE/{split}.tsv", f"{split}.tsv") for split in ("train", "dev")},
    parse=rows,
    counts={"train": 2490, "dev": 277},
    hub=HubFiles(
        "nyu-mll/glue",
        "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c",
        ("sentence1", "sentence2", "label"),
        lambda split: (split, "rte"),
    ),
    gold_of=lambda label: 1.0 - label,
    kind="binary",
)


def load_rte(split: str = "dev", root: str | Path | None = None) -> tuple[Task, ...]:
    """Read RTE; the train split, if there, chooses a threshold for the dev split.

    Raises:
        UserError: as `split_sets.load`.
    """
    return split_sets.load([RTE], split, root)
