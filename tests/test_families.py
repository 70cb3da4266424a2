"""Every family through one code path: layers, diagonals, and indifference to batching."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.pooling import (
    AttentionDiagonal,
    FirstToken,
    LastToken,
    LinearPooling,
    MaxPooling,
    ModelPooler,
    Uniform,
)
from whitepool.states import Needs, Tokens, pad

from tiny import DECODERS, FAMILIES, WORDS

WITH_POOLER = (
    "bert",
    "roberta",
    "albert",
    "layoutlm",
    "squeezebert",
    "mpnet",
    "xlm_roberta",
    "nezha",
)
HEADS: dict[str, Any] = {
    "cls": LinearPooling(FirstToken(), [-1]),
    "avg": LinearPooling(Uniform(), [-1]),
    "first_last": LinearPooling(Uniform(), [1, -1]),
    "first_last_0": LinearPooling(Uniform(), [0, -1]),
    "top2": LinearPooling(Uniform(), [-2, -1]),
    "static": LinearPooling(Uniform(), ["static"]),
    "last_token": LinearPooling(LastToken(), [-1]),
    "max": MaxPooling([-1]),
    "ditto": LinearPooling(AttentionDiagonal(1, 2), [0, -1]),
    "ditto_normalized": LinearPooling(AttentionDiagonal(0, 3, normalize=True), [0, -1]),
}
TEXTS = [
    "a man plays guitar in the park",
    "dog",
    "the cat is not on the food , the dog eats the food .",
    "two woman",
]


def heads_of(family: str) -> dict[str, Any]:
    return HEADS | ({"pooler": ModelPooler()} if family in WITH_POOLER else {})


def encode(model: Any, tokens: Tokens, heads: dict[str, Any]) -> dict[str, torch.Tensor]:
    needs = Needs()
    for head in heads.values():
        needs |= head.needs
    states = model(tokens, needs)
    return {name: head(states) for name, head in heads.items()}


def flip_padding(tokens: Tokens) -> Tokens:
    """The same sentences with the padding moved to the left."""
    lengths = tokens.mask.sum(1).tolist()
    width = tokens.mask.shape[1]
    ids = torch.stack([row.roll(width - n) for row, n in zip(tokens.ids, lengths, strict=True)])
    mask = torch.stack([row.roll(width - n) for row, n in zip(tokens.mask, lengths, strict=True)])
    return Tokens(ids, mask)


def eager(checkpoint: Any, family: str) -> Any:
    """The model as transformers loads it, with every hidden state and attention kept."""
    import transformers

    loader = transformers.T5EncoderModel if family == "t5" else transformers.AutoModel
    return loader.from_pretrained(checkpoint(family), attn_implementation="eager").eval()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1]], ids=["padded", "unpadded"])
def test_layers_and_diagonals_equal_eager(
    family: str, texts: list[str], plm: Any, checkpoint: Any
) -> None:
    """Without padding transformers passes no mask, and decoders must be causal all the same."""
    model = plm(family)
    tokens = pad(model.tokenize(texts).ids, model.pad_id)
    pairs = tuple((block, head) for block in range(model.depth) for head in range(model.heads))
    states = model(tokens, Needs(tuple(range(model.depth + 1)), pairs))
    with torch.no_grad():
        expected = eager(checkpoint, family)(
            input_ids=tokens.ids,
            attention_mask=tokens.mask.long(),
            output_hidden_states=True,
            output_attentions=True,
        )
    for layer, hidden in enumerate(expected.hidden_states):
        gap = (states.hidden[layer] - hidden)[tokens.mask].abs().max()
        assert gap <= 2e-6 * hidden[tokens.mask].abs().max().clamp(min=1), layer
    assert len(expected.attentions) == model.depth
    for (block, head), diagonal in states.diagonals.items():
        probabilities = expected.attentions[block]
        if family == "squeezebert":  # transformers returns its scores before the softmax
            probabilities = probabilities.softmax(-1)
        wanted = probabilities[:, head].diagonal(dim1=-2, dim2=-1)
        assert torch.allclose(diagonal[tokens.mask], wanted[tokens.mask], atol=2e-6)
        assert not diagonal[~tokens.mask].any()


@pytest.mark.parametrize("family", FAMILIES)
def test_static_is_the_raw_table(family: str, plm: Any) -> None:
    model = plm(family)
    tokens = pad(model.tokenize(TEXTS).ids, model.pad_id)
    states = model(tokens, Needs(("static",)))
    assert torch.equal(
        states.hidden["static"], model.model.get_input_embeddings().weight[tokens.ids]
    )
    assert list(states.hidden) == ["static"]


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_vectors_do_not_depend_on_the_batch(family: str, plm: Any, data: st.DataObject) -> None:
    """Padding, its side, the pad id, batch size and order change no vector."""
    model, heads = plm(family), heads_of(family)
    sentence = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
    texts = data.draw(st.lists(sentence, min_size=2, max_size=5))
    ids = model.tokenize(texts).ids
    alone = [encode(model, pad([i], model.pad_id), heads) for i in ids]
    order = data.draw(st.permutations(range(len(ids))))
    width = max(map(len, ids)) + data.draw(st.integers(0, 7))
    # Models that count positions from the padding index must be padded with it.
    counting = family in ("roberta", "mpnet", "xlm_roberta")
    pad_id = model.pad_id if counting else data.draw(st.integers(0, 20))
    tokens = pad([ids[i] for i in order], pad_id, length=width)
    if data.draw(st.booleans()):
        tokens = flip_padding(tokens)
    for name, vectors in encode(model, tokens, heads).items():
        wanted = torch.cat([alone[i][name] for i in order])
        scale = wanted.abs().max().clamp(min=1)
        assert torch.isfinite(vectors).all()
        assert (vectors - wanted).abs().max() <= 1e-5 * scale, name


@pytest.mark.parametrize("family", FAMILIES)
def test_stops_after_the_last_layer_needed(family: str, plm: Any) -> None:
    """A head on layer 1 runs one block; a static one runs none."""
    model = plm(family)
    tokens = pad(model.tokenize(TEXTS).ids, model.pad_id)
    ran: list[int] = []
    linears = [m for m in model.model.modules() if isinstance(m, torch.nn.Linear | torch.nn.Conv1d)]
    linears += [m for m in model.model.modules() if type(m).__name__ == "Conv1D"]
    hooks = [m.register_forward_hook(lambda *_: ran.append(1)) for m in linears]
    try:
        counts = []
        for layers in (("static",), (0,), (1,), (2,), (3,)):
            ran.clear()
            model(tokens, Needs(layers))
            counts.append(len(ran))
    finally:
        for hook in hooks:
            hook.remove()
    per_block = counts[2] - counts[1]
    assert counts[0] == 0
    assert per_block > 0
    assert counts[3] - counts[2] == per_block
    assert counts[4] - counts[3] >= per_block


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "mpnet"])
def test_wrong_layer_or_head_names_the_depth(family: str, plm: Any) -> None:
    model = plm(family)
    with pytest.raises(UserError, match=r"layer 4 does not exist: this model has 3 blocks"):
        model.check(Needs((4,)))
    with pytest.raises(UserError, match=r"layer -5 does not exist"):
        model.check(Needs((-5,)))
    with pytest.raises(UserError, match=rf"model {family} has 3 blocks and 4 heads"):
        model.check(Needs((), ((0, 4),)))


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - set(WITH_POOLER)))
def test_models_without_pooler_say_so(family: str, plm: Any) -> None:
    with pytest.raises(UserError, match="has no pooler: use pooling=cls, avg or another"):
        plm(family).check(Needs(pooler=True))


@pytest.mark.parametrize("family", DECODERS)
def test_decoders_without_pad_token(family: str, plm: Any) -> None:
    model = plm(family)
    assert model.tokenizer.pad_token_id is None
    assert 0 <= model.pad_id < len(model.tokenizer)
