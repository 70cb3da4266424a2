"""Exports as SentenceTransformer objects: both ways of loading, saving again, and mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whitepool
from whitepool.encoder import Encoder
from whitepool.errors import UserError
from whitepool.recipe import Prompts

from made import TEXTS, encoder, same

pytest.importorskip(
    "sentence_transformers", reason='pip install "whitepool[sentence-transformers]"'
)


@pytest.fixture(scope="module")
def made(checkpoint: Callable[[str], Path]) -> Encoder:
    return encoder(checkpoint("bert"), "ditto", "pca", prompts=Prompts("music ", "two "))


@pytest.fixture(scope="module")
def folder(made: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made.export(tmp_path_factory.mktemp("ditto") / "out")


def test_with_and_without_the_flag(made: Encoder, folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    with pytest.raises(ValueError, match="trust_remote_code=True"):
        SentenceTransformer(str(folder), device="cpu")
    flagged = SentenceTransformer(str(folder), device="cpu", trust_remote_code=True)
    ours = whitepool.sentence_transformer(folder, device="cpu")
    for model in (flagged, ours):
        assert model.prompts == {"query": "music ", "document": "two "}
        assert model.similarity_fn_name == "cosine"
        assert same(made.encode_query(TEXTS), model.encode_query(TEXTS))
        assert same(made.encode_document(TEXTS), model.encode_document(TEXTS))
        assert model.encode("a dog").shape == (12,)
        assert model.encode([]).size == 0
    short = whitepool.sentence_transformer(folder, device="cpu", truncate_dim=4)
    assert short.get_embedding_dimension() == 4
    assert same(made.encode(TEXTS, truncate_dim=4), short.encode(TEXTS))


def test_what_is_saved_again_loads_again(made: Encoder, folder: Path, tmp_path: Path) -> None:
    model = whitepool.sentence_transformer(folder, device="cpu")
    model.save_pretrained(str(tmp_path / "again"))
    again = whitepool.sentence_transformer(tmp_path / "again", device="cpu")
    assert again.prompts == model.prompts
    assert same(made.encode_query(TEXTS), again.encode_query(TEXTS))
    with pytest.raises(UserError, match="safetensors only"):
        model.save_pretrained(str(tmp_path / "pickled"), safe_serialization=False)


def test_a_folder_that_was_moved(made: Encoder, folder: Path, tmp_path: Path) -> None:
    import shutil

    moved = Path(shutil.copytree(folder, tmp_path / "moved"))
    again = whitepool.load(moved, device="cpu")
    assert np.array_equal(again.encode_query(TEXTS), made.encode_query(TEXTS))
    with pytest.raises(UserError, match="is a recipe, which brings its own pooling"):
        whitepool.load(moved, pooling="avg")


def test_the_maximum_length_can_be_changed(made: Encoder, folder: Path) -> None:
    model = whitepool.sentence_transformer(folder, device="cpu")
    model.max_seq_length = 6
    assert model.tokenizer is not None
    cut = model.encode(["a man plays the guitar in a park today", "a man plays the"])
    assert same(cut[:1], cut[1:])
    with pytest.raises(UserError, match="maximum length 900 is outside"):
        model.max_seq_length = 900


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.encode([3]), r"sentences\[0\] is 3 \(int\), not a text"),
        (lambda m: m.encode([("a", "b")]), r"sentences\[0\] is \('a', 'b'\)"),
    ],
)
def test_what_is_no_text(folder: Path, call: Any, message: str) -> None:
    model = whitepool.sentence_transformer(folder, device="cpu")
    with pytest.raises(UserError, match=message):
        call(model)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model_kwargs": {"dtype": "bfloat16"}}, "its own model: leave model_kwargs out"),
        ({"backend": "onnx"}, "backend is 'onnx': a recipe runs with torch alone"),
    ],
)
def test_settings_that_the_recipe_fixes(
    folder: Path, arguments: dict[str, Any], message: str
) -> None:
    from sentence_transformers import SentenceTransformer

    with pytest.raises(UserError, match=message):
        SentenceTransformer(str(folder), device="cpu", trust_remote_code=True, **arguments)


def test_folders_that_are_no_export(
    checkpoint: Callable[[str], Path], made: Encoder, tmp_path: Path
) -> None:
    for folder in (checkpoint("bert"), made.save(tmp_path / "recipe"), tmp_path / "none"):
        with pytest.raises(UserError, match=r"is no export: write one with Encoder\.export"):
            whitepool.sentence_transformer(folder)


def test_a_class_named_in_the_folder_is_never_imported(folder: Path, tmp_path: Path) -> None:
    """Only our own class has a way round the flag."""
    import shutil

    changed = Path(shutil.copytree(folder, tmp_path / "changed"))
    entries = json.loads((changed / "modules.json").read_text())
    entries[0]["type"] = "antigravity.Module"
    (changed / "modules.json").write_text(json.dumps(entries))
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        whitepool.sentence_transformer(changed, device="cpu")
