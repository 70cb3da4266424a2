"""How much memory analyses may take, and chunks of pairs that keep to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from whitepool.data.table import Rows, ScoredSet, SentenceTable
from whitepool.errors import UserError
from whitepool.protocol import FitOn

Memory = Callable[[Sequence[int]], int]


def in_words(size: int) -> str:
    """``1.5 GiB``; never less than the bytes it stands for."""
    for unit, of in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= of:
            return f"{np.ceil(10 * size / of) / 10:g} {unit}"
    return f"{size} B"


@dataclass(frozen=True, eq=False)
class _Member:
    """Pairs that belong to a fit set: some of a scored set, or of another split (index None)."""

    task: str
    index: int | None
    pairs: Rows
    gold: np.ndarray[tuple[int], np.dtype[np.float64]]

    def part(self, start: int, stop: int) -> _Member:
        return replace(self, pairs=self.pairs[start:stop], gold=self.gold[start:stop])


def plan_chunks(
    table: SentenceTable, fit_on: FitOn, memory: Memory, allowed: int
) -> list[SentenceTable]:
    """The table in chunks that keep to ``allowed`` bytes: of whole fit sets, or else of pairs.

    Args:
        table: all sentences and pairs.
        fit_on: what a fit set is.
        memory: bytes for sentences of given lengths in tokens.
        allowed: bytes.

    Returns:
        The table itself where it fits. Otherwise each chunk is a table of its own, and has every
        pair of the scored sets once, in order. Where a fit set is cut by pairs, the sets that a
        chunk's ``scored`` names may be parts, or empty beside pairs of the task's other splits.

    Raises:
        UserError: not even one pair keeps to it.
    """

    def fits(members: Sequence[_Member]) -> bool:
        return needed(members) <= allowed

    def needed(members: Sequence[_Member]) -> int:
        rows = np.unique(np.concatenate([m.pairs.ravel() for m in members]))
        return memory([len(table.ids[row]) for row in rows])

    if memory([len(sequence) for sequence in table.ids]) <= allowed:
        return [table]
    chunks: list[list[_Member]] = [[]]
    for group in _fit_groups(table, fit_on):
        if fits(chunks[-1] + group):
            chunks[-1] += group
        elif fits(group):
            chunks.append(group)
        else:
            chunks += _cut(group, needed, allowed)
            chunks.append([])
    return [_subtable(table, chunk) for chunk in chunks if chunk]


def _fit_groups(table: SentenceTable, fit_on: FitOn) -> list[list[_Member]]:
    """What belongs to each fit set; other splits come first, and count only with task and suite.

    Sets to select on belong to no fit set; they go with the first.
    """
    groups: dict[str, list[_Member]] = {}
    for index, s in enumerate(table.scored):
        group = groups.setdefault(table.fit_set_of(s, fit_on), [])
        first_of_task = all(m.task != s.task for m in group)
        if fit_on != "subset" and first_of_task:
            for pairs in table.other.get(s.task, ()):
                group.append(_Member(s.task, None, pairs, np.zeros(len(pairs))))
        group.append(_Member(s.task, index, s.pairs, s.gold))
    first = next(iter(groups.values()))
    for index, s in enumerate(table.select, start=len(table.scored)):
        first.append(_Member(s.task, index, s.pairs, s.gold))
    return list(groups.values())


def _cut(
    group: Sequence[_Member], needed: Callable[[Sequence[_Member]], int], allowed: int
) -> list[list[_Member]]:
    """A fit set in chunks of as many pairs as are allowed."""
    ends = np.cumsum([len(m.pairs) for m in group])
    total = int(ends[-1])

    def between(start: int, stop: int) -> list[_Member]:
        begins = ends - [len(m.pairs) for m in group]
        return [
            m.part(max(start - b, 0), stop - b)
            for m, b, e in zip(group, begins.tolist(), ends.tolist(), strict=True)
            if b < stop and e > start
        ]

    chunks, start = [], 0
    while start < total:
        low, high = 0, 1  # low pairs are allowed, high are not, or there are no more
        while start + high <= total and needed(between(start, start + high)) <= allowed:
            low, high = high, 2 * high
        high = min(high, total - start + 1)
        while high - low > 1:
            middle = (low + high) // 2
            if needed(between(start, start + middle)) <= allowed:
                low = middle
            else:
                high = middle
        if not low:
            one = needed(between(start, start + 1))
            raise UserError(
                f"analysis.max_memory allows {in_words(allowed)} and one pair of sentences needs "
                f"{in_words(one)}, with what is kept to the end: give more than that, or ask for "
                "less of the analysis."
            )
        chunks.append(between(start, start + low))
        start += low
    return chunks


def _subtable(table: SentenceTable, members: Sequence[_Member]) -> SentenceTable:
    """The table of the sentences of some pairs."""
    rows = np.unique(np.concatenate([m.pairs.ravel() for m in members]))
    sets, number = (*table.scored, *table.select), len(table.scored)
    scored: list[ScoredSet] = []
    select: list[ScoredSet] = []
    other = {task: tuple[Rows, ...]() for task in table.other}
    for m in members:
        pairs = np.searchsorted(rows, m.pairs)
        if m.index is not None:
            kind = scored if m.index < number else select
            kind.append(replace(sets[m.index], pairs=pairs, gold=m.gold))
            continue
        other[m.task] += (pairs,)
        if all(o.index is None or o.task != m.task for o in members):
            s = next(s for s in table.scored if s.task == m.task)
            if all(named.name != s.name for named in scored):
                scored.append(_emptied(s))
    scored = scored or [_emptied(table.scored[0])]
    blank = [row for row, at in enumerate(rows.tolist()) if not table.ids[at]]
    return SentenceTable(
        tasks=table.tasks,
        ids=tuple(table.ids[row] for row in rows),
        texts=tuple(table.texts[row] for row in rows),
        scored=tuple(scored),
        select=tuple(select),
        selecting=table.selecting,
        other=other,
        sentences=sum(s.pairs.size for s in (*scored, *select)),
        truncated=0,
        blank=sum(int(np.isin(s.pairs, blank).sum()) for s in (*scored, *select)),
    )


def _emptied(s: ScoredSet) -> ScoredSet:
    """A scored set without its pairs."""
    return replace(s, pairs=np.zeros((0, 2), dtype=np.int64), gold=np.zeros(0))
