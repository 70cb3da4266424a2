"""Readers fed garbage: every row is accounted for, or there is one plain error."""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.data import senteval, stsb

from file_cases import FILES
from reader_cases import NASTY, READERS, Reader, outcome

BATCH = 20  # cases of one example, which costs more to draw than all of them to read


@pytest.fixture(autouse=True)
def any_number_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (senteval, stsb):
        monkeypatch.setattr(module, "check_count", lambda *numbers: None)


def case(reader: Reader, seed: int) -> bytes:
    """A file from the reader's pieces and nasty ones, or a valid file with damage."""
    draw = random.Random(seed)
    pieces = [*reader.pieces * (1 + len(NASTY) // (2 * len(reader.pieces))), *NASTY]
    if draw.random() < 0.3:
        return b"".join(draw.choices(pieces, k=draw.randrange(12)))
    if reader.damage is not None and draw.random() < 0.8:
        return reader.damage(reader.seed, draw)
    raw = reader.seed * draw.choice((1, 1, 1, 3))
    for _ in range(draw.randrange(4)):
        start = draw.randrange(len(raw) + 1)
        end = min(len(raw), start + draw.choice((0, 0, 1, 1, 4, 30)))
        raw = raw[:start] + draw.choice(pieces) + raw[end:]
    return raw


@pytest.mark.parametrize(
    ("reader", "cases"),
    [
        pytest.param(reader, cases, marks=marks, id=f"{reader.name}-{cases}")
        for readers, few in ((READERS, 2000), (FILES, 200))
        for reader in readers
        for cases, marks in ((few, ()), (50 * few, pytest.mark.nightly))
    ],
)
def test_any_bytes(reader: Reader, cases: int) -> None:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # twenty times as fast
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=memory) as place:

        @settings(deadline=None, max_examples=cases // BATCH, database=None)
        @given(st.integers(0, 2**32))
        def check(seed: int) -> None:
            for own in range(seed, seed + BATCH):
                found[outcome(reader, case(reader, own), Path(place))] += 1

        check()
    assert found.total() >= cases
    assert found["rows"] > cases / 100, found  # sound ones are read
