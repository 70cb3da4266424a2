"""idf and SIF from a corpus, against counts and formulas written as plain loops."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from whitepool.data.corpus import Corpus, Source, Text
from whitepool.errors import UserError
from whitepool.pooling import Idf, LinearPooling, Sif, Uniform
from whitepool.pooling.estimated import is_estimated
from whitepool.pooling.tokens import VocabularyWeights
from whitepool.token_counts import count_tokens, with_corpus

TEXTS = ["the dog runs", "the the cat", "", "a zebra", "the dog runs"]
WORDS = [text.split() for text in TEXTS if text]


def corpus(*texts: str) -> Corpus:
    def read() -> Iterator[Text]:
        return (Text(text, "made") for text in texts)

    return Corpus("made", (Source("made", read),))


def ids(model: Any, word: str) -> int:
    (found,) = model.tokenize([word]).ids
    return int(found[1])  # between [CLS] and [SEP]


@pytest.mark.parametrize("window", [1, 2, 100])
def test_counts(plm: Callable[[str], Any], window: int) -> None:
    model = plm("bert")
    counts, read = count_tokens(corpus(*TEXTS), model, 64, window)
    assert (counts.texts, read["texts"], read["blank"]) == (4, 4, 1)
    occurrences = Counter(word for words in WORDS for word in words)
    texts_with = Counter(word for words in WORDS for word in set(words))
    assert ids(model, "zebra") == model.tokenizer.unk_token_id
    for word, times in occurrences.items():
        assert counts.occurrences[ids(model, word)] == times
        assert counts.texts_with[ids(model, word)] == texts_with[word]
    assert counts.occurrences.sum() == sum(occurrences.values())


@pytest.mark.parametrize("name", ["idf", "sif"])
def test_weights(plm: Callable[[str], Any], name: str) -> None:
    model = plm("bert")
    head = LinearPooling(Idf() if name == "idf" else Sif(0.01), [1, -1])
    assert is_estimated(head)
    fitted, read = with_corpus(head, corpus(*TEXTS), model, 64, 100)
    assert read is not None
    assert isinstance(fitted, LinearPooling)
    assert isinstance(fitted.tokens, VocabularyWeights)
    assert fitted.layers == head.layers
    assert not is_estimated(fitted)
    weights = fitted.tokens.weights
    words = [word for words in WORDS for word in words]
    for word in {*words, "park"}:
        if name == "idf":
            wanted = math.log(5 / (1 + sum(word in words for words in WORDS))) + 1
        else:
            wanted = 0.01 / (0.01 + words.count(word) / len(words))
        assert float(weights[ids(model, word)]) == pytest.approx(wanted, rel=1e-12)
    assert weights[model.tokenizer.cls_token_id] == weights[model.tokenizer.sep_token_id] == 0


def test_texts_are_cut_before_they_are_counted(plm: Callable[[str], Any]) -> None:
    counts, _ = count_tokens(corpus("dog dog dog dog cat"), plm("bert"), 4, 9)
    assert counts.occurrences.sum() == 2


def test_other_heads_need_no_corpus(plm: Callable[[str], Any]) -> None:
    head = LinearPooling(Uniform(), [-1])
    assert with_corpus(head, None, plm("bert"), 64, 9) == (head, None)


def test_without_a_corpus(plm: Callable[[str], Any]) -> None:
    head = LinearPooling(Idf(), [-1])
    with pytest.raises(UserError, match="this pooling weighs tokens by how often a corpus"):
        with_corpus(head, None, plm("bert"), 64, 9)
    with pytest.raises(UserError, match="has no text but blank ones"):
        with_corpus(head, corpus(" "), plm("bert"), 64, 9)
    with pytest.raises(UserError, match="pooling=idf weighs tokens by a corpus"):
        Idf()(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("smoothing", [0, -1.0, math.nan])
def test_smoothing(smoothing: float) -> None:
    with pytest.raises(UserError, match=r"pooling\.smoothing is .*give a number above 0"):
        Sif(smoothing)


def test_a_corpus_of_special_tokens_alone() -> None:
    from whitepool.pooling.estimated import TokenCounts

    zero = torch.zeros(3, dtype=torch.float64)
    with pytest.raises(UserError, match="no token but special ones"):
        Sif().estimate(TokenCounts(1, zero, zero, zero.bool(), zero.bool()))
