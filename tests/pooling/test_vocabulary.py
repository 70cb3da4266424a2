"""uSIF and the static filter, against counts and formulas written as plain loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from whitepool.data.corpus import Corpus, Source, Text
from whitepool.errors import UserError
from whitepool.framing import Frame
from whitepool.pooling import LinearPooling, StaticRemoveBiases, Usif
from whitepool.pooling.tokens import VocabularyWeights
from whitepool.token_counts import count_tokens, plain_ids, with_corpus

TEXTS = [
    "the dog runs in the park",
    "the the cat",
    "",
    "a zebra eats food .",
    "the dog runs",
    "a a",
]
WORDS = [word for text in TEXTS for word in text.split()]


def corpus(*texts: str) -> Corpus:
    def read() -> Iterator[Text]:
        return (Text(text, "made") for text in texts)

    return Corpus("made", (Source("made", read),))


def weights_of(tokens: Any, model: Any, *texts: str) -> torch.Tensor:
    fitted, _ = with_corpus(LinearPooling(tokens, ["static"]), corpus(*texts), model, 64, 100)
    assert isinstance(fitted, LinearPooling)
    assert isinstance(fitted.tokens, VocabularyWeights)
    return fitted.tokens.weights


def test_usif_equals_its_paper(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    some = ["the dog", "the cat", "the man", "", "the park", "the", "a guitar", "a", "food runs"]
    weights = weights_of(Usif(), model, *some)
    words = [word for text in some for word in text.split()]
    total, vocabulary, texts = len(words), len(set(words)), sum(bool(t) for t in some)
    share = {word: n / total for word, n in Counter(words).items()}
    threshold = 1 - (1 - 1 / vocabulary) ** (total / texts)
    alpha = sum(p > threshold for p in share.values()) / vocabulary
    assert 0 < alpha < 1
    a = (1 - alpha) / (alpha * 0.5 * vocabulary)
    for word in {*words, "eats"}:
        (ids,) = model.tokenize([word]).ids
        wanted = a / (0.5 * a + share.get(word, 0.0))
        assert float(weights[ids[1]]) == pytest.approx(wanted, rel=1e-12)
    assert weights[model.tokenizer.cls_token_id] == weights[model.tokenizer.sep_token_id] == 0


def test_a_corpus_that_gives_usif_no_weights(plm: Callable[[str], Any]) -> None:
    model = plm("bert")
    with pytest.raises(UserError, match="the corpus has 1 different tokens, too few for usif"):
        weights_of(Usif(), model, "dog dog")
    with pytest.raises(UserError, match=r"^0% of the 4 different tokens of the corpus are more"):
        weights_of(Usif(), model, "a dog runs in")
    with pytest.raises(UserError, match="pooling=usif weighs tokens by a corpus"):
        Usif()(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("frequent", [0, 1, 3, 99])
def test_the_static_filter(plm: Callable[[str], Any], frequent: int) -> None:
    """Of a word-level vocabulary every word begins a word; what goes is frequent or no word."""
    model = plm("bert")
    weights = weights_of(StaticRemoveBiases(frequent), model, *TEXTS)
    vocabulary = model.tokenizer.get_vocab()
    counts = Counter(word if word in vocabulary else "[UNK]" for word in WORDS)
    top = sorted(counts, key=lambda word: (-counts[word], vocabulary[word]))[:frequent]
    for word, i in vocabulary.items():
        kept = word.isalnum() and word not in top
        assert float(weights[i]) == kept, word


def test_pieces_by_the_marks_of_their_vocabularies() -> None:
    """WordPiece, byte-level BPE (whose é is two bytes) and SentencePiece."""
    vocabularies = {
        "man ##man Man man's ##s . 12 [CLS] é": {"man", "12", "é"},
        "Ġman man ĠMan Ġ. Ġ12 Ġman's Ġ Ã© ĠcafÃ© ĠÃī [CLS] Ġthe": {"Ġman", "Ġ12", "ĠcafÃ©", "Ġthe"},
        "▁man man ▁Man ▁. ▁12 ▁café [CLS] ▁É ▁": {"▁man", "▁12", "▁café"},
    }
    letters = {"ĠcafÃ©": " café", "ĠÃī": " É"}
    for text, kept in vocabularies.items():
        tokens = text.split()
        tokenizer = SimpleNamespace(
            get_vocab=lambda tokens=tokens: {t: i for i, t in enumerate(tokens)},
            convert_tokens_to_string=lambda some: letters.get(some[0], "?"),
            all_special_ids=[tokens.index("[CLS]")],
            unk_token_id=None,
        )
        table = SimpleNamespace(weight=torch.zeros(len(tokens), 2))
        model: Any = SimpleNamespace(
            tokenizer=tokenizer, model=SimpleNamespace(get_input_embeddings=lambda t=table: t)
        )
        found = plain_ids(model)
        assert {token for token, plain in zip(tokens, found, strict=True) if plain} == kept


def test_tokens_are_counted_in_the_template(plm: Callable[[str], Any]) -> None:
    counts, _ = count_tokens(corpus("dog", "cat"), plm("bert"), 64, 9, Frame("the {text}"))
    assert counts.occurrences.sum() == 4
    (ids,) = plm("bert").tokenize(["the"]).ids
    assert counts.occurrences[ids[1]] == 2


@pytest.mark.parametrize("frequent", [-1, 1.5, True, None])
def test_how_many_frequent_tokens(frequent: Any) -> None:
    with pytest.raises(UserError, match=r"pooling\.frequent is .*: give a whole number from 0"):
        StaticRemoveBiases(frequent)
    with pytest.raises(UserError, match="pooling=static_remove_biases weighs tokens by a corpus"):
        StaticRemoveBiases()(None)  # type: ignore[arg-type]
