"""Batches and texts dealt to any number of processes: each to one of them, and fairly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitepool.batches import plan_batches
from whitepool.data import datamodule, streaming
from whitepool.data.corpus import Corpus, Source, Text
from whitepool.data.datamodule import SentenceDataModule
from whitepool.data.pairs import PairSet, Task
from whitepool.data.streaming import CorpusStream
from whitepool.data.table import SentenceTable
from whitepool.ranks.dealing import deal
from whitepool.tokenizing import Tokenized

from tiny import WORDS

FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
LENGTHS = st.lists(st.integers(0, 40), max_size=60)


@given(st.lists(st.integers(1, 100), max_size=60), st.integers(1, 9))
def test_each_item_is_dealt_once_and_no_share_is_an_item_dearer(
    costs: list[int], ranks: int
) -> None:
    shares = deal(costs, ranks)
    assert len(shares) == ranks
    assert sorted(i for share in shares for i in share) == list(range(len(costs)))
    assert all(share == sorted(share) for share in shares)
    loads = [sum(costs[i] for i in share) for share in shares]
    assert max(loads) - min(loads) <= max(costs, default=0)


@given(LENGTHS, st.integers(1, 50), st.integers(1, 9))
def test_whole_batches_of_the_one_plan_hold_every_row_once(
    lengths: list[int], budget: int, ranks: int
) -> None:
    batches = plan_batches(lengths, budget)
    dealt = deal([sum(lengths[row] for row in batch) for batch in batches], ranks)
    rows = Counter(row for share in dealt for i in share for row in batches[i])
    assert rows == Counter(row for row, n in enumerate(lengths) if n)
    assert ranks == 1 or not batches or dealt[0]  # who collects vectors has some


def table_of(lengths: list[int]) -> SentenceTable:
    """A table of distinct sentences of these lengths."""
    texts = tuple(f"{i} " + "a " * n if n else "" for i, n in enumerate(lengths))
    pairs = PairSet("t", "", "test", texts, texts, np.zeros(len(texts)), "x", "0" * 64)

    def tokenize(some: Any) -> Tokenized:
        ids = [(int(t.split()[0]),) * (len(t.split()) - 1) if t else () for t in some]
        return Tokenized(ids, [False] * len(ids))

    return SentenceTable.build([Task("t", (pairs,))], tokenize)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lengths=LENGTHS.filter(any), budget=st.integers(1, 50), ranks=st.integers(1, 5))
def test_loaders_of_all_processes_hold_every_row_once(
    lengths: list[int], budget: int, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(lengths)
    data = SentenceDataModule(table, batch_tokens=budget)
    shares = data.rows_of_ranks(ranks)
    rows: list[int] = []
    for rank in range(ranks):
        monkeypatch.setattr(datamodule, "place", lambda rank=rank: (rank, ranks))
        own = [int(row) for batch in data.test_dataloader() for row in batch.rows]
        assert own == shares[rank].tolist()
        rows += own
    assert sorted(rows) == np.flatnonzero(~table.is_blank).tolist()


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    texts=st.lists(st.lists(st.sampled_from(WORDS[:4]), min_size=1, max_size=4).map(" ".join)),
    window=st.integers(1, 12),
    ranks=st.integers(1, 4),
)
def test_texts_of_a_corpus_weigh_the_same_on_any_number_of_processes(
    texts: list[str],
    window: int,
    ranks: int,
    monkeypatch: pytest.MonkeyPatch,
    plm: Callable[[str], Any],
) -> None:
    source = Source("x", lambda: iter([Text("filler", ""), *(Text(t, "") for t in texts)]))
    stream = CorpusStream(
        Corpus("text", (source,)), plm("bert").tokenize, batch_tokens=9, window=window
    )
    found: Counter[tuple[int, ...]] = Counter()
    descriptions = []
    for rank in range(ranks):
        monkeypatch.setattr(streaming, "place", lambda rank=rank: (rank, ranks))
        for batch, weight, _ in stream:
            for ids, times in zip(torch.split(batch.ids, batch.lengths), weight, strict=True):
                found[tuple(ids.tolist())] += int(times)
        descriptions.append(stream.reading.describe())
    assert found == Counter(plm("bert").tokenize(["filler", *texts]).ids)
    assert descriptions == [descriptions[0]] * ranks  # each has read it all
