"""Files in the layout of the STS benchmark: ``sts-train.csv``, ``sts-dev.csv``, ``sts-test.csv``.

Tab-separated without quoting or header: genre, file, year, number, score, sentence, sentence, and
in some rows two columns on the sentences' origin. WhiteningBERT's files have the same columns.
"""

from __future__ import annotations

from pathlib import Path

from whitepool.data import text
from whitepool.data.counts import COUNTS, check_count
from whitepool.data.pairs import PairSet


def read_file(path: Path, task: str, subset: str, split: str) -> PairSet:
    """One file in this layout, with the number of pairs that `COUNTS` knows for it.

    Raises:
        MissingFile: the file is not there.
        UserError: a malformed row, or another number of pairs.
    """
    raw = text.read_bytes(text.require(path, task, subset))
    rows: list[text.Row] = []
    for line, content in enumerate(text.row_lines(raw, path), start=1):
        where = f"{path}, line {line}"
        fields = text.tab_fields(content, 7, where)
        rows.append((fields[5], fields[6], text.parse_score(fields[4], where)))
    check_count(len(rows), COUNTS[task][subset, split], str(path))
    return text.to_pair_set(
        rows,
        task=task,
        subset=subset,
        split=split,
        source=str(path),
        sha256=text.checksum(raw),
    )


def read_embedded(task: str, subset: str, split: str) -> PairSet:
    """A split of the STS benchmark that is embedded in an asset.

    Raises:
        UserError: the asset cannot be had, or is damaged.
    """
    from whitepool.assets import fetch

    return read_file(fetch("stsb") / f"sts-{split}.csv", task, subset, split)
