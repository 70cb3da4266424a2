"""From names or a path to tasks: the two functions that read sentence pairs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from whitepool.data import hub, pairs_file, senteval, stsb, text, whiteningbert
from whitepool.data.counts import COUNTS, splits, subsets
from whitepool.data.pairs import PairSet, Task
from whitepool.errors import UserError

log = logging.getLogger(__name__)

SPLITS = ("train", "dev", "test")
Reader = Callable[[str, str, str], PairSet]


def load_sts(
    tasks: Sequence[str],
    split: str = "test",
    root: str | Path | None = None,
    source: str | None = None,
    allow_missing: bool = False,
) -> tuple[Task, ...]:
    """Read published STS tasks.

    Args:
        tasks: any of stsb, sickr, sts12, sts13, sts14, sts15, sts16; the order is kept.
        split: the split that is scored: train, dev or test. STS12 has train and test, STS13 to
            STS16 only test.
        root: folder of SentEval's ``downstream`` data or of WhiteningBERT's files, or the
            parent of ``downstream``; told apart by what is in it.
        source: without a root, ``embedded`` (stsb only) or ``hub``; by default stsb is embedded
            and the others come from the hub.
        allow_missing: name absent sub-tasks in `Task.missing` in place of an error.

    Returns:
        One `Task` per name. From the hub a year is one flattened set; otherwise there is one set
        per sub-task. `Task.other_splits` has the other splits of stsb and sickr that the source
        holds. With ``allow_missing`` a task without any file has nothing scored.

    Raises:
        UserError: unknown task, split or source, root and source together, a root that is neither
            layout, a missing or malformed file, a wrong number of pairs, or nothing at all found.
    """
    _check(tasks, split, source)
    folder_reader = None
    if root is not None:
        if source is not None:
            raise UserError(
                f"data.root={root} and data.source={source} are both given; keep one of them."
            )
        folder_reader = _folder_reader(Path(root).expanduser())
    loaded = tuple(
        _load_task(name, split, allow_missing, folder_reader or _reader(name, source))
        for name in tasks
    )
    if not any(task.scored for task in loaded):
        raise UserError(
            f"no file of {', '.join(tasks)} ({split} split) was found in {root or 'the source'}; "
            "point data.root= at a folder that has one."
        )
    return loaded


def load_pairs(
    path: str | Path,
    name: str | None = None,
    first: str | int = "sentence1",
    second: str | int = "sentence2",
    score: str | int = "score",
) -> tuple[Task, ...]:
    """Read a user's own file of sentence pairs.

    Args:
        path: .tsv (tab-separated, no quoting), .csv (quoted), .jsonl or .json (one object per
            line) or .parquet; TSV and CSV begin with a header row unless columns are numbers.
        name: name of the task, by default that of the file without its extension.
        first: column of the first sentence, its name or its number from 0.
        second: column of the second sentence.
        score: column of the gold score, any finite number.

    Returns:
        One task with one set, of split ``test``.

    Raises:
        UserError: unknown extension, no such file or column, a malformed row, no row at all, or
            pyarrow is not there.
    """
    path = Path(path).expanduser()
    raw = text.read_bytes(path)
    rows = list(pairs_file.read_rows(raw, path, (first, second, score)))
    if not rows:
        raise UserError(f"{path} holds no sentence pairs; give a file with at least one row.")
    name = path.stem if name is None else name
    pair_set = text.to_pair_set(
        rows, task=name, subset="", split="test", source=str(path), sha256=text.checksum(raw)
    )
    return (Task(name, (pair_set,)),)


def _check(tasks: Sequence[str], split: str, source: str | None) -> None:
    if isinstance(tasks, str) or not tasks:
        raise UserError(f"data.tasks is {tasks!r}; give a list of tasks, as [stsb,sickr].")
    for name in tasks:
        if name not in COUNTS:
            raise UserError(f"unknown task {name!r}; choose from {', '.join(COUNTS)}.")
    if len(set(tasks)) < len(tasks):
        raise UserError(f"data.tasks names a task twice ({', '.join(tasks)}); keep one of each.")
    if split not in SPLITS:
        raise UserError(f"unknown split {split!r}; choose from {', '.join(SPLITS)}.")
    for name in tasks:
        if split not in splits(name):
            raise UserError(
                f"{name} has only a {' and a '.join(splits(name))} split, not {split}; set "
                f"data.split=test or leave {name} out."
            )
    if source not in (None, "embedded", "hub"):
        raise UserError(f"unknown source {source!r}; choose from embedded, hub.")
    others = [name for name in tasks if name != "stsb"]
    if source == "embedded" and others:
        raise UserError(
            f"only stsb is embedded, not {', '.join(others)}; use data.source=hub or data.root=."
        )


def _reader(task: str, source: str | None) -> Reader:
    if source is None:
        source = "embedded" if task == "stsb" else "hub"
    return stsb.read_embedded if source == "embedded" else hub.read


def _folder_reader(root: Path) -> Reader:
    if not root.is_dir():
        raise UserError(f"data.root={root} is not a folder; give one that exists.")
    layouts: list[Reader] = []
    for folder in (root, root / "downstream"):
        if senteval.recognise(folder):
            layouts.append(partial(senteval.read, folder))
        if whiteningbert.recognise(folder):
            layouts.append(partial(whiteningbert.read, folder))
    if len(layouts) != 1:
        raise UserError(
            f"data.root={root} holds {'several' if layouts else 'none'} of the layouts looked for: "
            f"{senteval.LOOKED_FOR}; {whiteningbert.LOOKED_FOR}; give the folder of one of them."
        )
    return layouts[0]


def _load_task(name: str, split: str, allow_missing: bool, read: Reader) -> Task:
    scored: list[PairSet] = []
    missing: list[str] = []
    for subset in ("",) if read is hub.read else subsets(name, split):
        try:
            scored.append(read(name, subset, split))
        except text.MissingFile:
            if not allow_missing:
                raise
            missing.append(subset or name)
    if missing:
        log.warning("%s: left out, for want of a file: %s", name, ", ".join(missing))
    others: list[PairSet] = []
    # Su fits STS12 on its test files alone, though it has a train split.
    for other in splits(name) if subsets(name) == ("",) else ():
        if scored and other != split:
            try:
                others.append(read(name, "", other))
            except text.MissingFile:
                log.debug("%s: the source has no %s split", name, other)
    return Task(name, tuple(scored), tuple(others), tuple(missing))
