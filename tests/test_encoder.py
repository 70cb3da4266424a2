"""The Python API: vectors equal those of other paths, whatever the order, batches or repeats."""

from __future__ import annotations

import itertools
import logging
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import whitepool
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.moments import Moments
from whitepool.pooling.named import FRAMES, NAMES, named
from whitepool.recipe import Recipe
from whitepool.states import pad
from whitepool.whitening import Whitening

from tiny import WORDS

FAMILIES = ("bert", "mpnet", "gemma3")
# Those with a template, and those that tiny models are too shallow for or have no mask token for,
# are in tests/pooling.
PLAIN = [name for name in NAMES if name not in (*FRAMES, "impact", "sbert_wk")]


def texts(n: int, seed: int = 0, longest: int = 12) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, longest))) for _ in range(n)]


TEXTS = texts(40)
KNOWN = [*TEXTS, " "]


@pytest.fixture(scope="module")
def folder(checkpoint: Callable[[str], Path]) -> Path:
    return checkpoint("bert")


@pytest.fixture(scope="module")
def raw(folder: Path) -> Encoder:
    return whitepool.load(folder, pooling="first_last", device="cpu")


@pytest.fixture(scope="module")
def white(folder: Path) -> Encoder:
    return whitepool.load(folder, whitening="pca", k=8, device="cpu").fit(texts(200, seed=1))


@pytest.fixture(scope="module")
def alone(white: Encoder) -> Any:
    """Vectors of `KNOWN`, encoded one at a time, (text, 8)."""
    return np.stack([white.encode(text) for text in KNOWN])


def close(a: Any, b: Any) -> bool:
    """Equal up to float32's rounding, in units of the largest component."""
    return bool(np.abs(a - b).max(initial=0.0) <= 1e-5 * np.abs(b).max(initial=1.0))


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_equal_the_padded_path(
    checkpoint: Callable[[str], Path], plm: Callable[[str], Any], family: str, name: str
) -> None:
    """One padded batch of everything, through the other way into the model."""
    if name == "pooler" and family == "gemma3":
        pytest.skip("no pooler")
    ditto = {"block": 1, "head": 2} if name == "ditto" else {}
    encoder = whitepool.load(checkpoint(family), pooling=name, device="cpu", **ditto)
    found = encoder.encode(TEXTS, batch_tokens=50)
    head = named(name, **ditto)
    model = plm(family)
    tokens = pad(model.tokenize(TEXTS).ids, model.pad_id)
    expected = head(model(tokens, head.needs)).numpy()
    assert found.dtype == np.float32
    assert close(found, expected)


def test_vectors_equal_evaluates_bit_for_bit(raw: Encoder, plm: Callable[[str], Any]) -> None:
    import pytorch_lightning as pl

    from whitepool.data.datamodule import SentenceDataModule
    from whitepool.data.pairs import PairSet, Task
    from whitepool.data.table import SentenceTable
    from whitepool.module import SentenceEncoder

    first, second = tuple(TEXTS[:20]), (*TEXTS[20:39], "")
    pairs = PairSet("x", "", "test", first, second, np.arange(20.0), "here", "")
    model = plm("bert")
    table = SentenceTable.build([Task("x", (pairs,))], model.tokenize)
    module = SentenceEncoder(model, named("first_last"))
    trainer = pl.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False,
                         enable_checkpointing=False, enable_model_summary=False)  # fmt: skip
    trainer.test(module, SentenceDataModule(table, batch_tokens=60), verbose=False)
    found = raw.encode(list(table.texts), batch_tokens=60)
    assert np.array_equal(found, module.vectors)
    assert not found[table.texts.index("")].any()


def test_a_fitted_map_equals_whitening_all_at_once(folder: Path, raw: Encoder) -> None:
    """Repeats count as often as they occur, blank texts not at all; a list or an iterator."""
    sentences = [*texts(120, seed=2), *texts(30, seed=2), "", "  "]
    random.Random(0).shuffle(sentences)
    x = raw.encode([s for s in sentences if s.strip()])
    expected = Whitening(5).fit(Moments(32).update(torch.from_numpy(x)))
    for given_sentences in (sentences, iter(sentences)):
        encoder = whitepool.load(folder, pooling="first_last", whitening="pca", k=5, device="cpu")
        assert encoder.fit(given_sentences) is encoder
        post, affine = encoder.recipe().post, encoder.recipe().affine
        assert affine is not None
        assert torch.allclose(affine.mean, expected.mean, rtol=0, atol=1e-7)
        assert torch.allclose(affine.basis, expected.basis, rtol=1e-4, atol=1e-4)
        assert post is not None
        assert (post.count, post.directions, post.k) == (150, 5, 5)
        assert post.fit == "150 sentences given to Encoder.fit"
        assert close(encoder.encode(TEXTS), expected(torch.from_numpy(raw.encode(TEXTS))).numpy())


def test_fit_takes_any_number_of_windows(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = texts(90, seed=3) * 2
    found = []
    for window in (7, 10_000):
        monkeypatch.setattr("whitepool.streams.WINDOW", window)
        for given_sentences in (sentences, iter(sentences)):
            encoder = whitepool.load(folder, whitening="pca", k=4, device="cpu")
            found.append(encoder.fit(given_sentences).encode(TEXTS))
    assert all(close(x, found[0]) for x in found)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.lists(st.integers(0, len(TEXTS)), max_size=30),
    batch_tokens=st.sampled_from([1, 13, 60, 4096]),
)
def test_order_repeats_and_batches_do_not_matter(
    white: Encoder, alone: Any, rows: list[int], batch_tokens: int
) -> None:
    found = white.encode([KNOWN[row] for row in rows], batch_tokens=batch_tokens)
    assert found.shape == (len(rows), 8)
    assert close(found, alone[rows])
    for a, b in itertools.pairwise(sorted(range(len(rows)), key=lambda i: rows[i])):
        assert rows[a] != rows[b] or np.array_equal(found[a], found[b])


def test_repeats_are_encoded_once(raw: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = raw.pooled.plm.states
    monkeypatch.setattr(
        raw.pooled.plm,
        "states",
        lambda batch, needs: seen.append(len(batch.rows)) or original(batch, needs),
    )
    raw.encode(["a dog", "A Dog", "a dog", "a cat", ""] * 3)  # the tokenizer lowers letters
    assert sum(seen) == 2


def test_shapes_and_types(white: Encoder, raw: Encoder) -> None:
    assert white.encode("a dog").shape == (8,)
    assert white.encode([]).shape == (0, 8)
    assert raw.encode([]).shape == (0, 32)
    assert white.encode(("a dog", np.str_("a cat"))).shape == (2, 8)
    assert white.encode(text for text in TEXTS).shape == (40, 8)
    assert white.dimension == white.get_embedding_dimension() == 8
    assert raw.dimension == 32
    tensor = white.encode(TEXTS, convert_to_tensor=True)
    assert isinstance(tensor, torch.Tensor)
    assert tensor.dtype == torch.float32
    assert np.array_equal(tensor.numpy(), white.encode(TEXTS))
    assert white.encode([], convert_to_tensor=True).shape == (0, 8)
    assert not white.encode(" \n").any()
    assert white.encode(["", "a"])[0].tolist() == [0.0] * 8


def test_truncation_comes_before_normalisation(white: Encoder) -> None:
    x = white.encode([*TEXTS, ""])
    unit = white.encode([*TEXTS, ""], normalize=True, truncate_dim=3)
    norm = np.linalg.norm(x[:, :3], axis=1, keepdims=True)
    assert np.array_equal(white.encode([*TEXTS, ""], truncate_dim=3), x[:, :3])
    assert np.allclose(unit[:-1], (x[:, :3] / norm.clip(1e-30))[:-1], rtol=1e-6)
    assert np.allclose(np.linalg.norm(unit[:-1], axis=1), 1)
    assert not unit[-1].any()
    assert unit.dtype == np.float32


def test_similarity(white: Encoder) -> None:
    from scipy.spatial.distance import cdist

    a, b = white.encode(TEXTS[:5]), white.encode([*TEXTS[5:8], ""])
    found = white.similarity(a, b)
    assert found.shape == (5, 4)
    assert np.allclose(found[:, :3], 1 - cdist(a, b[:3], "cosine"))
    assert not found[:, 3].any()
    assert white.similarity(a[0], b).shape == (1, 4)
    assert np.array_equal(white.similarity_pairwise(a[:4], b), found[:4].diagonal())
    assert (white.similarity(a, a).diagonal() == 1.0).all()
    tensors = white.encode(TEXTS[:5], convert_to_tensor=True)
    assert np.array_equal(white.similarity(tensors, b), found)
    with pytest.raises(UserError, match="vectors of 8 and of 3 dimensions have no cosine"):
        white.similarity(a, a[:, :3])
    with pytest.raises(UserError, match="5 vectors cannot be paired with 4"):
        white.similarity_pairwise(a, b)


def test_a_saved_encoder_gives_the_same_bits(white: Encoder, tmp_path: Path) -> None:
    again = whitepool.load(white.save(tmp_path / "recipe"), device="cpu")
    assert np.array_equal(again.encode(TEXTS), white.encode(TEXTS))
    assert again.max_length == white.max_length
    recipe = Recipe.load(tmp_path / "recipe")
    assert recipe.model.path == str(Path(white.recipe().model.path or "").resolve())
    assert recipe.versions["torch"] == torch.__version__
    again.fit(texts(150, seed=9))  # fitted anew, with the same k
    assert again.dimension == 8
    assert not np.array_equal(again.encode(TEXTS), white.encode(TEXTS))
    assert np.array_equal(
        whitepool.load(str(tmp_path / "recipe"), device="cpu").encode(TEXTS), white.encode(TEXTS)
    )


@pytest.mark.parametrize("name", PLAIN)
def test_every_head_is_saved(folder: Path, tmp_path: Path, name: str) -> None:
    ditto = {"block": 1, "head": 2} if name == "ditto" else {}
    encoder = whitepool.load(
        folder, pooling=name, device="cpu", max_length=9, template="not {text} .",
        prompts={"query": "a", "document": "two"}, long_text="chunk_mean", **ditto,
    )  # fmt: skip
    again = whitepool.load(encoder.save(tmp_path / "recipe"), device="cpu")
    for method in ("encode", "encode_query", "encode_document"):
        found = getattr(again, method)(TEXTS)
        assert np.array_equal(found, getattr(encoder, method)(TEXTS))


def test_prompts_and_template(folder: Path, raw: Encoder) -> None:
    prompts = {"query": "the man eats ", "document": "music . "}
    encoder = whitepool.load(folder, pooling="first_last", prompts=prompts, device="cpu")
    plain = raw.encode(["the man eats a dog", "music . a dog", "a dog"])
    assert np.array_equal(encoder.encode_query("a dog"), plain[0])
    assert np.array_equal(encoder.encode(["a dog"], prompt_name="document")[0], plain[1])
    assert np.array_equal(encoder.encode("a dog", prompt="the man eats "), plain[0])
    assert np.array_equal(encoder.encode("a dog"), plain[2])
    framed = whitepool.load(
        folder, pooling="first_last", prompts=prompts, template="two {text} plays", device="cpu"
    )
    expected = raw.encode(["two the man eats a dog plays", "two a dog plays"])
    assert np.array_equal(framed.encode_query("a dog"), expected[0])
    assert np.array_equal(framed.encode("a dog"), expected[1])
    assert not framed.encode_query(" ").any()
    half = encoder.encode_document(["a dog", "a cat"], normalize=True, truncate_dim=4)
    assert np.allclose(np.linalg.norm(half, axis=1), 1)


def test_long_texts(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    encoder = whitepool.load(folder, max_length=6, device="cpu")  # 4 tokens beside [CLS] and [SEP]
    long = "a man plays the guitar in a park today"
    short = ["a man", "a dog runs in", ""]
    with caplog.at_level(logging.WARNING):
        cut = encoder.encode([long, *short])
    assert "1 texts are cut to 6 tokens" in caplog.text
    assert close(cut[0], encoder.encode("a man plays the"))
    caplog.clear()
    chunks = encoder.encode([long, *short], long_text="chunk_mean")
    assert not caplog.text
    assert np.array_equal(chunks[1:], cut[1:])
    parts = encoder.encode(["a man plays the", "guitar in a park", "today"]).astype(np.float64)
    expected = (4 * parts[0] + 4 * parts[1] + parts[2]) / 9
    assert close(chunks[0], expected)
    with pytest.raises(UserError, match=r"text 0 \('a man plays the guitar in a park today'\) is"):
        encoder.encode([long, *short], long_text="error")
    assert np.array_equal(encoder.encode(short, long_text="error"), cut[1:])
    assert encoder.tokenize([long, *short]).truncated == [True, False, False, False]
    assert list(map(len, encoder.tokenize([long, *short]).ids)) == [6, 4, 6, 0]


def test_long_texts_within_a_template(folder: Path) -> None:
    """What is cut is the text, not the template behind it, and each chunk stands in it."""
    options: dict[str, Any] = {"max_length": 8, "template": "not {text} .", "device": "cpu"}
    encoder = whitepool.load(folder, **options)
    plain = whitepool.load(folder, device="cpu")
    long = "a man plays the guitar in a park"
    prompted = encoder.encode(long, prompt="two ")
    assert close(prompted, plain.encode("not two a man plays ."))
    chunks = encoder.encode(long, prompt="two ", long_text="chunk_mean").astype(np.float64)
    parts = plain.encode(
        ["not two a man plays .", "not two the guitar in .", "not two a park ."]
    ).astype(np.float64)
    assert close(chunks, (3 * parts[0] + 3 * parts[1] + 2 * parts[2]) / 8)
    with pytest.raises(UserError, match="take 8 tokens of max_length 8, which leaves none"):
        encoder.encode(long, prompt="a a a a ")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 14), min_size=1, max_size=4), st.integers(3, 9))
def test_chunks_are_the_tokens_of_the_text(
    plm: Callable[[str], Any], lengths: list[int], max_length: int
) -> None:
    from whitepool.longtext import cut

    model = plm("bert")
    draw = random.Random(0)
    long = [" ".join(draw.choices(WORDS, k=n)) for n in lengths]
    pieces = cut(model, long, max_length=max_length, long_text="chunk_mean")
    whole = model.tokenize(long).ids
    for i, ids in enumerate(whole):
        own = [piece for piece, owner in zip(pieces.ids, pieces.owner, strict=True) if owner == i]
        assert [t for piece in own for t in piece[1:-1]] == list(ids[1:-1])
        assert all(len(piece) <= max_length for piece in own)
        assert all(piece[0] == ids[0] and piece[-1] == ids[-1] for piece in own)
    cut_once = cut(model, long, max_length=max_length)
    assert cut_once.whole() == model.tokenize(long, max_length)


def test_threads_may_encode_at_once(folder: Path) -> None:
    """From the very first pass on."""
    encoder = whitepool.load(folder, pooling="ditto", block=0, head=1, device="cpu")
    portions = [texts(60, seed=seed) for seed in range(6)]
    found: dict[int, Any] = {}

    def work(i: int) -> None:
        found[i] = encoder.encode(portions[i], batch_tokens=90)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(portions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, portion in enumerate(portions):
        assert np.array_equal(found[i], encoder.encode(portion, batch_tokens=90))


def test_progress(raw: Encoder, capsys: pytest.CaptureFixture[str]) -> None:
    raw.encode(TEXTS)
    raw.encode(TEXTS, progress=False)
    assert capsys.readouterr().err == ""
    raw.encode(TEXTS, progress=True, batch_tokens=50)
    assert "40/40" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.encode(["a", 5]), r"sentences\[1\] is 5 \(int\), not a text"),
        (lambda e: e.encode([None]), r"sentences\[0\] is None \(NoneType\)"),
        (lambda e: e.encode(7), r"sentences is 7 \(int\): give a list"),
        (lambda e: e.encode(b"a"), r"sentences is b'a' \(bytes\)"),
        (lambda e: e.encode({"a": 1}), r"\(dict\): give a list"),
        (lambda e: e.encode("a", truncate_dim=9), "truncate_dim is 9: give 1 to 8"),
        (lambda e: e.encode("a", truncate_dim=0), "truncate_dim is 0"),
        (lambda e: e.encode("a", batch_tokens=0), "batch_tokens is 0: give at least 1"),
        (lambda e: e.encode("a", long_text="wrap"), "choose one of truncate, error, chunk_mean"),
        (lambda e: e.encode("a", prompt_name="q"), "'q': choose one of query, document"),
        (lambda e: e.encode("a", prompt="x", prompt_name="query"), "both given"),
        (lambda e: e.fit("a dog"), r"sentences is 'a dog' \(str\): give a list"),
        (lambda e: e.fit([]), "0 sentences with text were given to fit: give at least 2"),
        (lambda e: e.fit(["a dog", " "]), "1 sentences with text"),
        (lambda e: e.fit(["a dog", 3]), r"sentences\[1\] is 3"),
        (lambda e: e.fit(["a dog", "a dog"]), "all 2 vectors are equal"),
        (lambda e: e.fit(["a dog", "a cat"]), "k=8 is over the effective rank 1"),
    ],
)
def test_mistakes(white: Encoder, call: Callable[[Encoder], Any], message: str) -> None:
    before = white.encode(TEXTS)
    with pytest.raises(UserError, match=message):
        call(white)
    assert np.array_equal(white.encode(TEXTS), before)


def test_what_is_not_fitted_says_so(folder: Path, raw: Encoder) -> None:
    encoder = whitepool.load(folder, whitening="pca", device="cpu")
    for call in (
        lambda: encoder.encode("a"),
        lambda: encoder.dimension,
        lambda: encoder.save("nowhere"),
    ):
        with pytest.raises(UserError, match=r"not fitted yet: call fit\(sentences\) first"):
            call()
    with pytest.raises(UserError, match="nothing to fit: load the encoder with whitening='pca'"):
        raw.fit(TEXTS)


def test_a_vector_that_is_not_finite_names_its_text(checkpoint: Callable[[str], Path]) -> None:
    encoder = whitepool.load(checkpoint("distilbert"), pooling="static", device="cpu")
    table = encoder.pooled.plm.model.get_input_embeddings().weight
    row = encoder.tokenize(["guitar"]).ids[0][1]
    table[row] = float("inf")
    with pytest.raises(UserError, match="the vector of 'a guitar' is not finite: use float32"):
        encoder.encode(["a dog", "a guitar"])
