"""Every head with every step after it, on tiny models and on MiniLM: exports give our vectors."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import whitepool
from whitepool.data.stsb import read_embedded
from whitepool.errors import UserError
from whitepool.export import check
from whitepool.export.chain import obstacle
from whitepool.maps.names import PostKind
from whitepool.plm import FrozenPLM
from whitepool.recipe_model import describe_model

from conf_heads import DECODERS, HEADS, STEPS, built
from made import same
from product import Head, faults
from tiny import WORDS

pytest.importorskip(
    "sentence_transformers", reason='pip install "whitepool[sentence-transformers]"'
)
Masked = Callable[[str], Path]
# Heads that sentence-transformers' own modules can express.
CHAINS = (
    "avg cls first_last first_last_0 idf last_token layers max pooler sif top2 usif weighted_mean"
).split()
OF_WORDS = ("static_words", "static_remove_biases")  # heads that zipfian goes with


def steps_of(name: str) -> list[PostKind]:
    return [kind for kind in STEPS if kind != "zipfian" or name in OF_WORDS]


def texts(n: int, words: int, seed: int) -> list[str]:
    """Texts of up to so many words, of skewed frequencies as usif needs them."""
    draw = random.Random(seed)
    weights = [1 / (i + 1) for i in range(len(WORDS))]
    return [" ".join(draw.choices(WORDS, weights, k=draw.randint(1, words))) for _ in range(n)]


FIT = texts(150, 6, seed=0)
TEXTS = texts(7, 6, seed=1)
LONG = texts(1, 1, seed=2)[0] + " a dog" * 40  # over the 64 tokens of a tiny model


@pytest.fixture(scope="module")
def head_of(masked: Masked) -> Callable[[str], Head]:
    """A head of conf/pooling on a tiny model of its kind, which is loaded once."""
    loaded: dict[str, FrozenPLM] = {}

    def get(name: str) -> Head:
        family = "qwen3" if name in DECODERS else "bert"
        folder = masked(family)
        if family not in loaded:
            loaded[family] = FrozenPLM.from_pretrained(path=folder, name=family)
        plm, fit = loaded[family], FIT[:60] if name == "impact" else FIT  # which takes n^2 passes
        return Head(plm, describe_model(plm, path=folder), *built(name, plm, fit), fit)

    return get


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An export is not read back, to save time where the test itself compares."""
    monkeypatch.setattr("whitepool.export.writing.check", lambda *_: None)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("name", HEADS)
def test_every_head_with_every_step(
    head_of: Callable[[str], Head], tmp_path: Path, name: str
) -> None:
    head = head_of(name)
    some = TEXTS if name == "impact" else [*TEXTS, LONG]
    assert faults(head, steps_of(name), some, tmp_path / "raw") == []
    reason = obstacle(head.recipe, head.plm)
    assert (reason is None) == (name in CHAINS), reason
    if name not in OF_WORDS:
        with pytest.raises(UserError, match=r"whitening=zipfian .* use pooling=static_words"):
            head.with_step("zipfian")


@pytest.mark.nightly  # each through a folder of its own, as a user has it
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in HEADS for kind in steps_of(name)]
)
def test_the_whole_product_through_folders(
    head_of: Callable[[str], Head],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: PostKind,
) -> None:
    # The comma is the tiny models' mask token, which no text may have.
    monkeypatch.setattr(check, "PROBES", tuple(text.replace(",", "") for text in check.PROBES))
    head = head_of(name)
    encoder = head.encoder(head.with_step(kind))
    folder = encoder.export(tmp_path / "out")
    model = whitepool.sentence_transformer(folder, device="cpu")
    assert same(encoder.encode(TEXTS), model.encode(TEXTS, batch_size=4))


@pytest.fixture(scope="module")
def stsb() -> list[str]:
    """Sentences of STS-B, shortest first."""
    pairs = read_embedded("stsb", "", "test")
    return sorted(dict.fromkeys([*pairs.first, *pairs.second]), key=len)


@pytest.fixture(scope="module")
def on_minilm(stsb: list[str]) -> Callable[[str], Head]:
    """A head of conf/pooling on MiniLM, to be fitted on 420 short sentences."""
    plm = whitepool.load("all_minilm", device="cpu").pooled.plm
    model = describe_model(plm, asset="all_minilm")
    return lambda name: Head(plm, model, *built(name, plm, stsb), stsb[:420])


def some_of(stsb: list[str], name: str) -> list[str]:
    """Sentences to compare, one of them over MiniLM's 256 tokens."""
    return stsb[420:425] if name == "impact" else [*stsb[800::150], " ".join(stsb[-20:])]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("first_last", ["pca", "soft", "remove_common"]),
        ("usif", ["shrinkage"]),
        ("prompt", ["tempered"]),
        ("static_words", ["zipfian"]),
    ],
)
def test_a_sample_on_minilm(
    on_minilm: Callable[[str], Head],
    stsb: list[str],
    tmp_path: Path,
    name: str,
    steps: list[PostKind],
) -> None:
    assert faults(on_minilm(name), steps, some_of(stsb, name), tmp_path / "raw") == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", HEADS)
def test_the_whole_product_on_minilm(
    on_minilm: Callable[[str], Head], stsb: list[str], tmp_path: Path, name: str
) -> None:
    if name == "pooler":
        with pytest.raises(UserError, match="pooler"):  # the checkpoint has no weights for it
            _ = on_minilm(name).raw
        return
    assert faults(on_minilm(name), steps_of(name), some_of(stsb, name), tmp_path / "raw") == []
