"""The folder of a run: what it refuses, what it keeps."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from whitepool.bulk.files import FileRecord
from whitepool.bulk.folder import open_folder
from whitepool.bulk.manifest import Manifest, ShardRecord, Total, differences
from whitepool.errors import UserError
from whitepool.whole_file import whole_file

MADE_FROM = {"settings": {"dtype": "float32", "layers": (1, 2)}}


def commit(path: Path, number: int, *, bad: int = 0, content: bytes = b"x") -> None:
    with open_folder(path, MADE_FROM, "error", overwrite=False) as folder:
        name = f"vectors-{number:05}.npy"
        with whole_file(path / name) as file:
            file.write(content)
        files = (FileRecord.of(path / name),)
        folder.commit(number, ShardRecord(files, 10, bad, 0, 10 * (number + 1), "0" * 64))


def kept(path: Path, made_from: Any = MADE_FROM, on_bad: str = "error", **options: bool) -> Any:
    overwrite = options.get("overwrite", False)
    with open_folder(path, made_from, on_bad, overwrite=overwrite) as folder:
        return dict(folder.kept)


def test_finished_shards_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "new" / "vectors"
    assert kept(path) == {}
    commit(path, 0)
    commit(path, 1)
    assert list(kept(path)) == [0, 1]


def test_damaged_and_missing_shards_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        commit(tmp_path, number)
    (tmp_path / "vectors-00001.npy").write_bytes(b"y")
    (tmp_path / "vectors-00002.npy").unlink()
    with caplog.at_level(logging.WARNING):
        assert list(kept(tmp_path)) == [0, 3]
    assert "Shard 1 is missing or damaged" in caplog.text
    assert "Shard 2 is missing or damaged" in caplog.text


def test_a_shard_without_the_manifests_word_does_not_count(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    (tmp_path / "vectors-00001.npy").write_bytes(b"x")
    assert list(kept(tmp_path)) == [0]


def test_other_settings_are_refused(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    with pytest.raises(UserError) as error:
        kept(tmp_path, {"settings": {"dtype": "float16", "layers": [1, 2]}})
    assert str(error.value) == (
        f'output={tmp_path} was begun with settings.dtype "float32" and this run has "float16": '
        "give the same again, or overwrite=true to begin anew, or another output=."
    )
    assert list(kept(tmp_path)) == [0]


def test_on_bad_may_change_while_there_were_none(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    assert list(kept(tmp_path, on_bad="skip")) == [0]
    commit(tmp_path, 1)  # error again
    commit(tmp_path, 2, bad=1)
    with pytest.raises(UserError, match='was begun with on_bad "error" and this run has "zero"'):
        kept(tmp_path, on_bad="zero")


def test_a_manifest_without_shards_binds_nobody(tmp_path: Path) -> None:
    kept(tmp_path)
    assert kept(tmp_path, {"settings": {}}, "skip") == {}
    manifest = Manifest.load(tmp_path)
    assert manifest is not None
    assert (manifest.made_from, manifest.on_bad) == ({"settings": {}}, "skip")


def test_overwriting_removes_vectors_alone(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    (tmp_path / "bad_rows.csv").touch()
    (tmp_path / ".vectors-00001.npy.partial").touch()
    assert kept(tmp_path, {"other": 1}, overwrite=True) == {}
    names = sorted(path.name for path in tmp_path.iterdir() if path.name != ".lock")
    assert names == ["manifest.json", "notes.txt"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_other_folders_are_left_alone(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "vectors-00000.npy").touch()
    with pytest.raises(UserError, match=r"holds other things than vectors \(vectors-00000.npy\)"):
        kept(tmp_path, overwrite=overwrite)
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json is not JSON"):
        kept(tmp_path, overwrite=overwrite)
    (tmp_path / "manifest.json").write_text('{"kind": "other"}', encoding="utf-8")
    with pytest.raises(UserError, match=r"manifest\.json is no manifest of vectors"):
        kept(tmp_path, overwrite=overwrite)
    assert (tmp_path / "vectors-00000.npy").exists()
    with pytest.raises(UserError, match="is a file: give a folder"):
        kept(tmp_path / "manifest.json", overwrite=overwrite)


def test_damaged_and_newer_manifests(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    path = tmp_path / "manifest.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "schema": 2}), encoding="utf-8")
    with pytest.raises(UserError, match="has the schema 2 and this whitepool reads 1"):
        kept(tmp_path)
    content["shards"][0]["rows"] = "ten"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=r"is damaged \(rows is 'ten': give a whole number"):
        kept(tmp_path)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with (
        open_folder(tmp_path, MADE_FROM, "error", overwrite=False),
        pytest.raises(UserError, match="another run writes to output="),
    ):
        kept(tmp_path)
    assert kept(tmp_path) == {}


def test_another_input_is_refused(tmp_path: Path) -> None:
    commit(tmp_path, 0)
    with open_folder(tmp_path, MADE_FROM, "error", overwrite=False) as folder:
        shards = folder.to_make()
        shards.check_input(0, 10, 10, "0" * 64)
        for rows, read, sha256 in ((9, 10, "0" * 64), (10, 11, "0" * 64), (10, 10, "1" * 64)):
            with pytest.raises(UserError, match="differs before row 1"):
                shards.check_input(0, rows, read, sha256)


def test_a_manifest_comes_back_as_it_was(tmp_path: Path) -> None:
    record = FileRecord("vectors-00000.npy", 5, "a" * 64)
    manifest = Manifest(
        {"a": [1, {"b": None}], "text": "é\u2028"},
        "zero",
        {0: ShardRecord((record,), 3, 1, 2, 4, "b" * 64)},
        FileRecord("bad_rows.csv", 7, "c" * 64),
        Total(5, 3, 2, 2, "d" * 64),
    )
    manifest.write(tmp_path)
    assert Manifest.load(tmp_path) == manifest
    content = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert content["finished"] is True
    assert content["total"]["vectors"] == 3


def test_differences() -> None:
    old = {"a": {"b": 1, "c": [1, {"d": 2}]}, "e": 5}
    new = {"a": {"b": 1, "c": [1, {"d": 3}]}, "f": 6}
    assert list(differences(old, new)) == [("a.c[1].d", 2, 3), ("e", 5, None), ("f", None, 6)]
    assert list(differences(old, old)) == []
    assert list(differences([1], [1, 2], "x")) == [("x", [1], [1, 2])]
