"""Commands that run in this process, on a tiny model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig

from whitepool.commands import console

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    checkpoint: Callable[[str], Path],
) -> Command:
    """Run `whitepool …` here, on a tiny model unless one is given; its status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WHITEPOOL_CACHE", str(tmp_path / "cache"))
    bert = ["model=local", f"model.path={checkpoint('bert')}", "trainer=cpu"]

    def run(name: str, *words: str) -> tuple[int, str, str]:
        GlobalHydra.instance().clear()
        given = any(word.startswith("model.path=") for word in words)
        own = [] if given else bert
        if name != "encode" and not given:
            own = [*own, "figures=false", "trainer.enable_progress_bar=false"]
        monkeypatch.setattr(sys, "argv", ["whitepool", name, *words, *own])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            console.main()
        HydraConfig.instance().cfg = None  # else runs of other tests would count as jobs
        assert isinstance(ended.value.code, int)
        return ended.value.code, *capfd.readouterr()

    return run
