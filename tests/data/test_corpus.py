from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest

from whitepool.data import PairSet, Task
from whitepool.data.corpus import Corpus, Source, Text, chained, of_pairs
from whitepool.errors import UserError


def source(*texts: str) -> Source:
    def read() -> Iterator[Text]:
        return (Text(text, f"made, line {i}") for i, text in enumerate(texts, start=1))

    return Source("made", read)


def texts(corpus: Corpus) -> list[str]:
    return [text.text for text in corpus.read()]


def test_blank_texts_are_left_out_and_counted() -> None:
    reading = Corpus("c", (source("a", "", " \t", "b"), source("a"))).read()
    assert [text.text for text in reading] == ["a", "b", "a"]
    assert (reading.read, reading.blank, reading.used) == (5, 2, 3)
    assert reading.describe() == {
        "corpus": "c",
        "sources": ["made", "made"],
        "limit": None,
        "seed": None,
        "read": 5,
        "blank": 2,
        "texts": 3,
        "sha256": hashlib.sha256(b"a\0b\0a\0").hexdigest(),
    }


def test_a_corpus_is_read_as_often_as_asked() -> None:
    corpus = Corpus("c", (source(*"abcdefgh"),), limit=3, seed=1)
    first = texts(corpus)
    assert len(first) == 3
    assert texts(corpus) == first


def test_blank_texts_do_not_enter_the_sample() -> None:
    corpus = Corpus("c", (source(*["", "a"] * 50),), limit=40)
    assert texts(corpus) == ["a"] * 40


def test_an_empty_source_is_named() -> None:
    with pytest.raises(UserError, match="made is empty: give a source with at least one text"):
        texts(Corpus("c", (source("a"), source())))


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_limits(limit: object) -> None:
    with pytest.raises(UserError, match=r"corpus\.limit is"):
        Corpus("c", (source("a"),), limit=limit)  # type: ignore[arg-type]


def test_reading_is_lazy() -> None:
    drawn = 0

    def read() -> Iterator[Text]:
        nonlocal drawn
        while True:
            drawn += 1
            yield Text("a", "endless")

    reading = Corpus("c", (Source("endless", read),)).read()
    assert drawn == 0
    next(reading)
    next(reading)
    assert drawn == 2


def test_pairs() -> None:
    def pairs(split: str, *rows: tuple[str, str]) -> PairSet:
        first, second = zip(*rows, strict=True)
        return PairSet("t", "", split, first, second, np.zeros(len(rows)), f"{split}.tsv", "0")

    task = Task("t", (pairs("test", ("a", "b"), ("a", "c")),), (pairs("dev", ("d", "e")),))
    assert texts(of_pairs([task])) == ["a", "b", "a", "c"]
    both = of_pairs([task], other_splits=True)
    assert texts(both) == ["a", "b", "a", "c", "d", "e"]
    assert [text.where for text in both.read()][-1] == "dev.tsv, pair 1"
    assert texts(chained("two", [both, of_pairs([task])])) == [*"abacde", *"abac"]
