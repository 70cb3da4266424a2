"""Batches that do not fit into memory: worked on in parts, in order, and said."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.batches import make_batch, plan_batches
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.loading import load
from whitepool.plm import FrozenPLM
from whitepool.room import Room, is_out_of_memory
from whitepool.states import Batch

import scripted

SCRIPT = Path(__file__).with_name("starving.py")
CPU = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes."


@settings(max_examples=20, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=30),
    fits=st.integers(40, 200),
    budget=st.integers(40, 400),
)
def test_every_row_is_worked_on_once_and_in_order(
    lengths: list[int], fits: int, budget: int
) -> None:
    ids = [tuple(range(100 * row, 100 * row + n)) for row, n in enumerate(lengths)]
    room = Room()
    found: list[tuple[int, tuple[int, ...]]] = []
    tried: list[int] = []

    def work(part: Batch) -> int:
        tried.append(sum(part.lengths))
        if tried[-1] > fits:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        split = torch.split(part.ids, list(part.lengths))
        found.extend((int(r), tuple(x.tolist())) for r, x in zip(part.rows, split, strict=True))
        return len(part.lengths)

    plan = plan_batches(lengths, budget)
    for rows in plan:
        assert sum(room.each(make_batch(ids, rows), work)) == len(rows)
    assert found == [(row, ids[row]) for rows in plan for row in rows]
    over = [size for size in tried if size > fits]
    assert all(later <= max(earlier // 2, 40) for earlier, later in itertools.pairwise(over))
    assert (room.tokens is None) == (not over)


def test_the_budget_is_kept_and_said_once_for_each_halving(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room()
    batch = make_batch([(1,) * 10] * 8, range(8))

    def work(part: Batch) -> int:
        if sum(part.lengths) > 25:
            raise RuntimeError(CPU)
        return len(part.lengths)

    assert list(room.each(batch, work)) == [2] * 4
    assert list(room.each(batch, work)) == [2] * 4
    assert caplog.messages == [
        f"Out of memory on a batch of {n} tokens ({CPU}): going on with batch_tokens={n // 2}."
        for n in (80, 40)
    ]


def test_one_sentence_that_does_not_fit_is_one_sentence() -> None:
    def work(part: Batch) -> int:
        raise MemoryError

    with pytest.raises(UserError) as caught:
        list(Room().each(make_batch([(1,) * 10] * 3, range(3)), work))
    assert str(caught.value) == (
        "memory does not suffice for a single text of 10 tokens (MemoryError): cut texts with "
        "model.max_length=, or free memory."
    )


@pytest.mark.parametrize("error", [RuntimeError("shapes do not agree"), ValueError(CPU)])
def test_other_errors_are_not_taken_for_it(error: Exception) -> None:
    assert not is_out_of_memory(error)

    def work(part: Batch) -> int:
        raise error

    with pytest.raises(type(error)) as caught:
        list(Room().each(make_batch([(1,) * 10] * 3, range(3)), work))
    assert caught.value is error


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory."), RuntimeError(CPU), MemoryError()]
)
def test_vectors_do_not_depend_on_it(
    error: BaseException, checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors in the model, half of the parts of a batch being done already."""
    encoder: Encoder = load(checkpoint("bert"), device="cpu")
    texts = ["a dog " * n for n in range(1, 25)]
    wanted = encoder.encode(texts)
    states = FrozenPLM.states

    def scarce(self: FrozenPLM, batch: Batch, needs: Any) -> Any:
        for place, part in enumerate(states(self, batch, needs)):
            if sum(batch.lengths) > 150 and place == 2:
                raise error
            yield part

    monkeypatch.setattr(FrozenPLM, "states", scarce)
    found = encoder.encode(texts)
    assert encoder.pooled.plm.room.tokens in range(75, 163)  # a quarter of 648, or an eighth
    assert abs(found - wanted).max() <= 1e-5 * abs(wanted).max()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")
def test_passes_with_a_limit_of_the_system(
    checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    """evaluate, the Python API and encode, where the system really refuses memory."""
    printed = scripted.run(SCRIPT, checkpoint("bert"), tmp_path, limit=600)
    found = json.loads(printed.splitlines()[-1])
    one = found.pop("one")
    assert one["error"].startswith("memory does not suffice for a single text of ")
    for name, made in found.items():
        assert made["said"], name
        assert all(said.startswith("Out of memory on a batch of ") for said in made["said"])
        assert made["difference"] <= 1e-5, name
    score, again = found["evaluated"]["gave"]
    assert abs(score - again) <= 1e-3
    assert found["bulk"]["gave"] == [3000, 3000]
