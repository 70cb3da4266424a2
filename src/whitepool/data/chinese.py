"""The five Chinese sets of Su's evaluation: ATEC, BQ, LCQMC, PAWS-X and STS-B.

A folder holds ``ATEC/ATEC.train.data``, ``ATEC.valid.data``, ``ATEC.test.data`` and so on, or the
same without the inner folders: tab-separated without quoting or header, sentence, sentence, score
(0 or 1, STS-B 0 to 5); in the form of the ATEC competition the row's number comes before them. On
the hub they are C-MTEB's, at the revisions that MTEB pins. Counts are those of C-MTEB's cards and
of text2vec's release of the files.
Sources: github.com/bojone/BERT-whitening, chn; github.com/shibing624/text2vec;
github.com/embeddings-benchmark/mteb.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from whitepool.data import split_sets, text
from whitepool.data.pairs import Task
from whitepool.data.split_sets import HubFiles, SplitSet
from whitepool.errors import UserError

FILE_SPLITS = {"train": "train", "dev": "valid", "test": "test"}


def rows(raw: bytes, path: Path) -> Iterator[text.Row]:
    """Rows of a file: three columns, or four of which the first is the number of the row.

    Raises:
        UserError: another number of columns, a bad number or score.
    """
    for line, content in enumerate(text.row_lines(raw, path), start=1):
        where = f"{path}, line {line}"
        fields = content.split("\t")
        if len(fields) == 4:
            text.parse_score(fields.pop(0), where)
        if len(fields) != 3:
            raise UserError(
                f"{where}: {len(fields)} tab-separated columns found, 3 needed (sentence, "
                f"sentence, score), or 4 with a number before them; {text.FETCH_AGAIN}."
            )
        yield fields[0], fields[1], text.parse_score(fields[2], where)


def _set(task: str, name: str, counts: tuple[int, int, int], repo: str, revision: str) -> SplitSet:
    return SplitSet(
        task,
        files={
            split: (f"{name}/{name}.{word}.data", f"{name}.{word}.data")
            for split, word in FILE_SPLITS.items()
        },
        parse=rows,
        counts=dict(zip(FILE_SPLITS, counts, strict=True)),
        hub=HubFiles(repo, revision),
    )


SETS = {
    task: _set(task, name, counts, repo, revision)
    for task, name, counts, (repo, revision) in (
        (
            "atec",
            "ATEC",
            (62477, 20000, 20000),
            ("C-MTEB/ATEC", "0f319b1142f28d00e055a6770f3f726ae9b7d865"),
        ),
        (
            "bq",
            "BQ",
            (100000, 10000, 10000),
            ("C-MTEB/BQ", "e3dda5e115e487b39ec7e618c0c6a29137052a55"),
        ),
        (
            "lcqmc",
            "LCQMC",
            (238766, 8802, 12500),
            ("C-MTEB/LCQMC", "17f9b096f80380fce5ed12a9be8be7784b337daf"),
        ),
        (
            "pawsx",
            "PAWSX",
            (49401, 2000, 2000),
            ("C-MTEB/PAWSX", "9c6a90e430ac22b5779fb019a23e820b11a8b5e1"),
        ),
        (
            "stsb_zh",
            "STS-B",
            (5231, 1458, 1361),
            ("C-MTEB/STSB", "0cde68302b3541bb8b3c340dc0644b0b745b3dc0"),
        ),
    )
}


def load_chinese(
    tasks: Sequence[str],
    split: str = split_sets.ALL,
    root: str | Path | None = None,
    allow_missing: bool = False,
) -> tuple[Task, ...]:
    """Read Chinese sets.

    Args:
        tasks: any of atec, bq, lcqmc, pawsx, stsb_zh; the order is kept.
        split: see `split_sets.load`, as for the others.
        root: a folder of the files; None for the hub.
        allow_missing: go on without splits that are absent.

    Raises:
        UserError: an unknown or repeated task, and as `split_sets.load`.
    """
    if isinstance(tasks, str) or not tasks:
        raise UserError(f"data.tasks is {tasks!r}; give a list of tasks, as [bq,stsb_zh].")
    for name in tasks:
        if name not in SETS:
            raise UserError(f"unknown task {name!r}; choose from {', '.join(SETS)}.")
    if len(set(tasks)) < len(tasks):
        raise UserError(f"data.tasks names a task twice ({', '.join(tasks)}); keep one of each.")
    return split_sets.load([SETS[name] for name in tasks], split, root, allow_missing)
