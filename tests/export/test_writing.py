"""Exports of every head, raw and whitened, beside the encoder they were made from."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whitepool
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.plm import FrozenPLM
from whitepool.recipe import Prompts
from whitepool.recipe_model import describe_model

from made import CHAINS, FIT, HEADS, OWN, POSTS, TEXTS, encoder, same
from tiny import FAMILIES

pytest.importorskip(
    "sentence_transformers", reason='pip install "whitepool[sentence-transformers]"'
)
Checkpoint = Callable[[str], Path]
SUFFIXES = {".json", ".safetensors", ".md", ".yaml", ".txt", ".model"}


def types(folder: Path) -> list[str]:
    return [m["type"].rpartition(".")[2] for m in json.loads((folder / "modules.json").read_text())]


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An export is not read back, to save time where the test itself compares."""
    monkeypatch.setattr("whitepool.export.writing.check", lambda *_: None)


def compared(made: Encoder, folder: Path) -> Any:
    """The SentenceTransformer of an export, after its vectors were compared."""
    from sentence_transformers import SentenceTransformer

    own = types(folder) == ["RecipeModule"]
    model = (
        whitepool.sentence_transformer(folder, device="cpu")
        if own
        else SentenceTransformer(str(folder), device="cpu")
    )
    for kind in ("query", "document"):
        theirs = model.encode(TEXTS, prompt_name=kind, batch_size=7)
        assert same(made.encode(TEXTS, prompt_name=kind), theirs)
    assert same(made.encode(TEXTS, truncate_dim=5), model.encode(TEXTS, truncate_dim=5))
    assert model.get_embedding_dimension() == made.dimension
    assert model.max_seq_length == made.max_length
    assert model.similarity_fn_name == "cosine"
    return model


@pytest.mark.parametrize(
    ("head", "post"), [(head, ("raw", "pca")[i % 2]) for i, head in enumerate(HEADS)]
)
@pytest.mark.usefixtures("unchecked")
def test_every_head(
    checkpoint: Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture, head: str, post: str
) -> None:
    """Vectors equal ours, and log and folder say which modules give them."""
    made = encoder(checkpoint("bert"), head, post, prompts=Prompts("music ", "two "))
    with caplog.at_level(logging.INFO, logger="whitepool"):
        folder = made.export(tmp_path / "out")
    assert (types(folder) == ["RecipeModule"]) == (head in OWN)
    assert ("whitepool.sentence_transformer(FOLDER) loads it" in caplog.text) == (head in OWN)
    assert (": SentenceTransformer(FOLDER) loads it" in caplog.text) == (head in CHAINS)
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} <= SUFFIXES
    compared(made, folder)


SAMPLE = (
    ("gpt2", "last_token", "pca"),  # no padding token, no special ones
    ("gemma3", "first_last", "raw"),  # a norm behind the last layer
    ("mpnet", "weights_layers", "pca"),  # positions from the padding index
    ("t5", "avg", "pca"),  # the encoder of a pair
    ("t5", "ditto", "raw"),
)


@pytest.mark.parametrize(("family", "head", "post"), SAMPLE)
@pytest.mark.usefixtures("unchecked")
def test_other_families(
    checkpoint: Checkpoint, tmp_path: Path, family: str, head: str, post: str
) -> None:
    made = encoder(checkpoint(family), head, post)
    compared(made, made.export(tmp_path / "out"))


@pytest.mark.nightly  # every family, head and post-processing
@pytest.mark.parametrize("post", POSTS)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("unchecked")
def test_the_whole_product(
    checkpoint: Checkpoint, tmp_path: Path, family: str, head: str, post: str
) -> None:
    try:
        made = encoder(checkpoint(family), head, post)
    except UserError as error:
        pytest.skip(str(error))  # no pooler; word embeddings narrower than the layers
    compared(made, made.export(tmp_path / "out"))


@pytest.fixture(scope="module")
def pair(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Encoders and the models of their exports, one of each kind."""
    found = {}
    for head in ("first_last", "ditto"):
        made = encoder(checkpoint("bert"), head, "pca")
        folder = made.export(tmp_path_factory.mktemp("export") / head)
        found[head] = (made, whitepool.sentence_transformer(folder, device="cpu"))
    return found


@settings(max_examples=12, deadline=None)
@given(
    head=st.sampled_from(["first_last", "ditto"]),
    rows=st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=20),
    batch_size=st.sampled_from([1, 3, 32]),
)
def test_order_repeats_and_batches_do_not_matter(
    pair: dict[str, Any], head: str, rows: list[int], batch_size: int
) -> None:
    made, model = pair[head]
    found = model.encode([TEXTS[row] for row in rows], batch_size=batch_size)
    assert same(made.encode(TEXTS)[rows], found)


def test_blank_texts(pair: dict[str, Any]) -> None:
    """Zero with our module; with sentence-transformers' own, the special tokens' vector."""
    made, model = pair["ditto"]
    mixed = ["", "a dog", " \t "]
    found = model.encode(mixed)
    assert same(made.encode(mixed), found)
    assert not found[[0, 2]].any()
    assert np.array_equal(model.encode(["", " "]), np.zeros((2, made.dimension)))
    made, model = pair["first_last"]
    special = made.pooled.plm.tokenizer("[CLS] [SEP]", add_special_tokens=False)["input_ids"]
    from whitepool.vectors import pool

    alone = pool(made.pooled.plm, made.pooled.pooling, [special], batch_tokens=9)
    assert same(made.mapped(alone), model.encode([" "]))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"template": "not {text} ."}, "they have no templates"),
        ({"long_text": "chunk_mean"}, "they have no long_text=chunk_mean"),
        ({"long_text": "error", "max_length": 40}, "they have no long_text=error"),
    ],
)
def test_what_only_our_module_does(
    checkpoint: Checkpoint, tmp_path: Path, options: dict[str, Any], reason: str
) -> None:
    """A template keeps its end where a long text is cut; chunks are averaged."""
    made = encoder(checkpoint("bert"), "avg", "pca", prompts=Prompts("music "), **options)
    folder = made.export(tmp_path / "out")
    assert types(folder) == ["RecipeModule"]
    assert f"cannot express this recipe: {reason}." in (folder / "README.md").read_text()
    model = compared(made, folder)
    assert same(made.encode(TEXTS, prompt="two "), model.encode(TEXTS, prompt="two "))
    if made.pooled.long_text == "error":
        with pytest.raises(UserError, match="is over max_length 40"):
            model.encode(["a dog " * 30])


def test_bfloat16_is_kept(checkpoint: Checkpoint, tmp_path: Path) -> None:
    made = whitepool.load(checkpoint("bert"), whitening="pca", k=5, dtype="bfloat16", device="cpu")
    folder = made.fit(FIT).export(tmp_path / "out")
    assert "they would round its vectors to bfloat16" in (folder / "README.md").read_text()
    compared(made, folder)
    again = whitepool.load(folder, device="cpu")
    assert np.array_equal(again.encode(TEXTS), made.encode(TEXTS))


def test_a_map_that_magnifies_rounding_keeps_its_float64(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    made = encoder(checkpoint("bert"), "pooler_none", "pca_all")
    folder = made.export(tmp_path / "out")
    assert types(folder) == ["RecipeModule"]
    assert (
        "with this whitening their float32 would move cosines by"
        in (folder / "README.md").read_text()
    )
    model = whitepool.sentence_transformer(folder, device="cpu")
    assert same(made.encode(TEXTS), model.encode(TEXTS))


def test_the_recipes_number_type_is_exported(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Not that of an encoder which was loaded in another."""
    made = encoder(checkpoint("bert"), "avg", "pca")
    coarse = whitepool.load(made.save(tmp_path / "recipe"), dtype="bfloat16", device="cpu")
    assert not same(made.encode(TEXTS), coarse.encode(TEXTS))
    compared(made, coarse.export(tmp_path / "out"))


def test_what_was_encoded_before_changes_nothing(checkpoint: Checkpoint, tmp_path: Path) -> None:
    made = encoder(checkpoint("bert"), "avg")
    first = made.export(tmp_path / "first")
    made.encode(["a dog " * 50])
    second = made.export(tmp_path / "second")
    files = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    assert files == {path.relative_to(second) for path in second.rglob("*") if path.is_file()}
    for file in files - {Path("README.md")}:  # which has the folder's name
        assert (first / file).read_bytes() == (second / file).read_bytes(), file


def test_a_folder_is_replaced_only_if_asked(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = encoder(checkpoint("bert"), "avg")
    folder = made.export(tmp_path / "out")
    with pytest.raises(UserError, match="is an export: replace it with overwrite=true"):
        made.export(folder)
    other = encoder(checkpoint("bert"), "cls")
    monkeypatch.setattr("whitepool.export.writing.check", _fails)
    with pytest.raises(UserError, match="other vectors"):
        other.export(folder, overwrite=True)
    monkeypatch.undo()
    assert same(made.encode(TEXTS), whitepool.load(folder, device="cpu").encode(TEXTS))
    other.export(folder, overwrite=True)
    assert same(other.encode(TEXTS), whitepool.load(folder, device="cpu").encode(TEXTS))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").touch()
    with pytest.raises(UserError, match="holds other things than an export"):
        made.export(tmp_path / "mine", overwrite=True)
    with pytest.raises(UserError, match="is not a folder"):
        made.export(tmp_path / "mine" / "notes.txt", overwrite=True)


def _fails(*_: Any) -> None:
    raise UserError("other vectors")


def test_what_is_not_fitted_is_not_exported(checkpoint: Checkpoint, tmp_path: Path) -> None:
    made = whitepool.load(checkpoint("bert"), whitening="pca", device="cpu")
    with pytest.raises(UserError, match="not fitted yet"):
        made.export(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_a_family_of_ours_has_our_module(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """A process without whitepool knows no NEZHA."""
    made = encoder(checkpoint("nezha"), "avg")
    folder = made.export(tmp_path / "out")
    assert "they know no models of the family nezha" in (folder / "README.md").read_text()
    compared(made, folder)


def test_models_that_no_folder_holds(checkpoint: Checkpoint, tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("dog 1 0 2\ncat 0 1 3\nruns 1 1 0\n", encoding="utf-8")
    words = FrozenPLM.from_pretrained(path=file, name="vectors")
    pytest.importorskip("jieba", reason='pip install "whitepool[chinese]"')
    folder = checkpoint("bert")
    cut = FrozenPLM.from_pretrained(path=folder, name="cut", segmenter="jieba")
    for plm, path, fault in (
        (words, file, "model vectors is a file of word vectors and no transformer, so that it has"),
        (cut, folder, "model cut has its texts cut into words by jieba, which no tokenizer file"),
    ):
        made = Encoder(plm, HEADS["avg"], model=describe_model(plm, path=path))
        with pytest.raises(UserError, match=fault):
            made.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_sentence_transformers(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    made = encoder(checkpoint("bert"), "avg")
    with pytest.raises(UserError, match=r'pip install "whitepool\[sentence-transformers\]"'):
        made.export(tmp_path / "out")
    with pytest.raises(UserError, match="an export needs sentence_transformers"):
        whitepool.sentence_transformer(tmp_path)
