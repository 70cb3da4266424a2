"""Values of pairs that come again in a later chunk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.analysis.repeats import Repeats
from whitepool.data import PairSet, Task
from whitepool.data.table import SentenceTable

LETTERS = "abcdefg"


def table() -> SentenceTable:
    one = PairSet("t", "", "test", tuple(LETTERS), tuple(LETTERS), np.arange(7.0), "made", "0")
    return SentenceTable.build(
        [Task("t", (one,))], lambda texts: ([(ord(t),) for t in texts], [False] * len(texts))
    )


PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)


@given(st.lists(PAIRS, min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_pair_keeps_its_first_value(chunks: list[list[tuple[int, int]]]) -> None:
    """Chunks number their rows in an order of their own; a chunk's own repeats are equal."""
    whole = table()
    repeats = Repeats(whole)
    first: dict[frozenset[int], float] = {}
    generator = np.random.default_rng(0)
    for chunk in chunks:
        order = generator.permutation(7)
        part = replace(whole, ids=tuple(whole.ids[row] for row in order))
        own = generator.normal(size=(7, 7))
        pairs = np.array(chunk, dtype=np.int64).reshape(-1, 2)
        values = np.array([[own[min(p), max(p)] for p in chunk]]).reshape(1, -1)
        values = np.concatenate([values, -values])
        for p, value in zip(chunk, values[0].tolist(), strict=True):
            first.setdefault(frozenset(p), value)
        repeats.settle(part, np.argsort(order)[pairs], values)
        wanted = [first[frozenset(p)] for p in chunk]
        assert values.tolist() == [wanted, [-w for w in wanted]]
