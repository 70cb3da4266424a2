"""What the cache folder is found to hold, and what goes from it, beside whoever uses it."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from safetensors.numpy import save_file

from whitepool import fetching
from whitepool.kept import Kept, contents, remove
from whitepool.reuse import ABANDONED, Store
from whitepool.sealed_folder import MANIFEST
from whitepool.wheels import Asset, Wheel

X = np.zeros((3, 4), dtype=np.float32)
OF = {"kind": "vectors", "model": {"sha256": "ab" * 32}}
FILES = {"config.json": b"{}", "a/weights.bin": bytes(1000)}


def make_asset(root: Path, name: str, age: float = 3600.0) -> Asset:
    """An asset's folder as a fetch leaves it, last used ``age`` seconds ago."""
    wheel = Wheel(name, "1", "x.whl", "00" * 32, 1)
    asset = Asset(name, (wheel,), sum(map(len, FILES.values())), "*")
    folder = root / "assets" / name
    for file, content in FILES.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)
    fetching._write_manifest(asset, folder)
    older(folder / MANIFEST, age)
    (root / "assets" / f"{name}.lock").touch()
    return asset


def older(path: Path, seconds: float) -> Path:
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def files(root: Path) -> set[str]:
    return {p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file()}


def one(root: Path, name: str) -> Kept:
    (found,) = [item for item in contents(root) if item.path.name.startswith(name)]
    return found


def test_everything_is_told_by_what_is_in_it(tmp_path: Path) -> None:
    assert contents(tmp_path / "nowhere") == []
    make_asset(tmp_path, "stsb")
    make_asset(tmp_path, "all_minilm", age=7200)
    store = Store(tmp_path / "vectors", 10**9)
    store.save(OF, {"vectors": X})
    store.save({**OF, "model": {"id": "some/model"}}, {"vectors": X})
    store.save({"kind": "moments", "vectors": "…"}, {"a/mean": X})
    (tmp_path / "vectors" / f".{'0' * 32}.partial").write_bytes(b"half")
    (tmp_path / "vectors" / "notes.txt").write_text("mine")
    save_file({"x": X}, tmp_path / "vectors" / f"{'0' * 64}.safetensors", {"whitepool": "[]"})
    (tmp_path / "vectors" / f"{'1' * 64}.safetensors").write_bytes(b"no tensors")
    (tmp_path / "assets" / "gemma").mkdir()
    (tmp_path / "assets" / "gemma" / "weights").write_bytes(b"not fetched")
    (tmp_path / "assets" / "all_mpnet.partial").mkdir()
    (tmp_path / "other").mkdir()
    found = {(item.kind, item.what): item for item in contents(tmp_path)}
    assert set(found) == {
        ("data", "stsb"),
        ("model", "all_minilm"),
        ("vectors", "of model abababababab"),
        ("vectors", "of model some/model"),
        ("moments", "of such vectors"),
        ("unfinished", "vectors or moments"),
        ("unfinished", "all_mpnet"),
        ("foreign", "vectors/notes.txt"),
        ("foreign", f"vectors/{'0' * 64}.safetensors"),
        ("foreign", f"vectors/{'1' * 64}.safetensors"),
        ("foreign", "assets/gemma"),
    }
    model = found["model", "all_minilm"]
    manifest = tmp_path / "assets" / "all_minilm" / MANIFEST
    assert (model.files, model.size) == (3, 1002 + manifest.stat().st_size)
    assert model.used == pytest.approx(time.time() - 7200, abs=60)
    assert found["foreign", "assets/gemma"].size == len(b"not fetched")


def test_what_is_ours_goes_and_the_rest_stays(tmp_path: Path) -> None:
    make_asset(tmp_path, "stsb")
    store = Store(tmp_path / "vectors", 10**9)
    store.save(OF, {"vectors": X})
    (tmp_path / "vectors" / f".{'0' * 32}.partial").write_bytes(b"half")
    older(tmp_path / "vectors" / f".{'0' * 32}.partial", ABANDONED + 9)
    (tmp_path / "vectors" / "notes.txt").write_text("mine")
    (tmp_path / "assets" / "all_mpnet.partial").mkdir()
    (tmp_path / "assets" / "all_mpnet.partial" / "wheel").touch()
    (tmp_path / "assets" / "gemma").mkdir()
    reasons = {item.what: remove(item) for item in contents(tmp_path)}
    assert {what for what, reason in reasons.items() if reason} == {
        "vectors/notes.txt",
        "assets/gemma",
    }
    assert files(tmp_path) - {"assets/stsb.lock", "assets/all_mpnet.lock"} == {"vectors/notes.txt"}
    assert store.load(OF) is None  # a running process computes it anew
    store.save(OF, {"vectors": X})
    assert np.array_equal(store.load(OF)["vectors"], X)  # type: ignore[index]


def test_what_a_process_may_be_using_stays(tmp_path: Path) -> None:
    make_asset(tmp_path, "stsb")
    (tmp_path / "vectors").mkdir()
    (tmp_path / "vectors" / f".{'0' * 32}.partial").write_bytes(b"half")
    item = one(tmp_path, "stsb")
    before = files(tmp_path)
    with FileLock(tmp_path / "assets" / "stsb.lock"):
        assert remove(item) == "a process is fetching it"
    assert "a process may be writing it" in remove(one(tmp_path, ".0"))
    older(item.path / MANIFEST, 30)
    assert "a process may be loading it" in remove(item)
    assert files(tmp_path) == before
    older(item.path / MANIFEST, 90)
    assert remove(item) == ""
    assert remove(item) == ""  # another one was quicker
    assert not item.path.exists()


def test_a_folder_with_other_files_in_it_stays_whole(tmp_path: Path) -> None:
    make_asset(tmp_path, "stsb")
    item = one(tmp_path, "stsb")
    (item.path / "a" / "notes.txt").write_text("mine")
    before = files(tmp_path)
    assert "has files that are not whitepool's (a/notes.txt)" in remove(item)
    assert files(tmp_path) == before


def test_what_a_link_points_to_is_not_touched(tmp_path: Path) -> None:
    make_asset(tmp_path / "disk", "stsb")
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "stsb").symlink_to(tmp_path / "disk" / "assets" / "stsb")
    item = one(tmp_path, "stsb")
    assert item.kind == "foreign"
    assert remove(item) == "it is not whitepool's"
    assert (tmp_path / "disk" / "assets" / "stsb" / "config.json").exists()


def test_a_manifest_that_is_damaged_makes_a_folder_foreign(tmp_path: Path) -> None:
    make_asset(tmp_path, "stsb")
    manifest = tmp_path / "assets" / "stsb" / MANIFEST
    for content in ({"files": {}}, {"wheels": [], "files": 3}, [], {"wheels": 1, "files": {}}):
        manifest.write_text(json.dumps(content))
        assert one(tmp_path, "stsb").kind == "foreign"
    manifest.write_text("{")
    assert one(tmp_path, "stsb").kind == "foreign"


def test_using_an_asset_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path))
    asset = make_asset(tmp_path, "stsb")
    assert fetching.ensure(asset) == tmp_path / "assets" / "stsb"
    assert time.time() - one(tmp_path, "stsb").used < 60
    shutil.rmtree(tmp_path / "assets")
