"""`whitepool cache`: what is printed, and what goes for each kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test_kept import OF, make_asset, older
from whitepool.commands.cache import run
from whitepool.reuse import Store


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of one model, two files of vectors, one of moments, and a file of the user's."""
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path))
    make_asset(tmp_path, "all_minilm")
    store = Store(tmp_path / "vectors", 10**9)
    for n in range(2):
        store.save({**OF, "n": n}, {"vectors": np.zeros((1000, 4), dtype=np.float32)})
    store.save({"kind": "moments"}, {"mean": np.zeros(4)})
    (tmp_path / "vectors" / "notes.txt").write_text("mine")
    return tmp_path


def test_a_list_has_a_line_for_each_kind_and_model(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "kind what files size last used"
    assert lines[1].startswith("model all_minilm 3 1.2 KiB 20")
    assert lines[2].startswith("vectors of model abababababab 2 32.")
    assert lines[3].startswith("moments of such vectors 1 ")
    assert lines[4].startswith("not whitepool's vectors/notes.txt 1 4 B")
    assert lines[5].endswith(f"KiB in {root}")


def test_an_empty_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "none"))
    assert run(["list"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'none'} holds nothing.\n"
    assert run(["clear", "all"]) == 0
    assert capsys.readouterr().out == f"0 B freed in {tmp_path / 'none'}\n"


@pytest.mark.parametrize("kind", ["vectors", "assets", "all"])
def test_clear(root: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["clear", kind]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f" freed in {root}\n")
    assert ("Removed: model all_minilm, 1.2 KiB\n" in printed) == (kind != "vectors")
    assert ("Removed: vectors of model abababababab, 32." in printed) == (kind != "assets")
    assert ("Removed: moments of such vectors, " in printed) == (kind != "assets")
    assert (root / "assets" / "all_minilm").exists() == (kind == "vectors")
    assert len(list((root / "vectors").glob("*.safetensors"))) == (3 if kind == "assets" else 0)
    assert (root / "vectors" / "notes.txt").read_text() == "mine"


def test_what_stays_is_said_and_is_no_success(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older(root / "assets" / "all_minilm" / ".manifest.json", 5)
    assert run(["clear", "all"]) == 1
    printed = capsys.readouterr().out
    assert "Kept: model all_minilm, 1.2 KiB: it was used 5 seconds ago, and a process" in printed
    assert (root / "assets" / "all_minilm" / "config.json").exists()
