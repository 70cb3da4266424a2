"""Disks that are full or may not be written, under every kind of file that a command leaves."""

from __future__ import annotations

import json
import logging
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra.core.global_hydra import GlobalHydra

import small_disks
from whitepool import disks
from whitepool.commands import console
from whitepool.errors import UserError
from whitepool.evaluation import evaluate
from whitepool.maps.affine import load_maps
from whitepool.moments_file import load_moments
from whitepool.predictions import load_predictions
from whitepool.recipe import Recipe
from whitepool.reuse import Store

import tiny_suite
from tiny import WORDS

Command = Callable[..., tuple[int, str]]
MEGABYTE = 2**20
PAGE = small_disks.PAGE
READERS: dict[str, Callable[[Path], Any]] = {
    "whitening.safetensors": load_maps,
    "recipe": Recipe.load,
    "moments.safetensors": load_moments,
    "predictions.safetensors": lambda path: load_predictions(path.parent),
}


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run `whitepool …` in this process; its exit status and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))

    def run(*arguments: str) -> tuple[int, str]:
        GlobalHydra.instance().clear()
        monkeypatch.setattr(sys, "argv", ["whitepool", *arguments])
        try:
            status: object = console.main()
        except SystemExit as ended:
            status = ended.code
        assert isinstance(status, int)
        root = logging.getLogger()
        for handler in root.handlers[:]:  # or the log would keep its disk busy
            if isinstance(handler, logging.FileHandler):
                root.removeHandler(handler)
                handler.close()
        return status, capsys.readouterr().err

    return run


@pytest.fixture(scope="module")
def words(
    tmp_path_factory: pytest.TempPathFactory, checkpoint: Callable[[str], Path], pairs: Path
) -> dict[str, list[str]]:
    """Each command, all of whose output goes below the folder ``{}``."""
    texts = tmp_path_factory.mktemp("texts") / "x.txt"
    texts.write_text("".join(f"{a} {b} {c}\n" for a in WORDS for b in WORDS for c in WORDS[:2]))
    model = ["model=bert", f"model.path={checkpoint('bert')}", "trainer=cpu"]
    model += ["trainer.enable_progress_bar=false", "hydra.run.dir={}/run"]
    return {
        "evaluate": ["evaluate", *model, "data=pairs", f"data.path={pairs}", "bootstrap=10",
                     "figures=false"],
        "figures": ["evaluate", *model, "data=pairs", f"data.path={pairs}", "bootstrap=10"],
        "train": ["train", *model, "corpus=text", f"corpus.path={texts}", "figures=false",
                  "output={}/recipe"],
        "export": ["train", *model, "corpus=text", f"corpus.path={texts}", "figures=false",
                   "output={}/recipe", "export={}/export", "overwrite=true"],
        "encode": ["encode", *model, f"input={texts}", "output={}/vectors", "format=npy",
                   "shard_rows=100"],
    }  # fmt: skip


def whole(folder: Path) -> None:
    """See that nothing below a folder is half-written, and all that can be read is readable."""
    for path in folder.rglob("*"):
        assert not path.name.endswith((".partial", ".part")), path
        assert ".new-" not in path.name, path
        if path.name in READERS:
            READERS[path.name](path)
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))


def scores(folder: Path) -> Any:
    content = json.loads((folder / "run" / "results.json").read_text(encoding="utf-8"))
    return content["scores"]


def refused(error: str, place: Path) -> str:
    """The one sentence of a command that failed."""
    assert "Traceback" not in error
    assert "not a mistake of yours" not in error
    (line,) = (line for line in error.splitlines() if line.startswith("Error: "))
    assert str(place) in line or "the run's folder" in line, line
    return line


@pytest.mark.parametrize(
    ("name", "step"),
    [
        *(("evaluate", 12), ("train", 9), ("encode", 24)),
        *(
            pytest.param(name, step, marks=pytest.mark.nightly)
            for name, step in (
                ("evaluate", 1), ("train", 1), ("encode", 2), ("export", 3), ("figures", 9),
            )
        ),
    ],
)  # fmt: skip
def test_a_disk_that_fills_up(
    name: str, step: int, words: dict[str, list[str]], command: Command, tmp_path: Path
) -> None:
    """With ever so many pages left: refused in a sentence, and then again with room."""
    mount = tmp_path / "disk"
    counts = {"refused": 0, "passed": 0}
    with small_disks.disk(mount, 16 * MEGABYTE):
        given = [word.format(mount) for word in words[name]]
        status, error = command(*given)
        assert status == 0, error
        wanted = scores(mount) if name in ("evaluate", "figures") else None
        clear(mount)
        left = 0
        while not counts["passed"]:
            full = small_disks.fill(mount, left * PAGE)
            status, error = command(*given)
            whole(mount)
            if status:
                sentence = refused(error, mount)
                assert "(No space left on device)" in sentence
                assert "make room there" in sentence
                counts["refused"] += 1
            else:
                counts["passed"] += 1
            if wanted and (mount / "run" / "results.json").exists():
                assert scores(mount) == wanted
            if name == "encode" or left % (4 * step) == 0:  # what is there is trusted, or not
                full.unlink()
                status, error = command(*given)
                assert status == 0, error
                whole(mount)
            clear(mount)
            left += step
    print(name, counts)
    assert counts["refused"] >= 2


def clear(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize("name", ["evaluate", "train", "encode"])
def test_a_disk_that_may_not_be_written(
    name: str, words: dict[str, list[str]], command: Command, tmp_path: Path
) -> None:
    mount = tmp_path / "disk"
    with small_disks.disk(mount, MEGABYTE):
        small_disks.seal(mount)
        given = [word.format(mount) for word in words[name]]
        status, error = command(*given)
        assert status == 1
        assert "(Read-only file system)" in refused(error, mount)
        if name == "evaluate":
            return
        given = [word if "run.dir" not in word else f"hydra.run.dir={tmp_path}/r" for word in given]
        status, error = command(*given)
        assert status == 1
        sentence = refused(error, mount)
        assert "(Read-only file system)" in sentence
        assert "give " in sentence
        assert not list(mount.iterdir())


def test_a_run_of_the_python_api_says_it_too(
    words: dict[str, list[str]], command: Command, tmp_path: Path
) -> None:
    import whitepool

    mount = tmp_path / "disk"
    given = [word for word in words["evaluate"][1:] if "hydra" not in word]
    with small_disks.disk(mount, MEGABYTE):
        small_disks.seal(mount)
        with pytest.raises(UserError, match=r"written \(Read-only file system\): give "):
            whitepool.evaluate(mount / "run", *given)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_cache_that_takes_nothing_costs_a_warning(
    sealed: bool,
    checkpoint: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One warning, though vectors and moments are refused; and what is kept is still read."""
    run = [checkpoint("bert"), tmp_path / "run"]
    mount = tmp_path / "disk"
    with small_disks.disk(mount, MEGABYTE):
        monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
        wanted = evaluate(tiny_suite.composed(*run))
        kept = {path.name for path in (tmp_path / "cache" / "vectors").iterdir()}
        assert len(kept) == 2
        monkeypatch.setenv("WHITEPOOL_CACHE", str(mount))
        small_disks.seal(mount) if sealed else small_disks.fill(mount)
        with caplog.at_level(logging.WARNING):
            assert evaluate(tiny_suite.composed(*run)) == wanted
        (told,) = (m for m in caplog.messages if "kept" in m)
        assert told.startswith(f"nothing is kept for later runs in {mount / 'vectors'} (")
        assert not [path for path in mount.rglob("*") if path.name not in ("full", "vectors")]
        results = json.loads((tmp_path / "run" / "results.json").read_text())
        assert results["headline"]["value"] == wanted
        assert not results["vectors"]["reused"]
    with small_disks.disk(mount, MEGABYTE):
        shutil.copytree(tmp_path / "cache", mount, dirs_exist_ok=True)
        small_disks.seal(mount) if sealed else small_disks.fill(mount)
        caplog.clear()
        assert evaluate(tiny_suite.composed(*run)) == wanted
        assert json.loads((tmp_path / "run" / "results.json").read_text())["vectors"]["reused"]
        assert not [m for m in caplog.messages if "kept" in m or "reused (" in m]


def test_a_store_that_was_refused_tries_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import numpy as np

    mount = tmp_path / "disk"
    with small_disks.disk(mount, MEGABYTE):
        full = small_disks.fill(mount)
        store = Store(mount, MEGABYTE)
        store.save({"n": 1}, {"x": np.zeros(9)})
        full.unlink()
        store.save({"n": 2}, {"x": np.zeros(9)})
        assert not list(mount.iterdir())
        assert len(caplog.messages) == 1


def test_files_of_the_user_are_not_taken_for_the_output(tmp_path: Path) -> None:
    fault = PermissionError(13, "Permission denied", str(tmp_path / "input.tsv"))
    with pytest.raises(PermissionError), disks.telling_of_disk(tmp_path / "out", "x="):
        raise fault
    with pytest.raises(UserError), disks.telling_of_disk(tmp_path, "x="):
        raise fault


@pytest.mark.parametrize("number", [2, 21, 5])
def test_other_faults_of_the_system_go_on(number: int, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="else"), disks.telling_of_disk(tmp_path, "x="):
        raise OSError(number, "something else")
