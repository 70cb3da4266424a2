"""Sentences without padding, in one row or by length, give what padded batches give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from whitepool import attend
from whitepool.data import load_sts
from whitepool.data.datamodule import plan_batches
from whitepool.plm import FrozenPLM
from whitepool.states import Batch, Needs, pad

from tiny import FAMILIES, WORDS, make_checkpoint

# LayoutLM makes its own mask; the others' attention does not go through transformers' interface,
# or, T5's, does not take positions.
BY_LENGTH = (
    "deberta", "mpnet", "xlm", "t5", "layoutlm", "squeezebert", "roformer", "nezha"
)  # fmt: skip


def batch_of(ids: list[tuple[int, ...]]) -> Batch:
    ids = sorted(ids, key=lambda sequence: -len(sequence))
    flat = torch.tensor([token for sequence in ids for token in sequence])
    return Batch(torch.arange(len(ids)), flat, tuple(map(len, ids)))


def gaps(model: FrozenPLM, ids: list[tuple[int, ...]], needs: Needs) -> tuple[float, float]:
    """Greatest difference from the padded batch: of states, relative, and of diagonals."""
    ids = sorted(ids, key=lambda sequence: -len(sequence))
    padded = model(pad(ids, model.pad_id), needs)
    states_gap = diagonal_gap = 0.0
    seen = []
    for rows, states in model.states(batch_of(ids), needs):
        seen += rows.tolist()
        length = states.ids.shape[1]
        assert states.ids.tolist() == [list(ids[row]) for row in rows]
        assert states.mask.all()
        for layer, hidden in states.hidden.items():
            wanted = padded.hidden[layer][rows, :length]
            gap = (hidden - wanted).abs().max() / wanted.abs().max()
            states_gap = max(states_gap, float(gap))
        for key, diagonal in states.diagonals.items():
            gap = (diagonal - padded.diagonals[key][rows, :length]).abs().max()
            diagonal_gap = max(diagonal_gap, float(gap))
        if needs.pooler:
            assert states.pooled is not None
            assert padded.pooled is not None
            torch.testing.assert_close(states.pooled, padded.pooled[rows], atol=1e-5, rtol=1e-5)
    assert seen == list(range(len(ids)))
    return states_gap, diagonal_gap


@pytest.mark.parametrize("family", FAMILIES)
def test_which_families_are_packed(family: str, plm: Callable[[str], Any]) -> None:
    assert plm(family).packs == (family not in BY_LENGTH)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("short", [64, 3], ids=["products", "sdpa"])
@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_equal_to_padded_batches(
    family: str,
    short: int,
    plm: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    data: st.DataObject,
) -> None:
    """Windows of 2 and 4 tokens (ModernBERT, Gemma 3) are kept to; so is causality."""
    monkeypatch.setattr(attend, "SHORT", short)
    monkeypatch.setattr(attend, "SHORT_WITH_DIAGONALS", short)
    model = plm(family)
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
    ids = model.tokenize(data.draw(st.lists(sentence, min_size=1, max_size=6))).ids
    layers = (*range(model.depth + 1), "static")
    pairs = tuple((b, h) for b in range(model.depth) for h in range(model.heads))
    states_gap, diagonal_gap = gaps(model, ids, Needs(layers, pairs))
    assert states_gap <= 3e-6
    assert diagonal_gap <= 3e-6


def test_the_pooler_sees_each_sentences_first_token(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    ids = model.tokenize(["a man plays", "dog", "cat", "the cat eats food"]).ids
    assert gaps(model, ids, Needs((), (), pooler=True))[0] <= 3e-6


def test_a_padding_token_within_a_text_stays_at_the_padding_index(
    plm: Callable[[str], Any],
) -> None:
    """RoBERTa gives it no position of its own, in a packed row as in a padded one."""
    model = plm("roberta")
    ids = model.tokenize(["a [PAD] man plays", "dog", "a dog [PAD] [PAD] [PAD]"]).ids
    assert any(1 in sequence for sequence in ids)
    assert model.packs
    found = {}
    for _, states in model.states(batch_of(ids), Needs((0,))):
        for sequence, hidden in zip(states.ids.tolist(), states.hidden[0], strict=True):
            found[tuple(sequence)] = hidden
    for sequence in ids:
        alone = model.model(input_ids=torch.tensor([sequence]), output_hidden_states=True)
        torch.testing.assert_close(found[sequence], alone.hidden_states[0][0])


def test_long_sentences_go_past_a_window_unpacked(tmp_path: Path) -> None:
    """A sentence longer than the window is masked by the model itself."""
    folder = make_checkpoint("gemma3", tmp_path / "m", sliding_window=6)
    model = FrozenPLM.from_pretrained(path=folder)
    assert model.packs
    short = model.tokenize(["a dog eats", "dog", "two woman"]).ids
    long = model.tokenize(["a man plays guitar in the park , the dog eats the food"]).ids
    for ids in (short, short + long):
        assert max(gaps(model, ids, Needs((1, 2, -1)))) <= 3e-6


@pytest.mark.slow
def test_minilm_packed_equals_padded_to_1e_6() -> None:
    model = FrozenPLM.from_pretrained(asset="all_minilm")
    assert model.packs
    (task,) = load_sts(["stsb"])
    ids = list(dict.fromkeys(model.tokenize(task.scored[0].first[:400]).ids))
    for rows in plan_batches([len(sequence) for sequence in ids], 2048):
        sequences = sorted((ids[row] for row in rows), key=lambda sequence: -len(sequence))
        padded = model(pad(sequences, model.pad_id), Needs((-1,)))
        means = (padded.hidden[6] * padded.mask[..., None]).sum(1) / padded.mask.sum(1)[:, None]
        for some, states in model.states(batch_of(sequences), Needs((-1,))):
            vectors = torch.nn.functional.normalize(states.hidden[6].mean(1))
            wanted = torch.nn.functional.normalize(means[some])
            assert (vectors - wanted).abs().max() <= 1e-6
