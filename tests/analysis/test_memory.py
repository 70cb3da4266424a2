"""Chunks keep to the limit and lose no pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from whitepool.analysis.memory import in_words, plan_chunks
from whitepool.data.table import SentenceTable
from whitepool.errors import UserError
from whitepool.protocol import FIT_ON, FitOn
from whitepool.size import parse_size

import tiny_suite


@pytest.fixture(scope="module")
def table(plm: Callable[[str], Any]) -> SentenceTable:
    return SentenceTable.build(tiny_suite.load(), plm("bert").tokenize, other_splits=True)


def tokens(lengths: Sequence[int]) -> int:
    return 100 * sum(lengths)


def texts(table: SentenceTable) -> dict[str, list[tuple[str, str, float]]]:
    result: dict[str, list[tuple[str, str, float]]] = {}
    for s in table.scored:
        pairs = [(table.texts[a], table.texts[b]) for a, b in s.pairs]
        found = [(*p, g) for p, g in zip(pairs, s.gold.tolist(), strict=True)]
        result.setdefault(s.name, []).extend(found)
    return result


@pytest.mark.parametrize("fit_on", FIT_ON)
@pytest.mark.parametrize("allowed", [5_000, 60_000, 140_000, 10**9])
def test_chunks_have_every_pair_once_in_order(
    table: SentenceTable, fit_on: FitOn, allowed: int
) -> None:
    chunks = plan_chunks(table, fit_on, tokens, allowed)
    assert (len(chunks) == 1) == (allowed == 10**9)
    joined: dict[str, list[tuple[str, str, float]]] = {}
    for chunk in chunks:
        assert tokens([len(ids) for ids in chunk.ids]) <= allowed
        for name, found in texts(chunk).items():
            joined.setdefault(name, []).extend(found)
    assert joined == texts(table)
    # Every sentence counts in its fit set as often as before; without chunks of other splits only.
    for name, counts in table.fit_sets(fit_on).items():
        whole = sum(
            int(c.fit_sets(fit_on)[name].sum()) for c in chunks if name in c.fit_sets(fit_on)
        )
        assert whole == counts.sum()


def test_whole_fit_sets_stay_together_where_they_can(table: SentenceTable) -> None:
    task = plan_chunks(table, "task", tokens, 180_000)
    assert [sorted({s.task for s in chunk.scored}) for chunk in task] == [["sts12"], ["mine"]]
    for chunk, (name, counts) in zip(task, table.fit_sets("task").items(), strict=True):
        mine = chunk.fit_sets("task")[name]
        assert np.array_equal(np.sort(mine[mine > 0]), np.sort(counts[counts > 0]))


def test_too_little_for_one_pair_names_what_is_needed(table: SentenceTable) -> None:
    with pytest.raises(
        UserError, match=r"max_memory allows 1 KiB and one pair .* needs 1\.[0-9] KiB"
    ):
        plan_chunks(table, "task", tokens, 1024)


@pytest.mark.parametrize(("size", "word"), [(100, "100 B"), (2**30, "1 GiB"), (1537, "1.6 KiB")])
def test_words_are_never_less_than_the_size(size: int, word: str) -> None:
    assert in_words(size) == word
    assert parse_size(word, "analysis.max_memory") >= size
