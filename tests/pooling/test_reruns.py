"""SBERT-WK, impact and weights by position against plain loops written from their papers."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer

import whitepool
from whitepool.errors import UserError
from whitepool.framing import Frame
from whitepool.plm import FrozenPLM
from whitepool.pooling import ByPosition, Impact, LinearPooling, SbertWk, Words
from whitepool.pooling.binding import bind
from whitepool.pooling.impact import work
from whitepool.pooling.sbert_wk import importance, unified
from whitepool.states import Needs, States, pad

Floats = NDArray[np.float64]
TEXTS = ["a dog runs", "the cat", "a man eats the food in the park", "guitar", "a dog is a dog"]


def cosine(a: Floats, b: Floats) -> float:
    return float(a @ b / math.sqrt((a @ a) * (b @ b)))


def sbert_wk(sentence: Floats, window: int) -> Floats:
    """The paper's section IV, token by token, from (layer, token, dim)."""
    layers, tokens, _ = sentence.shape
    vectors, variances = [], []
    for t in range(tokens):
        v = sentence[:, t]
        alignment, novelty = np.zeros(layers), np.zeros(layers)
        for i in range(layers):
            near = [j for j in range(i - window, i + window + 1) if j != i and 0 <= j < layers]
            alignment[i] = 1 / np.mean([cosine(v[i], v[j]) for j in near])
            _, r = np.linalg.qr(np.stack([*(v[j] for j in near), v[i]], axis=1))
            novelty[i] = abs(r[-1, -1]) / np.linalg.norm(r[:, -1])
        alpha = 0.5 * alignment / alignment.sum() + 0.5 * novelty / novelty.sum()
        vectors.append(sum(a * x for a, x in zip(alpha, v, strict=True)))
        variances.append(np.var([cosine(v[i], v[i + 1]) for i in range(layers - 1)]))
    result: Floats = sum(w * x for w, x in zip(variances, vectors, strict=True)) / sum(variances)
    return result


@pytest.mark.parametrize(("start", "window"), [(0, 2), (1, 2), (1, 1), (0, 5)])
def test_sbert_wk_equals_its_paper(plm: Callable[[str], Any], start: int, window: int) -> None:
    model = plm("bert")
    head = SbertWk(start, window)
    tokens = pad(model.tokenize(TEXTS).ids, model.pad_id)
    states = model(tokens, Needs(since=0))
    assert sorted(states.hidden) == [0, 1, 2, 3]
    found = head(model(tokens, head.needs)).double().numpy()
    for row, vector in enumerate(found):
        n = int(tokens.mask[row].sum())
        sentence = torch.stack(states.stack(range(start, 4)))[:, row, :n].double().numpy()
        wanted = sbert_wk(sentence, window)
        assert np.allclose(vector, wanted, atol=1e-5 * np.abs(wanted).max())


def test_sbert_wk_sees_what_changes() -> None:
    """A token that turns between layers weighs all, one that only grows weighs nothing."""
    still = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).T * torch.tensor([[1.0, 0.0, 0.0]])
    turning = torch.tensor([[1.0, 0, 0], [1.0, 0.1, 0], [0, 1.0, 0], [0.0, 1.0, 0.3]])
    stacked = torch.stack([still, turning]).unsqueeze(0).double()
    weights = importance(stacked)
    assert weights[0, 0] == pytest.approx(0, abs=1e-15)
    cosines = [cosine(turning[i].numpy(), turning[i + 1].numpy()) for i in range(3)]
    assert weights[0, 1] == pytest.approx(np.var(cosines))
    assert unified(stacked[:, 1:], 2).shape == (1, 1, 3)


def test_sbert_wk_needs_three_layers(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    for start, found in ((2, 2), (4, 0)):
        head = SbertWk(start)
        states = model(pad(model.tokenize(TEXTS).ids, 0), head.needs)
        message = f"from layer {start} on this model has {found} up to 3: set pooling.start to 1"
        with pytest.raises(UserError, match=message):
            head(states)
    with pytest.raises(UserError, match=r"pooling\.start is -1: give a whole number from 0"):
        SbertWk(-1)
    with pytest.raises(UserError, match=r"pooling\.window is 0: give a whole number from 1"):
        SbertWk(1, 0)


def impacts(model: Any, ids: list[int], words: list[int], mask_id: int) -> Floats:
    """F[i, j] of Wu et al.: i hidden, then i and j hidden; how far the state at i moves."""

    def state(at: int, *places: int) -> Floats:
        given = [mask_id if p in places else i for p, i in enumerate(ids)]
        with torch.no_grad():
            last: Floats = model(torch.tensor([given])).last_hidden_state[0, at].double().numpy()
        return last

    matrix = np.zeros((len(ids), len(ids)))
    for i in words:
        for j in words:
            if i != j:
                matrix[i, j] = np.sqrt(np.sum((state(i, i) - state(i, i, j)) ** 2))
    return matrix


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_impact_equals_its_paper(masked: Callable[[str], Path], family: str) -> None:
    model = AutoModel.from_pretrained(masked(family), attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(masked(family))
    encoder = whitepool.load(masked(family), pooling="impact", device="cpu")
    found = encoder.encode(TEXTS)
    for text, vector in zip(TEXTS, found, strict=True):
        ids = tokenizer(text)["input_ids"]
        words = list(range(1, len(ids) - 1))
        matrix = impacts(model, ids, words, tokenizer.mask_token_id)
        weights = np.zeros(len(ids))
        for j in words:
            weights[j] = np.mean([matrix[i, j] for i in words if i != j]) if len(words) > 1 else 1
        weights /= weights.sum()
        with torch.no_grad():
            states = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
        layers = [states[i][0].double().numpy() for i in (0, -1)]
        wanted = sum(weights @ layer for layer in layers) / 2
        assert np.allclose(vector, wanted, atol=1e-4)


def test_impact_in_small_passes_and_a_padded_batch(
    masked: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plm = FrozenPLM.from_pretrained(path=masked("bert"))
    head = bind(LinearPooling(Impact(), [0, -1]), plm, Frame())
    tokens = pad(plm.tokenize(TEXTS).ids, plm.pad_id)
    whole = head(plm(tokens, head.needs))
    monkeypatch.setattr("whitepool.pooling.impact.BUDGET", 1)
    assert torch.allclose(head(plm(tokens, head.needs)), whole, atol=1e-5)
    assert isinstance(head, LinearPooling)
    weights = head.tokens(plm(tokens, head.needs))
    assert torch.allclose(weights.sum(1), torch.ones(len(TEXTS)))
    assert not weights[~tokens.mask].any()
    assert not weights[:, 0].any()  # [CLS]


def test_impact_is_capped_and_needs_a_mask_token(
    masked: Callable[[str], Path], checkpoint: Callable[[str], Path]
) -> None:
    capped = LinearPooling(Impact(cap=6), [-1])
    encoder = whitepool.load(masked("bert"), pooling=capped, device="cpu")
    assert np.isfinite(encoder.encode("a dog runs")).all()
    with pytest.raises(
        UserError, match=r"a text has 10 tokens, .* 55 times, and .* is 6: raise it"
    ):
        encoder.encode(TEXTS)
    with pytest.raises(UserError, match=r"pooling=impact hides tokens .* model .* has none"):
        whitepool.load(checkpoint("gpt2"), pooling="impact", device="cpu")
    with pytest.raises(UserError, match=r"pooling\.cap is 0: give a whole number from 1"):
        Impact(0)
    with pytest.raises(UserError, match="which a grid does once for all"):
        Impact()(None)  # type: ignore[arg-type]


def test_the_work_that_impact_is() -> None:
    """One copy for each token hidden and each pair of them."""
    lengths = [3, 1, 5]
    copies = [len([(i, j) for i in range(n) for j in range(i, n)]) for n in lengths]
    tokens = sum(n * c for n, c in zip(lengths, copies, strict=True))
    assert work(lengths) == (sum(copies), tokens)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans())
@settings(max_examples=50, deadline=None)
def test_weights_by_position(lengths: list[int], left: bool) -> None:
    """SGPT's i / sum i, whatever the padding."""
    longest = max(lengths)
    mask = torch.tensor(
        [[(j >= longest - n) if left else (j < n) for j in range(longest)] for n in lengths]
    )
    weights = ByPosition()(States(1, mask, torch.zeros(mask.shape).long())).numpy()
    for row, n in zip(weights, lengths, strict=True):
        wanted = [i / sum(range(1, n + 1)) for i in range(1, n + 1)]
        gap = [0.0] * (longest - n)
        assert np.allclose(row, [*gap, *wanted] if left else [*wanted, *gap], atol=1e-6)


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=6), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_words_leave_special_tokens_out(ids: list[list[int]]) -> None:
    """Ids 0 and 3 are special; a text of those alone weighs nothing."""
    tokens = pad(ids, 5)
    states = States(1, tokens.mask, tokens.ids, added=(0, 3))
    for row, sequence in zip(Words()(states).numpy(), ids, strict=True):
        kept = sum(i not in (0, 3) for i in sequence)
        wanted = [0.0 if i in (0, 3) else 1 / kept for i in sequence]
        assert np.allclose(row, [*wanted, *[0.0] * (len(row) - len(sequence))])
