"""Published sets that are one file for each split: where the files are, and how many pairs.

A table of such sets, `SplitSet`, is all that a new one needs. With ``split=all`` each split that
is there is a sub-task, as in Su's Chinese evaluation; otherwise one split is scored and the others
are there for a protocol that fits on them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from whitepool.data import hub, text
from whitepool.data.counts import check_count
from whitepool.data.pairs import Kind, PairSet, Task
from whitepool.errors import UserError

log = logging.getLogger(__name__)

ALL = "all"
Parse = Callable[[bytes, Path], Iterator[text.Row]]


@dataclass(frozen=True)
class HubFiles:
    """Where a set lies on the hub.

    Attributes:
        repo: id of the data set.
        revision: commit.
        columns: names of the columns of first sentence, second sentence and score.
        split_in: our split -> its name there and the folder it lies in, if any.
    """

    repo: str
    revision: str
    columns: tuple[str, str, str] = hub.COLUMNS
    split_in: Callable[[str], tuple[str, str | None]] = lambda split: (split, None)


@dataclass(frozen=True)
class SplitSet:
    """A published set of one file for each split.

    Attributes:
        name: of the task.
        files: split -> paths below the root that are looked for, in this order.
        parse: reads a file of the root.
        counts: split -> number of pairs it is known to hold.
        hub: where it lies on the hub.
        gold_of: what a score of the hub's files means as a gold score.
        kind: see `Task`.
    """

    name: str
    files: Mapping[str, Sequence[str]]
    parse: Parse
    counts: Mapping[str, int]
    hub: HubFiles
    gold_of: Callable[[float], float] = float
    kind: Kind = field(default="graded")

    def from_root(self, root: Path, split: str, subset: str) -> PairSet:
        """One split from a folder.

        Raises:
            MissingFile: no file of it is there.
            UserError: a malformed row, or another number of pairs than is known.
        """
        found = [path for name in self.files[split] if (path := root / name).is_file()]
        if not found:
            raise text.MissingFile(
                f"{self.name}, {split} split: there is no file {' or '.join(self.files[split])} in "
                f"{root}; point data.root= at a folder that has it, choose another data.split=, or "
                "leave it out with data.allow_missing=true."
            )
        raw = text.read_bytes(found[0])
        rows = list(self.parse(raw, found[0]))
        check_count(len(rows), self.counts[split], str(found[0]))
        return self._pairs(rows, split, subset, str(found[0]), text.checksum(raw))

    def from_hub(self, split: str, subset: str) -> PairSet:
        """One split from the hub.

        Raises:
            UserError: as `hub.read`.
        """
        name, folder = self.hub.split_in(split)
        rows, sha256 = hub.rows_of(
            self.hub.repo, self.hub.revision, name, self.hub.columns, folder=folder
        )
        source = f"{self.hub.repo}@{self.hub.revision}"
        check_count(len(rows), self.counts[split], source)
        judged = [(first, second, self.gold_of(score)) for first, second, score in rows]
        return self._pairs(judged, split, subset, source, sha256)

    def _pairs(
        self, rows: Sequence[text.Row], split: str, subset: str, source: str, sha256: str
    ) -> PairSet:
        return text.to_pair_set(
            rows, task=self.name, subset=subset, split=split, source=source, sha256=sha256
        )


def load(
    sets: Sequence[SplitSet],
    split: str,
    root: str | Path | None = None,
    allow_missing: bool = False,
) -> tuple[Task, ...]:
    """Read some sets.

    Args:
        sets: which ones; the order is kept.
        split: the split that is scored: train, dev or test, or ``all`` for each as a sub-task.
        root: a folder of their files; None for the hub.
        allow_missing: name absent splits in `Task.missing` in place of an error.

    Raises:
        UserError: an unknown split, a root that is no folder, a missing or malformed file, a wrong
            number of pairs, or nothing at all found.
    """
    for one in sets:
        if split not in (*one.counts, ALL):
            choices = ", ".join((*one.counts, ALL))
            raise UserError(f"unknown split {split!r} of {one.name}; choose from {choices}.")
    folder = None if root is None else Path(root).expanduser()
    if folder is not None and not folder.is_dir():
        raise UserError(f"data.root={root} is not a folder; give one that exists.")
    tasks = tuple(_load_one(one, split, folder, allow_missing) for one in sets)
    if not any(task.scored for task in tasks):
        names = ", ".join(one.name for one in sets)
        raise UserError(
            f"no file of {names} ({split} split) was found in {root}; point data.root= at a folder "
            "that has one."
        )
    return tasks


def _load_one(one: SplitSet, split: str, root: Path | None, allow_missing: bool) -> Task:
    read = one.from_hub if root is None else partial(one.from_root, root)
    scored: list[PairSet] = []
    missing: list[str] = []
    for wanted in one.counts if split == ALL else (split,):
        try:
            scored.append(read(wanted, wanted if split == ALL else ""))
        except text.MissingFile:
            if not allow_missing:
                raise
            missing.append(wanted)
    if missing:
        log.warning("%s: left out, for want of a file: %s", one.name, ", ".join(missing))
    others: list[PairSet] = []
    for other in one.counts:
        if scored and split not in (other, ALL):
            try:
                others.append(read(other, ""))
            except text.MissingFile:
                log.debug("%s: the source has no %s split", one.name, other)
    calibration = [s for s in others if s.split == "train"] if one.kind == "binary" else []
    return Task(
        one.name, tuple(scored), tuple(others), tuple(missing), one.kind, tuple(calibration)
    )
