"""A GGUF model is converted once, and is the same model as the file's."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_gguf
import whitepool
from whitepool import checkpoint
from whitepool.kept import contents, remove
from whitepool.sealed_folder import MANIFEST

pytest.importorskip("gguf")
pytest.importorskip("accelerate")

TEXTS = ["the man eats", "a dog on the moon", "ä 中", "x"]
CONVERTING = "Converting tiny.gguf"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf.write(tmp_path_factory.mktemp("model") / "tiny.gguf").parent


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> Path:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def vectors(model: Path) -> np.ndarray:
    return np.asarray(whitepool.load(model).encode(TEXTS))


def folder(root: Path) -> Path:
    (found,) = (path for path in (root / "assets").iterdir() if path.is_dir())
    return found


def test_it_is_the_same_model(
    model: Path, root: Path, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, load_model = [], checkpoint._load_model

    def loading(name: str, folder: Path | None, options: Any, dtype: Any) -> Any:
        read.append(options.get("gguf_file"))
        return load_model(name, folder, options, dtype)

    monkeypatch.setattr(checkpoint, "_load_model", loading)
    first = checkpoint.load(model)
    assert read == ["tiny.gguf", None]  # the file once, then its folder
    assert caplog.text.count(CONVERTING) == 1
    caplog.clear()
    second = checkpoint.load(model)
    assert read == ["tiny.gguf", None, None]
    assert CONVERTING not in caplog.text
    monkeypatch.setattr(checkpoint, "converted", lambda gguf, sha256, read: None)
    direct = checkpoint.load(model)
    for other in (first, second):
        assert other.provenance == direct.provenance
        assert other.provenance["id"] == model.name
        assert other.provenance["format"] == "gguf"
        weights = direct.model.state_dict()
        assert {name: w.tolist() for name, w in other.model.state_dict().items()} == {
            name: w.tolist() for name, w in weights.items()
        }
        assert [other.tokenizer(t)["input_ids"] for t in TEXTS] == [
            direct.tokenizer(t)["input_ids"] for t in TEXTS
        ]
        assert other.tokenizer.special_tokens_map == direct.tokenizer.special_tokens_map
        assert other.model.config.max_position_embeddings == 64
    assert len(direct.tokenizer("the man")["input_ids"]) < len("the man")  # its merges are read


def test_another_file_of_that_name_is_another_model(
    model: Path, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = tiny_gguf.write(tmp_path / "other" / "tiny.gguf", seed=1).parent
    assert not np.allclose(vectors(model), vectors(other))
    assert sum(path.is_dir() for path in (root / "assets").iterdir()) == 2


def test_a_changed_byte_is_converted_anew(model: Path, root: Path, caplog: Any) -> None:
    before = vectors(model)
    weights = folder(root) / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 0x40
    weights.write_bytes(content)
    caplog.clear()
    assert np.array_equal(vectors(model), before)
    assert "tiny.gguf is converted anew: model.safetensors has changed." in caplog.text
    caplog.clear()
    assert np.array_equal(vectors(model), before)
    assert CONVERTING not in caplog.text


@pytest.mark.parametrize("manifest", ["[]", "{", '{"gguf": ["another"], "files": {}}'])
def test_a_folder_that_cannot_be_trusted_is_converted_anew(
    model: Path, root: Path, caplog: Any, manifest: str
) -> None:
    before = vectors(model)
    (folder(root) / MANIFEST).write_text(manifest)
    caplog.clear()
    assert np.array_equal(vectors(model), before)
    assert "converted anew" in caplog.text


def test_without_a_cache_it_is_read_from_the_file(
    model: Path, root: Path, caplog: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    expected = vectors(model)
    (tmp_path / "file").touch()
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "file"))
    caplog.clear()
    assert np.array_equal(vectors(model), expected)
    assert "cannot be kept in a form that loads faster" in caplog.text
    assert "WHITEPOOL_CACHE=" in caplog.text


def test_cache_knows_it(model: Path, root: Path) -> None:
    vectors(model)
    place = folder(root)
    (item,) = contents(root)
    assert (item.kind, item.what) == ("model", place.name)
    assert place.name.startswith("tiny-")
    assert item.files == len(json.loads((place / MANIFEST).read_text())["files"]) + 1
    assert "may be loading it" in remove(item)
