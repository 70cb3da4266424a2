"""A pass over a corpus in Lightning: its moments, laziness, memory, faults."""

from __future__ import annotations

import signal
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra import compose, initialize_config_dir
from hypothesis import given, settings
from hypothesis import strategies as st

from whitepool.corpus_pass import corpus_moments
from whitepool.data.corpus import Corpus, Source, Text
from whitepool.data.streaming import CorpusStream
from whitepool.errors import UserError
from whitepool.module import SentenceEncoder
from whitepool.moments import Moments
from whitepool.pooling import LinearPooling, Uniform
from whitepool.states import pad

from tiny import WORDS

CONF = Path(__file__).resolve().parents[1] / "conf"
TEXTS = [
    *("the dog runs", "a cat", "The  dog runs", "", "the dog runs"),
    *("two woman eats food in the park", " ", "music is not a man", "a cat"),
]


def corpus(texts: Any, **options: Any) -> Corpus:
    """``texts`` is a list, or a function that gives an iterator."""

    def read() -> Iterator[Text]:
        found = texts() if callable(texts) else texts
        return (Text(text, f"made, line {i}") for i, text in enumerate(found, start=1))

    return Corpus("made", (Source("made", read),), **options)


def run(model: Any, what: Corpus, folder: Path, **options: Any) -> Any:
    overrides = ["trainer=cpu", "trainer.enable_progress_bar=false", "output_dir=out"]
    overrides += [f"{key}={value}" for key, value in options.items()]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("train", overrides=overrides)
    encoder = SentenceEncoder(model, LinearPooling(Uniform(), [1, -1]))
    return corpus_moments(config, encoder, what, model.max_length, folder=folder)


def by_hand(model: Any, texts: list[str]) -> Moments:
    """Padded, one text at a time, repeated as often as it occurs."""
    head = LinearPooling(Uniform(), [1, -1])
    ids = [sequence for sequence in model.tokenize(texts).ids if sequence]
    rows = [head(model(pad([sequence], 1), head.needs)) for sequence in ids]
    return Moments(rows[0].shape[1]).update(torch.cat(rows))


@pytest.mark.parametrize(("window", "batch_tokens"), [(1, 4096), (4, 12), (8192, 1), (8192, 4096)])
def test_moments_equal_one_text_at_a_time(
    plm: Callable[[str], Any], tmp_path: Path, window: int, batch_tokens: int
) -> None:
    model = plm("bert")
    got = run(model, corpus(TEXTS), tmp_path, window=window, batch_tokens=batch_tokens)
    wanted = by_hand(model, TEXTS)
    assert got.moments.count == wanted.count == 7
    assert torch.allclose(got.moments.mean, wanted.mean, atol=1e-6)
    assert torch.allclose(got.moments.scatter, wanted.scatter, atol=1e-4)
    assert (got.description["read"], got.description["blank"]) == (9, 2)
    assert got.moments.mean.dtype == torch.float64


@given(st.lists(st.sampled_from(["", "a", "the dog", "The Dog", "in on a park is"]), max_size=40),
       st.integers(1, 9), st.integers(1, 30))  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_weights_of_the_stream_are_the_repeats(
    plm: Callable[[str], Any], texts: list[str], window: int, batch_tokens: int
) -> None:
    model = plm("bert")
    stream = CorpusStream(
        corpus([*texts, "dog"]), model.tokenize, batch_tokens=batch_tokens, window=window
    )
    found: dict[tuple[int, ...], float] = {}
    for batch, weight, examples in stream:
        sequences = torch.split(batch.ids, list(batch.lengths))
        assert list(batch.lengths) == sorted(batch.lengths, reverse=True)
        assert len(batch.lengths) == 1 or sum(batch.lengths) <= batch_tokens
        assert len({tuple(s.tolist()) for s in sequences}) == len(weight) == len(examples)
        for sequence, times, text in zip(sequences, weight, examples, strict=True):
            key = tuple(sequence.tolist())
            assert model.tokenize([text.text]).ids == [key]
            found[key] = found.get(key, 0) + float(times)
    wanted: dict[tuple[int, ...], float] = {}
    for ids in model.tokenize([*texts, "dog"]).ids:
        if ids:
            wanted[ids] = wanted.get(ids, 0) + 1
    assert found == wanted


def test_no_window_is_read_before_the_last_is_encoded(plm: Callable[[str], Any]) -> None:
    drawn = 0

    def endless() -> Iterator[str]:
        nonlocal drawn
        while True:
            drawn += 1
            yield WORDS[drawn % len(WORDS)]

    stream = CorpusStream(corpus(endless), plm("bert").tokenize, batch_tokens=9, window=10)
    batches = iter(stream)
    assert drawn == 0
    seen = 0.0
    while seen < 50:
        seen += float(next(batches).weight.sum())
        assert drawn - seen <= 10


def test_memory_does_not_grow_with_the_corpus(plm: Callable[[str], Any], tmp_path: Path) -> None:
    """300 and 9,000 texts, all different; the vectors of 9,000 would hold 1.1 MB."""
    model = plm("bert")
    peaks = []
    run(model, corpus(TEXTS), tmp_path)
    for n in (300, 9000):

        def different(n: int = n) -> Iterator[str]:
            for i in range(n):
                yield " ".join(WORDS[i // 18**place % 18] for place in range(5))

        tracemalloc.start()
        got = run(model, corpus(different), tmp_path, window=100)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert got.moments.count == n
    assert peaks[1] < peaks[0] + 5e5


def test_cut_texts_are_counted_and_said(
    plm: Callable[[str], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    long = "the dog " * 60
    with caplog.at_level("INFO"):
        got = run(plm("bert"), corpus([long, "a cat", long]), tmp_path)
    assert got.description["truncated"] == 2
    assert "2 texts are cut to 64 tokens" in caplog.text
    assert "3 texts of corpus made in" in caplog.text


def test_a_sample(
    plm: Callable[[str], Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = plm("bert")
    what = corpus(WORDS * 9, limit=20, seed=3)
    with caplog.at_level("INFO"):
        got = run(model, what, tmp_path)
    wanted = by_hand(model, [text.text for text in what.read()])
    assert got.moments.count == 20
    assert torch.allclose(got.moments.mean, wanted.mean, atol=1e-6)
    assert f"(a sample of {9 * len(WORDS)})" in caplog.text
    with caplog.at_level("WARNING"):
        run(model, corpus(["a", "dog"], limit=5), tmp_path)
    assert "corpus.limit=5, but there are only 2 texts: all are used." in caplog.text


def test_blank_texts_alone(plm: Callable[[str], Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="corpus=made has no text but blank ones"):
        run(plm("bert"), corpus(["", " "]), tmp_path)


def test_a_vector_that_is_not_finite_is_named(
    plm: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = plm("bert")
    row = model.tokenizer.convert_tokens_to_ids("guitar")
    table = model.model.get_input_embeddings().weight
    before = table.data[row].clone()
    table.data[row] = float("nan")
    try:
        with pytest.raises(UserError, match="made, line 2: the vector of 'a guitar' is not finite"):
            run(model, corpus(["a dog", "a guitar", "two"]), tmp_path)
    finally:
        table.data[row] = before


def test_interruption_is_a_keyboard_interrupt(plm: Callable[[str], Any], tmp_path: Path) -> None:
    def interrupted() -> Iterator[str]:
        yield "a dog"
        raise KeyboardInterrupt

    handler = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(plm("bert"), corpus(interrupted), tmp_path)
    finally:
        signal.signal(signal.SIGINT, handler)


@pytest.mark.parametrize(("name", "value"), [("window", 0), ("batch_tokens", 0)])
def test_sizes(plm: Callable[[str], Any], tmp_path: Path, name: str, value: int) -> None:
    with pytest.raises(UserError, match=f"{name} is 0: give at least 1"):
        run(plm("bert"), corpus(["a"]), tmp_path, **{name: value})
