"""Words as tokens against a slow reading of the rules, and through a whole model."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.recipe_model import describe_model, open_model
from whitepool.segment import IDEOGRAPHS, WordSplitter, segmented, with_splitter

from tiny import make_checkpoint

WORDS = ["天气", "今天", "北京", "北京大学", "学生", "hello", "é"]
VOCABULARY = [
    "[CLS]", "[PAD]", "[SEP]", "[UNK]", *WORDS[:4], "今", "天", "北", "京", "学", "生", "大",
    "hello", "##s", "hel", "##lo", "e", "w", "##w", "!", "。", ".", "1", "##1",
]  # fmt: skip


def cut(text: str) -> Sequence[str]:
    """The longest word of the list at each place, else a run of letters, else one character."""
    found, at = [], 0
    while at < len(text):
        here = [w for w in WORDS if text.startswith(w, at)]
        if here:
            word = max(here, key=len)
        else:
            end = at + 1
            while text[at].isascii() and text[at].isalnum() and text[at:end].isalnum():
                if end == len(text) or not (text[end].isascii() and text[end].isalnum()):
                    break
                end += 1
            word = text[at:end]
        found.append(word)
        at += len(word)
    return found


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, processors
    from transformers import PreTrainedTokenizerFast

    ids = {token: i for i, token in enumerate(VOCABULARY)}
    core = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        pad_token="[PAD]",
    )  # fmt: skip
    return with_splitter(fast, cut)


def slow(text: str) -> list[str]:
    """Lower case without accents; words; what is no token apart, then greedy word pieces."""
    text = unicodedata.normalize("NFD", text.lower())
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    tokens = []
    for word in cut(text):
        if word in VOCABULARY:
            tokens.append(word)
            continue
        spaced = ""
        for c in word:
            alone = any(a <= ord(c) <= b for a, b in IDEOGRAPHS)
            alone |= unicodedata.category(c)[0] == "P" or (c.isascii() and not c.isalnum())
            spaced += f" {c} " if alone and not c.isspace() else c
        for piece in spaced.split():
            parts, at = [], 0
            while at < len(piece):
                for end in range(len(piece), at, -1):
                    part = "##" * (at > 0) + piece[at:end]
                    if part in VOCABULARY:
                        break
                else:
                    parts = ["[UNK]"]
                    break
                parts.append(part)
                at = end
            tokens += parts
    return ["[CLS]", *tokens, "[SEP]"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("今天天气", "今天 天气"),
        ("北京大学学生", "北京大学 学 生"),  # the word is none of the vocabulary
        ("Hello。北京!", "hello 。 北京 !"),
        ("hels 今", "hel ##s 今"),
        ("北 京", "北 京"),
        ("é", "e"),
        ("大w1天.", "大 w ##1 天 ."),
        ("猫", "[UNK]"),
    ],
)
def test_words(tokenizer: Any, text: str, tokens: str) -> None:
    found = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
    assert found == ["[CLS]", *tokens.split(), "[SEP]"] == slow(text)


@settings(deadline=None)
@given(st.text(st.sampled_from("今天气北京大学生hHelosEéw1!。. \t猫"), max_size=12))
def test_any_text(tokenizer: Any, text: str) -> None:
    assert tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"]) == slow(text)


def test_spans_cover_the_text_but_for_white_space() -> None:
    text = "今天 天气。x 北京大学学生\n"
    spans = list(WordSplitter(cut, VOCABULARY).spans(text))
    assert "".join(text[a:b] for a, b in spans) == "".join(text.split())
    assert all(a < b for a, b in spans)


def test_faults(tokenizer: Any) -> None:
    with pytest.raises(UserError, match=r"model\.segmenter is 'thulac': choose jieba"):
        segmented(tokenizer, "thulac")
    with pytest.raises(UserError, match="this model's is a object: leave it out"):
        segmented(object(), "jieba")


def test_jieba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real jieba, without its guesses; a recipe keeps what cut the texts."""
    pytest.importorskip("jieba")
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    folder = make_checkpoint("bert", tmp_path / "model")
    plm = FrozenPLM.from_pretrained(path=folder, name="wobert", segmenter="jieba")
    vocabulary = plm.tokenizer.get_vocab()
    splitter = WordSplitter(lambda text: [text], vocabulary)
    assert list(splitter.spans("今天")) == [(0, 1), (1, 2)]
    assert (
        plm.tokenize(["a dog runs"]).ids
        == FrozenPLM.from_pretrained(path=folder).tokenize(["a dog runs"]).ids
    )
    spec = describe_model(plm, path=folder)
    assert spec.segmenter == "jieba"
    assert open_model(spec).segmenter == "jieba"
    assert list((tmp_path / "cache").glob("jieba.cache"))


def test_jieba_cuts_without_guesses() -> None:
    pytest.importorskip("jieba")
    from whitepool.segment import _jieba

    found = list(_jieba()("今天天气非常好。他来到了网易杭研大厦"))
    assert "".join(found) == "今天天气非常好。他来到了网易杭研大厦"
    assert "非常" in found
    assert found[-3:] == ["杭", "研", "大厦"]  # with guesses the first two are one word
