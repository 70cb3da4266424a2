"""Heads that read a template, against the model run by hand on ids put together by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

import whitepool
from whitepool.errors import UserError
from whitepool.framing import Frame, Parts, check_frame, finished, parts_of, with_mask
from whitepool.longtext import cut, framed
from whitepool.plm import FrozenPLM
from whitepool.pooling import (
    DebiasedPrompt,
    LastToken,
    LinearPooling,
    MaskToken,
    SecondCopy,
    Uniform,
)
from whitepool.pooling.binding import bind
from whitepool.states import States

TEXTS = ["a dog runs", "the cat", "a man eats the food in the park", "not a guitar ."]
PROMPT = "on the : {text} is [MASK] ."
ECHO = "on the : {text} in is : {text} ."


def by_hand(folder: Path) -> tuple[Any, Any]:
    """The model as transformers has it, and its tokenizer."""
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    return model, AutoTokenizer.from_pretrained(folder)


def hidden(model: Any, ids: list[int], positions: list[int] | None = None) -> list[Any]:
    given = {} if positions is None else {"position_ids": torch.tensor([positions])}
    with torch.no_grad():
        found = model(torch.tensor([ids]), output_hidden_states=True, **given)
    return [h[0].double().numpy() for h in found.hidden_states]


@pytest.mark.parametrize("family", ["bert", "roberta", "modernbert"])
def test_prompt_reads_the_mask_slot(masked: Callable[[str], Path], family: str) -> None:
    model, tokenizer = by_hand(masked(family))
    encoder = whitepool.load(masked(family), pooling="prompt", template=PROMPT, device="cpu")
    wanted = []
    for text in TEXTS:
        end = text if text.endswith(".") else f"{text}."
        ids = tokenizer(f"on the : {end} is {tokenizer.mask_token} .")["input_ids"]
        wanted.append(hidden(model, ids)[-1][ids.index(tokenizer.mask_token_id)])
    assert np.allclose(encoder.encode(TEXTS), np.stack(wanted), atol=1e-4)


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_the_debiased_prompt_subtracts_the_template(
    masked: Callable[[str], Path], family: str
) -> None:
    model, tokenizer = by_hand(masked(family))
    head = DebiasedPrompt([1, -1])
    encoder = whitepool.load(
        masked(family), pooling=head, template=PROMPT, full_stop=True, device="cpu"
    )
    bare = {"add_special_tokens": False}
    before = tokenizer("on the :", **bare)["input_ids"]
    after = tokenizer(f"is {tokenizer.mask_token} .", **bare)["input_ids"]
    first = 2 if family == "roberta" else 0  # its positions begin behind the padding index
    wanted = []
    for text in TEXTS:
        body = tokenizer(text if text.endswith(".") else f"{text}.", **bare)["input_ids"]
        cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        full = [cls, *before, *body, *after, sep]
        alone = [cls, *before, *after, sep]
        places = [i for i in range(len(full)) if not len(before) < i <= len(before) + len(body)]
        of_text = hidden(model, full)
        of_template = hidden(model, alone, [first + i for i in places])
        one, other = (ids.index(tokenizer.mask_token_id) for ids in (full, alone))
        wanted.append(sum(of_text[i][one] - of_template[i][other] for i in (1, -1)) / 2)
    assert np.allclose(encoder.encode(TEXTS), np.stack(wanted), atol=1e-4)
    assert np.allclose(encoder.encode(TEXTS[:1]), np.stack(wanted[:1]), atol=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "gemma3", "bert"])
def test_echo_averages_the_second_copy(masked: Callable[[str], Path], family: str) -> None:
    model, tokenizer = by_hand(masked(family))
    encoder = whitepool.load(masked(family), pooling="echo", template=ECHO, device="cpu")
    bare = {"add_special_tokens": False}
    before, between, after = (
        tokenizer(t, **bare)["input_ids"] for t in ("on the :", "in is :", ".")
    )
    opening = [tokenizer.cls_token_id] if family == "bert" else []
    closing = [tokenizer.sep_token_id] if family == "bert" else []
    wanted = []
    for text in TEXTS:
        body = tokenizer(text, **bare)["input_ids"]
        head = [*opening, *before, *body, *between]
        states = hidden(model, [*head, *body, *after, *closing])[-1]
        wanted.append(states[len(head) : len(head) + len(body)].mean(0))
    assert np.allclose(encoder.encode(TEXTS), np.stack(wanted), atol=1e-4)


def test_padding_does_not_matter(masked: Callable[[str], Path]) -> None:
    """A padded batch, on either side, gives what each text gives alone."""
    from whitepool.states import Tokens

    plm = FrozenPLM.from_pretrained(path=masked("bert"))
    for head, template in (
        (LinearPooling(MaskToken(), [-1]), PROMPT),
        (DebiasedPrompt(), PROMPT),
        (LinearPooling(SecondCopy(), [-1]), ECHO),
    ):
        frame = Frame(template)
        bound = bind(head, plm, frame)
        ids = framed(plm, 64, frame, apart=True)(TEXTS).ids
        alone = [
            bound(
                plm(Tokens(torch.tensor([i]), torch.ones(1, len(i), dtype=torch.bool)), head.needs)
            )
            for i in ids
        ]
        longest = max(map(len, ids))
        for left in (False, True):
            rows = [[0] * (longest - len(i)) + list(i) if left else [*i] + [0] * (longest - len(i))
                    for i in ids]  # fmt: skip
            mask = [[(j >= longest - len(i)) if left else (j < len(i)) for j in range(longest)]
                    for i in ids]  # fmt: skip
            together = bound(plm(Tokens(torch.tensor(rows), torch.tensor(mask)), head.needs))
            assert torch.allclose(together, torch.cat(alone), atol=1e-5)


@pytest.mark.parametrize("apart", [False, True])
def test_the_text_is_cut_and_never_the_template(masked: Callable[[str], Path], apart: bool) -> None:
    plm = FrozenPLM.from_pretrained(path=masked("bert"))
    long = "dog " * 30
    ids, truncated = framed(plm, 16, Frame(PROMPT), apart=apart)([long, "dog", " "])
    assert truncated == [True, False, False]
    (whole,) = plm.tokenize([f"on the : {'dog ' * 8} is , ."]).ids
    assert ids == [whole, *plm.tokenize(["on the : dog is , ."]).ids, ()]
    assert len(whole) == 16


def test_two_copies_share_the_room(masked: Callable[[str], Path]) -> None:
    plm = FrozenPLM.from_pretrained(path=masked("bert"))
    frame = Frame(ECHO)
    ids, truncated = framed(plm, 19, frame, apart=True)(["dog " * 30, "a cat"])
    assert truncated == [True, False]
    dogs = [sum(i == ids[0][4] for i in ids[0])]
    assert (len(ids[0]), dogs) == (9 + 2 * 5, [10])
    options: dict[str, Any] = {"max_length": 19, "template": ECHO, "apart": True}
    chunks = cut(plm, ["dog " * 12, "a"], long_text="chunk_mean", **options)
    assert (chunks.owner, chunks.weight) == ([0, 0, 0, 1], [5, 5, 2, 1])
    with pytest.raises(UserError, match=r"text 0 .* is over max_length 19: shorten it"):
        cut(plm, ["dog " * 12], long_text="error", **options)
    with pytest.raises(UserError, match="template take 9 tokens of max_length 10, which leaves"):
        cut(plm, ["dog"], max_length=10, template=ECHO, apart=True)


def test_parts_of_a_template(masked: Callable[[str], Path]) -> None:
    plm = FrozenPLM.from_pretrained(path=masked("bert"))
    one, two = parts_of(plm, PROMPT), parts_of(plm, ECHO)
    assert (one.slots, two.slots) == (1, 2)
    (body,) = plm.tokenize_bare(["a dog"])
    for parts, text in ((one, "on the : a dog is , ."), (two, "on the : a dog in is : a dog .")):
        assert [parts.around(body)] == plm.tokenize([text]).ids
        assert parts.length == len(parts.around(()))
    assert parts_of(plm, "{text}") == Parts((0,), None, (2,), "")


def test_a_full_stop_where_there_is_no_end() -> None:
    cases = ["a dog", "a dog.", "a dog ?", 'he said "no"', "it's '", "no!", "a dog  ", " ", ""]
    wanted = ["a dog.", "a dog.", "a dog ?", 'he said "no"', "it's '", "no!.", "a dog.", " ", ""]
    assert [finished(text) for text in cases] == wanted


def test_a_model_without_a_mask_token(
    checkpoint: Callable[[str], Path], plm: Callable[[str], Any]
) -> None:
    message = r"the template has a \[MASK\] slot and model .* has no mask token: take a masked"
    for pooling in ("prompt", "prompt_debiased"):
        with pytest.raises(UserError, match=message):
            whitepool.load(checkpoint("gpt2"), pooling=pooling, device="cpu")
    with pytest.raises(UserError, match=message):
        with_mask("{text} [MASK]", plm("gpt2"))
    assert with_mask("{text}", plm("gpt2")) == "{text}"


def test_templates_that_do_not_go_with_the_head() -> None:
    mask, echo = LinearPooling(MaskToken(), [-1]), LinearPooling(SecondCopy(), [-1])
    for pooling in (mask, DebiasedPrompt()):
        for template in ("{text}", "{text} [MASK] [MASK]"):
            with pytest.raises(UserError, match=r"vector at \[MASK\] .* with \[MASK\] in it once"):
                check_frame(pooling, Frame(template))
        check_frame(pooling, Frame("{text} [MASK]"))
    with pytest.raises(UserError, match=r"give a text with {text} in it twice"):
        check_frame(echo, Frame("{text}"))
    with pytest.raises(UserError, match=r"give a text with {text} in it once"):
        check_frame(LinearPooling(Uniform(), [-1]), Frame("{text} {text}"))
    check_frame(LinearPooling(LastToken(), [-1]), Frame("{text} [MASK]"))


def test_a_text_with_a_mask_token_of_its_own(masked: Callable[[str], Path]) -> None:
    encoder = whitepool.load(masked("bert"), pooling="prompt", template=PROMPT, device="cpu")
    with pytest.raises(UserError, match="a text has 2 mask tokens and pooling=prompt reads one"):
        encoder.encode("dogs , cats")
    none = States(1, torch.ones(1, 2, dtype=torch.bool), torch.zeros(1, 2).long())
    with pytest.raises(UserError, match="this model has none"):
        MaskToken()(none)


def test_a_model_that_takes_no_positions(checkpoint: Callable[[str], Path]) -> None:
    plm = FrozenPLM.from_pretrained(path=checkpoint("t5"))
    with pytest.raises(UserError, match=r"prompt_debiased gives tokens other positions"):
        bind(DebiasedPrompt(), plm, Frame(PROMPT))


def test_unbound_heads_say_so() -> None:
    states: Any = None
    with pytest.raises(UserError, match="pooling=echo knows no template"):
        SecondCopy()(states)
    with pytest.raises(UserError, match="pooling=prompt_debiased knows no template"):
        DebiasedPrompt()(states)


@pytest.mark.parametrize("layers", [[], 3, "static"])
def test_layers_of_the_debiased_prompt(layers: Any) -> None:
    with pytest.raises(UserError, match="give a list of layers"):
        DebiasedPrompt(layers)
