"""Whole commands in this process, on a tiny model."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from whitepool.commands.console import main

from whole import Command, Ended


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Run `whitepool` with some words; each run begins with an empty folder."""

    def run(*words: str) -> Ended:
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["whitepool", *words, f"hydra.run.dir={folder}"])
        capfd.readouterr()
        try:
            status = main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        return Ended(status, *capfd.readouterr(), folder)

    return run


@pytest.fixture
def evaluate(command: Command, checkpoint: Callable[[str], Path]) -> Command:
    """`whitepool evaluate` on a tiny model and a file of pairs, without figures."""

    def run(path: Path | str, *words: str) -> Ended:
        model = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu", "cache=off"]
        data = ["data=pairs", f"data.path='{path}'", "figures=false", "logger=none", "bootstrap=0"]
        return command("evaluate", *model, *data, *words)

    return run
